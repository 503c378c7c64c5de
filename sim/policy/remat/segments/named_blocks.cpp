#include "policy/remat/segments/named_blocks.hpp"

#include "base/names_hint.hpp"
#include "base/utf8.hpp"
#include "base/wildcard.hpp"
#include "policy/interface/entry.hpp"
#include "workload/network/layer_name.hpp"

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {
namespace {

constexpr std::size_t kLongestName = 200;  // in a message

std::string_view layer(const Workload& workload, std::uint32_t forward) {
  return layer_of(workload.operators[forward]);
}

/// What brings parameters belongs to no layer: it may stand in the middle of a block
/// (workload/sharding/unit_step.hpp).
bool is_of_layer(const Workload& workload, std::uint32_t forward) {
  return !brings_parameters(workload.operators[forward]);
}

/// The parts of a path from its beginning, the shortest first: a/b/c has a, a/b and a/b/c; so do
/// a.b.c's modules, where there is no `/`. Calls `visit` until it returns true.
bool any_part(std::string_view path, auto visit) {
  // ONNX files may begin their paths with a `/`.
  const char separator = path.find('/') == std::string_view::npos ? '.' : '/';
  for (std::size_t end = path.find(separator, 1); end != std::string_view::npos;
       end = path.find(separator, end + 1))
    if (visit(path.substr(0, end))) return true;
  return visit(path);
}

/// Behind the last forward from `begin` on that is in the block of that name.
std::uint32_t end_of(const Workload& workload, std::uint32_t begin, std::string_view name) {
  std::uint32_t end = begin;
  for (std::uint32_t f = begin; f < workload.forwards; ++f) {
    if (!is_of_layer(workload, f)) continue;
    if (!any_part(layer(workload, f), [&](std::string_view part) { return part == name; })) break;
    end = f + 1;
  }
  return end;
}

/// A forward that a pattern names, and what of its path that is: the shortest part.
struct NamedForward {
  std::uint32_t forward = 0;
  std::string_view part;
};

/// Of Work, for a part of a path that is compared with a pattern.
constexpr std::size_t kStepsAPart = 16;

/// The parts of all paths, in the order of their beginnings and in that of their ends: a pattern is
/// compared with those that begin, or with those that end as it does, whichever are fewer.
class PathParts {
 public:
  PathParts(const Workload& workload, Work work) : work_(work) {
    for (std::uint32_t f = 0; f < workload.forwards; ++f)
      if (is_of_layer(workload, f))
        any_part(layer(workload, f), [&](std::string_view part) {
          if (!part.empty()) by_begin_.emplace_back(part, f);
          return false;
        });
    std::ranges::sort(by_begin_);
  }

  /// The forwards that a pattern names, in the order in which they run. O(log parts) and the parts
  /// that begin with what the pattern has before its first `*`, or end with what it has behind its
  /// last.
  [[nodiscard]] std::vector<NamedForward> named(std::string_view pattern) {
    const std::size_t star = pattern.find('*');
    std::vector<NamedForward> found;
    if (star == std::string_view::npos) {
      for (const auto& [part, f] : std::ranges::equal_range(by_begin_, pattern, {}, &Part::first))
        found.push_back({f, part});
      return found;
    }
    for (const auto& [part, f] :
         candidates(pattern.substr(0, star), pattern.substr(pattern.rfind('*') + 1)))
      if (matches(pattern, part)) found.push_back({f, part});
    // Of the parts of one path, each of which begins with the one before it, the shortest.
    std::ranges::sort(found, {},
                      [](const NamedForward& it) { return std::pair(it.forward, it.part.size()); });
    const auto rest = std::ranges::unique(found, {}, &NamedForward::forward);
    found.erase(rest.begin(), rest.end());
    return found;
  }

 private:
  using Part = std::pair<std::string_view, std::uint32_t>;

  std::span<const Part> candidates(std::string_view begin, std::string_view end) {
    const auto head = [&](const Part& it) { return it.first.substr(0, begin.size()); };
    std::span<const Part> found = std::ranges::equal_range(by_begin_, begin, {}, head);
    if (!end.empty()) {
      if (by_end_.empty()) order_by_end();
      const auto tail = [&](const Part& it) {
        return it.first.substr(it.first.size() - std::min(it.first.size(), end.size()));
      };
      const std::span<const Part> others =
          std::ranges::equal_range(by_end_, end, comes_before_from_end, tail);
      if (others.size() < found.size()) found = others;
    }
    work_.add(kStepsAPart * found.size());
    return found;
  }

  void order_by_end() {
    by_end_ = by_begin_;
    std::ranges::sort(by_end_, comes_before_from_end, &Part::first);
  }

  static bool comes_before_from_end(std::string_view a, std::string_view b) {
    return std::ranges::lexicographical_compare(std::views::reverse(a), std::views::reverse(b));
  }

  const Work work_;
  std::vector<Part> by_begin_;
  std::vector<Part> by_end_;  ///< empty until a pattern asks for it
};

/// The first of them from `begin` on, or nullptr.
const NamedForward* first_from(const std::vector<NamedForward>& named, std::uint32_t begin) {
  const auto found = std::ranges::lower_bound(named, begin, {}, &NamedForward::forward);
  return found == named.end() ? nullptr : &*found;
}

[[noreturn]] void refuse_name(const Workload& workload, const Located<std::string>& name) {
  std::vector<std::string> known;
  std::set<std::string_view> seen;
  for (std::uint32_t f = 0; f < workload.forwards; ++f)
    if (is_of_layer(workload, f))
      any_part(layer(workload, f), [&](std::string_view part) {
        if (seen.insert(part).second) known.emplace_back(part);
        return false;
      });
  refuse(name.where,
         fmt::format("workload `{}` has no block or layer `{}`", workload.name,
                     visible_utf8(name.value, kLongestName)),
         hint_of_names(name.value, known));
}

[[noreturn]] void refuse_range(const Workload& workload, const BlockNames& names,
                               PathParts& parts) {
  if (parts.named(names.from.value).empty()) refuse_name(workload, names.from);
  if (parts.named(names.to->value).empty()) refuse_name(workload, *names.to);
  refuse(names.to->where,
         fmt::format("no `{}` comes after `{}` in workload `{}`; expected the last of a "
                     "run of layers, in the order in which they run",
                     names.to->value, names.from.value, workload.name));
}

void add(std::vector<ForwardRange>& ranges, const Workload& workload, const BlockNames& names,
         PathParts& parts) {
  const std::size_t before = ranges.size();
  const std::vector<NamedForward> from = parts.named(names.from.value);
  const std::vector<NamedForward> to =
      names.to ? parts.named(names.to->value) : std::vector<NamedForward>();
  for (const NamedForward* it = first_from(from, 0); it != nullptr;) {
    const std::uint32_t own = end_of(workload, it->forward, it->part);
    std::uint32_t end = own;
    if (names.to) {
      const NamedForward* last = first_from(to, it->forward);
      if (last == nullptr) break;  // as a `block_*` behind the last `to`
      end = end_of(workload, last->forward, last->part);
    }
    ranges.push_back({it->forward, end, std::string(it->part), names.from.where});
    it = first_from(from, std::max(own, end));
  }
  if (ranges.size() > before) return;
  if (names.to) refuse_range(workload, names, parts);
  refuse_name(workload, names.from);
}

}  // namespace

Format<BlockNames> block_names_format() {
  const auto alone = [](Located<std::string> pattern) {
    return BlockNames{std::move(pattern), std::nullopt};
  };
  return either(mapped<Located<std::string>, BlockNames>(located(text()), alone),
                Record<BlockNames>("blocks", "A run of blocks and layers.")
                    .required("from", &BlockNames::from, located(text()), "the first")
                    .optional("to", &BlockNames::to, located(text()), "the last; default: `from`")
                    .format());
}

std::vector<ForwardRange> named_blocks(const Workload& workload, std::span<const BlockNames> names,
                                       Work work) {
  std::vector<ForwardRange> ranges;
  PathParts parts(workload, work);
  for (const BlockNames& it : names) add(ranges, workload, it, parts);
  std::ranges::stable_sort(ranges, {}, &ForwardRange::begin);
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin < ranges[i - 1].end)
      refuse(ranges[i].where,
             fmt::format("layer `{}` is in two of the blocks, `{}` and `{}`; expected "
                         "blocks that have nothing in common",
                         layer(workload, ranges[i].begin), ranges[i - 1].name, ranges[i].name));
  return ranges;
}

std::vector<ForwardRange> outermost_blocks(const Workload& workload) {
  std::vector<ForwardRange> blocks, layers;
  for (std::uint32_t f = 0; f < workload.forwards;) {
    if (!is_of_layer(workload, f)) {
      ++f;
      continue;
    }
    std::string name;
    any_part(layer(workload, f), [&](std::string_view part) {
      name = part;
      return true;
    });
    const std::uint32_t end = end_of(workload, f, name);
    const bool is_block = layer(workload, f) != layer(workload, end - 1);
    (is_block ? blocks : layers).push_back({f, end, name, {}});
    f = end;
  }
  return blocks.empty() ? layers : blocks;
}

}  // namespace plimsoll
