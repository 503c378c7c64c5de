#include "policy/remat/named_blocks.hpp"

#include "base/wildcard.hpp"
#include "policy/entry.hpp"
#include "workload/layer_name.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {
namespace {

std::string_view layer(const Workload& workload, std::uint32_t forward) {
  return layer_of(workload.operators[forward]);
}

/// The parts of a path from its beginning, the shortest first: a/b/c has a, a/b and a/b/c. Calls
/// `visit` until it returns true.
bool any_part(std::string_view path, auto visit) {
  // ONNX files may begin their paths with a `/`.
  for (std::size_t slash = path.find('/', 1); slash != std::string_view::npos;
       slash = path.find('/', slash + 1))
    if (visit(path.substr(0, slash))) return true;
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

[[noreturn]] void refuse_name(const Workload& workload, const Located<std::string>& name,
                              const std::string& behind) {
  std::vector<std::string> known;
  for (std::uint32_t f = 0; f < workload.forwards; ++f)
    any_part(layer(workload, f), [&](std::string_view part) {
      if (known.empty() || known.back() != part) known.emplace_back(part);
      return false;
    });
  refuse_parameter(
      name.where,
      fmt::format("workload `{}` has no block or layer `{}`{}", workload.name, name.value, behind),
      did_you_mean(name.value, known));
}

std::uint32_t end_of_range(const Workload& workload, std::uint32_t begin,
                           const Located<std::string>& to) {
  for (std::uint32_t f = begin; f < workload.forwards; ++f)
    if (const auto name = named_part(to.value, layer(workload, f)); !name.empty())
      return end_of(workload, f, name);
  refuse_name(workload, to, fmt::format(" from `{}` on", layer(workload, begin)));
}

void add(std::vector<ForwardRange>& ranges, const Workload& workload, const BlockNames& names) {
  const std::size_t before = ranges.size();
  for (std::uint32_t f = 0; f < workload.forwards;) {
    const std::string_view name = named_part(names.from.value, layer(workload, f));
    if (name.empty()) {
      ++f;
      continue;
    }
    const std::uint32_t own = end_of(workload, f, name);
    const std::uint32_t end = names.to ? end_of_range(workload, f, *names.to) : own;
    ranges.push_back({f, end, std::string(name), names.from.where});
    f = std::max(own, end);
  }
  if (ranges.size() == before) refuse_name(workload, names.from, "");
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
    (end > f + 1 ? blocks : layers).push_back({f, end, name, {}});
    f = end;
  }
  return blocks.empty() ? layers : blocks;
}

}  // namespace plimsoll
