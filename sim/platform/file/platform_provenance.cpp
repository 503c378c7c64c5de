#include "platform/file/platform_provenance.hpp"

#include "platform/file/platform_spec.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {
namespace {

/// Each entry is looked up in the document: keeps hostile files from taking quadratic time.
constexpr std::size_t kMaxEntries = 4'000;
constexpr std::size_t kMaxSuggestions = 2'000;

struct Number {
  std::string path;
  std::size_t layer = 0;
};

struct Entry {
  std::size_t layer = 0;
  Provenance provenance;
  bool used = false;
};
/// By path; of each path the entries by layer.
using Entries = std::map<std::string, std::vector<Entry>, std::less<>>;

bool is_number(const Node& node) {
  if (!node.is_scalar() || node.is_quoted() || node.scalar().empty()) return false;
  return std::string_view("0123456789.+-").find(node.scalar().front()) != std::string_view::npos;
}

/// Calls `visit(path, node)` for everything of the document that is not a word of its heading.
template <class Visit>
void walk(const std::string& path, const Node& node, const Visit& visit) {
  for (const Node& item : node.items()) walk(path, item, visit);
  for (const Node::Entry& entry : node.entries()) {
    const std::string& key = entry.key.scalar();
    if (path.empty() &&
        (key == "provenance" || key == "platform" || key == "about" || key == "extends")) {
      continue;
    }
    const std::string inner = path.empty() ? key : path + "." + key;
    visit(inner, entry.value);
    walk(inner, entry.value, visit);
  }
}

/// A value from elsewhere, such as `--set`, is above all layers.
std::size_t layer_of(const Node& node, const std::vector<std::string>& origins) {
  const auto found = std::ranges::find(origins, node.where().origin);
  return static_cast<std::size_t>(found - origins.begin());
}

const Node* find_path(const Node& document, std::string_view path) {
  const Node* node = &document;
  while (node != nullptr && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    node = node->is_mapping() ? node->find(path.substr(0, dot)) : nullptr;
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return node;
}

/// Whether `--set` put one number where the file has several: shares apart become an efficiency.
bool is_replaced(const MergedPlatform& merged, std::string_view path) {
  const Node* node = nullptr;
  while (node == nullptr && path.rfind('.') != std::string_view::npos) {
    path = path.substr(0, path.rfind('.'));
    node = find_path(merged.document, path);
  }
  return node != nullptr && is_number(*node) &&
         layer_of(*node, merged.origins) == merged.origins.size();
}

void report_unknown(const Located<std::string>& path, const Node& document,
                    Diagnostics& diagnostics) {
  std::vector<std::string> paths;
  walk("", document, [&](const std::string& known, const Node&) {
    if (paths.size() < kMaxSuggestions) paths.push_back(known);
  });
  diagnostics.error(
      path.where, fmt::format("provenance of `{}`, which this platform does not have", path.value),
      did_you_mean(path.value, paths));
}

Entries read_entries(const MergedPlatform& merged, Diagnostics& diagnostics) {
  Entries entries;
  static const Format<Named<ProvenanceSpec>> kFormat = provenance_format();
  for (std::size_t layer = 0; layer < merged.provenance.size(); ++layer) {
    const Node& node = merged.provenance[layer];
    if (node.is_null()) continue;
    if (node.entries().size() > kMaxEntries) {
      diagnostics.error(node.where(), fmt::format("more than {} provenance entries", kMaxEntries));
      continue;
    }
    const auto read = kFormat.read(node, diagnostics);
    if (!read) continue;
    for (const auto& [path, spec] : *read) {
      const bool is_top = layer + 1 == merged.provenance.size();
      if (find_path(merged.document, path.value) != nullptr) {
        if (spec)
          entries[path.value].push_back(
              {layer, {path.value, spec->quality, spec->source, spec->error_p95}});
      } else if (is_top && !diagnostics.is_full() && !is_replaced(merged, path.value)) {
        report_unknown(path, merged.document, diagnostics);
      }
    }
  }
  return entries;
}

/// The entry that speaks for `number`, or nullptr.
Entry* find_entry(Entries& entries, const Number& number) {
  std::string_view path = number.path;
  while (true) {
    const auto found = entries.find(path);
    if (found != entries.end() && found->second.back().layer >= number.layer) {
      return &found->second.back();
    }
    const std::size_t dot = path.rfind('.');
    if (dot == std::string_view::npos) return nullptr;
    path = path.substr(0, dot);
  }
}

/// `numbers` are sorted by path.
bool holds_a_number(const std::string& path, const std::vector<Number>& numbers) {
  const auto at = [&](const std::string& start) {
    const auto found = std::ranges::lower_bound(numbers, start, {}, &Number::path);
    return found == numbers.end() ? std::string_view() : std::string_view(found->path);
  };
  return at(path) == path || at(path + ".").starts_with(path + ".");
}

}  // namespace

void resolve_provenance(const MergedPlatform& merged, Platform& platform,
                        Diagnostics& diagnostics) {
  std::vector<Number> numbers;
  walk("", merged.document, [&](const std::string& path, const Node& node) {
    if (is_number(node)) numbers.push_back({path, layer_of(node, merged.origins)});
  });
  Entries entries = read_entries(merged, diagnostics);
  for (const Number& number : numbers) {
    if (Entry* entry = find_entry(entries, number)) {
      entry->used = true;
    } else {
      platform.without_provenance.push_back(number.path);
    }
  }
  std::ranges::sort(numbers, {}, &Number::path);
  for (const auto& [path, of_path] : entries) {
    const Entry& last = of_path.back();
    if (last.used || !holds_a_number(path, numbers)) platform.provenance.push_back(last.provenance);
  }
}

}  // namespace plimsoll
