#include "policy/remat/segments/named_blocks.hpp"

#include "base/dense_id.hpp"
#include "base/names_hint.hpp"
#include "base/utf8.hpp"
#include "base/wildcard.hpp"
#include "policy/interface/entry.hpp"
#include "workload/network/layer_name.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {
namespace {

constexpr std::size_t kLongestName = 200;  // in a message

std::string_view layer(const Workload& workload, std::uint32_t forward) {
  return layer_of(workload.operators[forward]);
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

/// What of the path the pattern names; empty: nothing.
std::string_view named_part(std::string_view pattern, std::string_view path) {
  std::string_view found;
  any_part(path, [&](std::string_view part) {
    if (matches(pattern, part)) found = part;
    return !found.empty();
  });
  return found;
}

/// Behind the last forward from `begin` on that is in the block of that name.
std::uint32_t end_of(const Workload& workload, std::uint32_t begin, std::string_view name) {
  std::uint32_t end = begin;
  while (end < workload.forwards &&
         any_part(layer(workload, end), [&](std::string_view part) { return part == name; }))
    ++end;
  return end;
}

/// The first forward from `begin` on that the pattern names; kNone: there is none.
std::uint32_t find_named(const Workload& workload, std::uint32_t begin,
                         const std::string& pattern) {
  for (std::uint32_t f = begin; f < workload.forwards; ++f)
    if (!named_part(pattern, layer(workload, f)).empty()) return f;
  return kNone;
}

[[noreturn]] void refuse_name(const Workload& workload, const Located<std::string>& name) {
  std::vector<std::string> known;
  for (std::uint32_t f = 0; f < workload.forwards; ++f)
    any_part(layer(workload, f), [&](std::string_view part) {
      if (known.empty() || known.back() != part) known.emplace_back(part);
      return false;
    });
  refuse_parameter(name.where,
                   fmt::format("workload `{}` has no block or layer `{}`", workload.name,
                               visible_utf8(name.value, kLongestName)),
                   hint_of_names(name.value, known));
}

[[noreturn]] void refuse_range(const Workload& workload, const BlockNames& names) {
  if (find_named(workload, 0, names.from.value) == kNone) refuse_name(workload, names.from);
  if (find_named(workload, 0, names.to->value) == kNone) refuse_name(workload, *names.to);
  refuse_parameter(names.to->where,
                   fmt::format("no `{}` comes after `{}` in workload `{}`; expected the last of a "
                               "run of layers, in the order in which they run",
                               names.to->value, names.from.value, workload.name));
}

void add(std::vector<ForwardRange>& ranges, const Workload& workload, const BlockNames& names) {
  const std::size_t before = ranges.size();
  for (std::uint32_t f = find_named(workload, 0, names.from.value); f != kNone;) {
    const std::string_view name = named_part(names.from.value, layer(workload, f));
    const std::uint32_t own = end_of(workload, f, name);
    std::uint32_t end = own;
    if (names.to) {
      const std::uint32_t last = find_named(workload, f, names.to->value);
      if (last == kNone) break;  // as a `block_*` behind the last `to`
      end = end_of(workload, last, named_part(names.to->value, layer(workload, last)));
    }
    ranges.push_back({f, end, std::string(name), names.from.where});
    f = find_named(workload, std::max(own, end), names.from.value);
  }
  if (ranges.size() > before) return;
  if (names.to) refuse_range(workload, names);
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

std::vector<ForwardRange> named_blocks(const Workload& workload,
                                       std::span<const BlockNames> names) {
  std::vector<ForwardRange> ranges;
  for (const BlockNames& it : names) add(ranges, workload, it);
  std::ranges::stable_sort(ranges, {}, &ForwardRange::begin);
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin < ranges[i - 1].end)
      refuse_parameter(
          ranges[i].where,
          fmt::format("layer `{}` is in two of the blocks, `{}` and `{}`; expected "
                      "blocks that have nothing in common",
                      layer(workload, ranges[i].begin), ranges[i - 1].name, ranges[i].name));
  return ranges;
}

std::vector<ForwardRange> outermost_blocks(const Workload& workload) {
  std::vector<ForwardRange> blocks, layers;
  for (std::uint32_t f = 0; f < workload.forwards;) {
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
