#include "platform/file/platform_layers.hpp"

#include "base/gather.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {
namespace {

/// Merging looks keys up one by one: keeps hostile files from taking quadratic time.
constexpr std::size_t kMaxOverrides = 10'000;

std::string chain_text(const std::vector<Node>& layers, const std::string& last) {
  std::string text;
  for (const Node& layer : layers) text += layer.where().origin + " -> ";
  return text + last;
}

/// The document that `node` extends, or nothing (reported).
std::optional<Node> find_extended(const Node& name, const std::vector<Node>& layers,
                                  Diagnostics& diagnostics, const PlatformResolver& resolver) {
  if (!name.is_scalar()) return std::nullopt;  // the format reports it
  std::optional<Node> found;
  try {
    if (resolver) found = resolver({name.scalar(), name.where()});
  } catch (const InputError& error) {
    take_errors(diagnostics, error);
    return std::nullopt;
  }
  if (!found) {
    diagnostics.error(name.where(),
                      fmt::format("there is no platform `{}` to extend", name.scalar()));
    return std::nullopt;
  }
  const std::string origin = found->where().origin;
  if (std::ranges::any_of(layers, [&](const Node& l) { return l.where().origin == origin; })) {
    diagnostics.error(name.where(),
                      fmt::format("`extends` makes a circle: {}", chain_text(layers, origin)));
    return std::nullopt;
  }
  if (!found->is_mapping()) {
    diagnostics.error(found->where(),
                      fmt::format("found {}, expected a platform", found->describe()));
    return std::nullopt;
  }
  return found;
}

/// From the file itself to the one that extends nothing.
std::vector<Node> collect_layers(const Node& node, Diagnostics& diagnostics,
                                 const PlatformResolver& resolver) {
  std::vector<Node> layers{node};
  while (const Node* name = layers.back().find("extends")) {
    if (layers.size() > kMaxExtends) {
      diagnostics.error(name->where(),
                        fmt::format("more than {} platforms extend each other", kMaxExtends));
      break;
    }
    auto extended = find_extended(*name, layers, diagnostics, resolver);
    if (!extended) break;
    layers.push_back(*std::move(extended));
  }
  return layers;
}

class Merger {
 public:
  Merger(Node& document, Diagnostics& diagnostics)
      : document_(document), diagnostics_(diagnostics) {}

  /// Sets what `over` says below `path`; `under` is what is there.
  void merge(const std::string& path, const Node& under, const Node& over) {
    for (const Node::Entry& entry : over.entries()) {
      if (++overrides_ > kMaxOverrides) return;
      const std::string& key = entry.key.scalar();
      if (path.empty() && (key == "provenance" || key == "extends")) continue;
      if (key.find('.') != std::string::npos) {
        diagnostics_.error(entry.key.where(),
                           fmt::format("`{}`: a name that holds a dot cannot be extended", key));
        continue;
      }
      const std::string inner = path.empty() ? key : path + "." + key;
      const Node* there = under.find(key);
      if (there != nullptr && there->is_mapping() && entry.value.is_mapping() &&
          !is_other_choice(key, *there, entry.value)) {
        merge(inner, *there, entry.value);
      } else {
        document_.set(inner, entry.value, diagnostics_);
      }
    }
  }

  /// Another allocator takes the place of the one there, with its settings.
  static bool is_other_choice(const std::string& key, const Node& there, const Node& over) {
    return key == "allocator" && std::ranges::none_of(over.entries(), [&](const Node::Entry& it) {
             return there.find(it.key.scalar()) != nullptr;
           });
  }

  [[nodiscard]] bool too_many() const { return overrides_ > kMaxOverrides; }

 private:
  Node& document_;
  Diagnostics& diagnostics_;
  std::size_t overrides_ = 0;
};

}  // namespace

MergedPlatform merge_layers(const Node& node, Diagnostics& diagnostics,
                            const PlatformResolver& resolver) {
  std::vector<Node> layers = collect_layers(node, diagnostics, resolver);
  std::ranges::reverse(layers);
  MergedPlatform merged;
  merged.document = layers.front();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Node& layer = layers[i];
    const Node* provenance = layer.find("provenance");
    merged.origins.push_back(layer.where().origin);
    merged.provenance.push_back(provenance != nullptr ? *provenance : Node{});
    if (i == 0) continue;
    Merger merger(merged.document, diagnostics);
    const Node under = merged.document;
    merger.merge("", under, layer);
    if (merger.too_many()) {
      diagnostics.error(layer.where(),
                        fmt::format("more than {} keys override `extends`", kMaxOverrides));
    }
  }
  return merged;
}

}  // namespace plimsoll
