#include "base/diagnostic.hpp"
#include "platform/file/allocator_format.hpp"
#include "scenario/replay/replay.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// What an allocator may be told, beside its name.
std::vector<std::string> keys_of(AllocatorKind kind) {
  switch (kind) {
    case AllocatorKind::ideal:
    case AllocatorKind::placed:
      return {};
    case AllocatorKind::best_fit:
    case AllocatorKind::first_fit:
      return {"alignment"};
    case AllocatorKind::caching:
      return {"expandable_segments", "max_split_size", "roundup_power2_divisions",
              "garbage_collection_threshold"};
    case AllocatorKind::bfc:
      return {"growth", "first_region", "give_back_regions"};
  }
  return {};
}

/// A value of a key, and which option said so.
struct SetValue {
  std::string text, origin;
};
using SetValues = std::map<std::string, std::vector<SetValue>>;

SetValues values_of(std::span<const std::string> set, Diagnostics& diagnostics) {
  std::vector<std::string> known;
  for (const AllocatorKind kind : allocator_kinds())
    for (std::string& key : keys_of(kind)) known.push_back(std::move(key));
  SetValues values;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const std::string origin = fmt::format("--set #{}", i + 1);
    const std::size_t equals = set[i].find('=');
    if (equals == 0 || equals == std::string::npos) {
      diagnostics.error({origin}, fmt::format("found `{}`, expected KEY=VALUE, such as "
                                              "`expandable_segments=true`",
                                              set[i]));
      continue;
    }
    const std::string key = set[i].substr(0, equals);
    if (std::ranges::count(known, key) == 0)
      diagnostics.error({origin}, fmt::format("no allocator has a setting `{}`", key),
                        did_you_mean(key, known));
    else
      values[key].push_back({set[i].substr(equals + 1), origin});
  }
  return values;
}

/// One allocator with one value of each key that it has, from all combinations.
class ChoiceMaker {
 public:
  ChoiceMaker(const SetValues& values, Diagnostics& diagnostics)
      : values_(values), diagnostics_(diagnostics) {}

  void add(const std::string& allocator, const std::string& origin) {
    static const Format<AllocatorSettings> kFormat = allocator_format();
    Node named = parse_value(allocator, origin);
    const auto settings = kFormat.read(named, diagnostics_);
    if (!settings) return;
    if (settings->kind == AllocatorKind::placed) {
      diagnostics_.error({origin},
                         "`static` places what a whole run asks for before it begins; expected "
                         "another allocator, or `plimsoll place` for buffers with lifetimes");
      return;
    }
    const std::string name(to_text(settings->kind));
    const Node made = named.is_mapping() ? named : parse_value("{" + name + ": {}}", origin);
    std::vector<Partial> all{{made, named.is_mapping() ? allocator : name}};
    for (const std::string& key : keys_of(settings->kind)) {
      const auto values = values_.find(key);
      if (values == values_.end()) continue;
      used_.push_back(key);
      all = with_values(all, name + "." + key, key, values->second);
    }
    for (const Partial& it : all)
      if (const auto read = kFormat.read(it.node, diagnostics_))
        choices_.push_back({it.label, *read});
  }

  [[nodiscard]] std::vector<ReplayChoice> finish() {
    for (const auto& [key, values] : values_)
      if (std::ranges::count(used_, key) == 0)
        diagnostics_.error({values.front().origin},
                           fmt::format("no allocator that was asked for has a setting `{}`", key));
    diagnostics_.throw_if_errors();
    return std::move(choices_);
  }

 private:
  struct Partial {
    Node node;
    std::string label;
  };

  std::vector<Partial> with_values(const std::vector<Partial>& all, const std::string& path,
                                   const std::string& key, const std::vector<SetValue>& values) {
    std::vector<Partial> more;
    for (const Partial& it : all)
      for (const SetValue& value : values) {
        if (choices_.size() + more.size() >= kMostReplayChoices) {
          diagnostics_.error({value.origin},
                             fmt::format("found more than {} combinations", kMostReplayChoices));
          return more;
        }
        Partial& made = more.emplace_back(it);
        made.node.set(path, parse_value(value.text, value.origin), diagnostics_);
        made.label += fmt::format(", {}={}", key, value.text);
      }
    return more;
  }

  const SetValues& values_;
  Diagnostics& diagnostics_;
  std::vector<std::string> used_;
  std::vector<ReplayChoice> choices_;
};

}  // namespace

std::vector<ReplayChoice> replay_choices(std::span<const std::string> allocators,
                                         std::span<const std::string> set) {
  Diagnostics diagnostics;
  const SetValues values = values_of(set, diagnostics);
  ChoiceMaker maker(values, diagnostics);
  if (allocators.empty()) maker.add("caching", "--allocator");
  for (std::size_t a = 0; a < allocators.size(); ++a)
    maker.add(allocators[a], fmt::format("--allocator #{}", a + 1));
  return maker.finish();
}

std::vector<ReplayChoice> usual_choices() {
  const auto caching = [](const std::string& label, CachingSettings settings) {
    return ReplayChoice{"caching" + label, {.kind = AllocatorKind::caching, .caching = settings}};
  };
  const Bytes alignment{512};
  return {
      {"ideal", {}},
      {"best-fit, alignment=512 B", {.kind = AllocatorKind::best_fit, .alignment = alignment}},
      {"first-fit, alignment=512 B", {.kind = AllocatorKind::first_fit, .alignment = alignment}},
      caching("", {}),
      caching(", expandable_segments=true", {.expandable_segments = true}),
      caching(", max_split_size=128 MiB", {.max_split_size = Bytes{128 << 20}}),
      caching(", roundup_power2_divisions=4", {.roundup_power2_divisions = 4}),
      caching(", garbage_collection_threshold=0.8",
              {.garbage_collection_threshold = Ratio{800'000'000}}),
      {"bfc", {.kind = AllocatorKind::bfc}},
      {"bfc, growth=true", {.kind = AllocatorKind::bfc, .bfc = {.growth = true}}}};
}

}  // namespace plimsoll
