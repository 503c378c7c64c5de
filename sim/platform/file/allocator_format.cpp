#include "platform/file/allocator_format.hpp"

#include "memory/bfc.hpp"
#include "memory/caching.hpp"
#include "memory/placement/place.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {
namespace {

const std::vector<std::string>& allocators_to_come() {
  static const std::vector<std::string> names{"cuda-malloc-async"};
  return names;
}

std::string available() {
  std::vector<std::string> names;
  for (const AllocatorKind kind : allocator_kinds())
    names.push_back(fmt::format("`{}`", to_text(kind)));
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("{} and {}", fmt::join(names, ", "), last);
}

/// Names what is not there yet, so that nobody searches for a typing error.
Format<AllocatorSettings> allocator_by_name() {
  std::vector<std::pair<std::string, AllocatorSettings>> words;
  for (const AllocatorKind kind : allocator_kinds())
    words.emplace_back(to_text(kind), AllocatorSettings{.kind = kind});
  const auto known = one_of<AllocatorSettings>(std::move(words));
  Format<AllocatorSettings> format = known;
  format.read = [=](const Node& node,
                    Diagnostics& diagnostics) -> std::optional<AllocatorSettings> {
    if (node.is_scalar() && std::ranges::count(allocators_to_come(), node.scalar()) > 0) {
      diagnostics.error(node.where(),
                        fmt::format("allocator `{}` is not available yet; available are {}",
                                    node.scalar(), available()));
      return std::nullopt;
    }
    return known.read(node, diagnostics);
  };
  return format;
}

/// What `inner` reads, if `count` of it is a power of two.
template <class T, class Count>
Format<T> power_of_two(Format<T> inner, Count count) {
  Format<T> format = inner;
  format.read = [=](const Node& node, Diagnostics& diagnostics) -> std::optional<T> {
    const auto value = inner.read(node, diagnostics);
    if (!value || std::has_single_bit(static_cast<std::uint64_t>(count(*value)))) return value;
    diagnostics.error(node.where(),
                      fmt::format("found {}, expected a power of two", node.describe()));
    return std::nullopt;
  };
  return format;
}

/// A size of at least `least`.
Format<Bytes> at_least(Bytes least, Unlimited unlimited, const std::string& expected) {
  const auto size = quantity<Bytes>(unlimited);
  Format<Bytes> format = size;
  format.read = [=](const Node& node, Diagnostics& diagnostics) -> std::optional<Bytes> {
    const auto value = size.read(node, diagnostics);
    if (!value || *value >= least) return value;
    diagnostics.error(node.where(),
                      fmt::format("found {}, expected {}", node.describe(), expected));
    return std::nullopt;
  };
  return format;
}

Format<CachingSettings> caching_settings() {
  using Settings = CachingSettings;
  const auto oversize = at_least(kLargeSegment + Bytes{1}, Unlimited::allowed,
                                 "more than 20 MiB, the size of a segment");
  const auto divisions =
      power_of_two(integer(1, kMaxDivisions), [](std::int64_t count) { return count; });
  const std::vector<std::string> keys{"expandable_segments", "max_split_size",
                                      "garbage_collection_threshold"};
  return Record<Settings>("settings of `caching`",
                          "PyTorch's allocator for CUDA devices (commit 001074d2).")
      .optional("max_split_size", &Settings::max_split_size, oversize,
                "blocks of this size and more are not cut (unlimited)")
      .optional("roundup_power2_divisions", &Settings::roundup_power2_divisions, divisions,
                "requests are rounded up to steps of a power of two / this; 1: to 512 B (1)")
      .optional("garbage_collection_threshold", &Settings::garbage_collection_threshold,
                efficiency(),
                "share of the memory above which old segments are given back first (never)")
      .optional("expandable_segments", &Settings::expandable_segments, boolean(),
                "one growing segment per stream and pool (false)")
      .check(keys,
             [keys](Settings& it, const Node& node, Diagnostics& diagnostics) {
               const bool is_set =
                   !it.max_split_size.is_unlimited() || it.garbage_collection_threshold > Ratio{};
               if (!it.expandable_segments || !is_set) return;
               diagnostics.error(place_of(node, keys),
                                 "`expandable_segments` leaves nothing to do for "
                                 "`max_split_size` and `garbage_collection_threshold`, which are "
                                 "about separate segments; leave them out");
             })
      .format();
}

Format<BfcSettings> bfc_settings() {
  using Settings = BfcSettings;
  return Record<Settings>("settings of `bfc`", "TensorFlow's allocator for devices.")
      .optional("growth", &Settings::growth, boolean(),
                "regions are taken as they are needed, each twice as large as the one before, "
                "instead of one of the whole memory (false)")
      .optional("first_region", &Settings::first_region,
                at_least(kBfcUnit, Unlimited::refused, "at least 256 B"),
                "the first region with `growth` (2 MiB)")
      .optional("give_back_regions", &Settings::give_back_regions, boolean(),
                "free regions are given back before a request is refused (false)")
      .check({"growth", "first_region", "give_back_regions"},
             [](Settings& it, const Node& node, Diagnostics& diagnostics) {
               if (it.growth) return;
               for (const char* key : {"first_region", "give_back_regions"})
                 if (const Node* value = node.find(key); value != nullptr)
                   diagnostics.error(value->where(),
                                     fmt::format("`{}` is about regions that are taken as they are "
                                                 "needed; expected `growth: true` beside it",
                                                 key));
             })
      .format();
}

struct ArenaSpec {
  Bytes alignment{1};
};

Format<Bytes> alignment_format() {
  return power_of_two(at_least(Bytes{1}, Unlimited::refused, "more than zero"),
                      [](Bytes bytes) { return bytes.count(); });
}

Format<ArenaSpec> arena_settings(AllocatorKind kind) {
  return Record<ArenaSpec>(fmt::format("settings of `{}`", to_text(kind)), "An arena.")
      .optional("alignment", &ArenaSpec::alignment, alignment_format(),
                "of every block, a power of two (1 B)")
      .format();
}

struct StaticSpec {
  PlacedSettings placed;
  Bytes alignment{1};
};

Format<StaticSpec> static_settings() {
  std::vector<std::pair<std::string, PlacedSettings>> methods;
  for (const std::string& name : placement_methods())
    methods.emplace_back(name, PlacedSettings{.rule = placement_rule(name)});
  methods.emplace_back("olla", PlacedSettings{.rule = std::nullopt, .plans_order = true});
  return Record<StaticSpec>("settings of `static`", "A placement made before the run.")
      .optional(
          "method", &StaticSpec::placed, one_of<PlacedSettings>(std::move(methods)),
          "a rule; `exact`: a search for the lowest end; `olla`: that, after the order of the "
          "operators was planned for least peak memory (best)")
      .optional("alignment", &StaticSpec::alignment, alignment_format(),
                "of every block, a power of two (1 B)")
      .format();
}

struct NoSettings {};

/// As it is written: `{caching: {...}}`.
struct WithSettings {
  std::optional<NoSettings> ideal;
  std::optional<ArenaSpec> best_fit, first_fit;
  std::optional<CachingSettings> caching;
  std::optional<BfcSettings> bfc;
  std::optional<StaticSpec> placed;
};

AllocatorSettings settings_of(const WithSettings& given) {
  if (given.best_fit)
    return {.kind = AllocatorKind::best_fit, .alignment = given.best_fit->alignment};
  if (given.first_fit)
    return {.kind = AllocatorKind::first_fit, .alignment = given.first_fit->alignment};
  if (given.caching) return {.kind = AllocatorKind::caching, .caching = *given.caching};
  if (given.bfc) return {.kind = AllocatorKind::bfc, .bfc = *given.bfc};
  if (given.placed)
    return {.kind = AllocatorKind::placed,
            .alignment = given.placed->alignment,
            .placed = given.placed->placed};
  return {};
}

}  // namespace

Format<AllocatorSettings> allocator_format() {
  using Given = WithSettings;
  std::vector<std::string> keys;
  for (const AllocatorKind kind : allocator_kinds()) keys.emplace_back(to_text(kind));
  const auto with_settings =
      Record<Given>("allocator", "One allocator with its settings.")
          .optional("ideal", &Given::ideal,
                    Record<NoSettings>("settings of `ideal`", "There are none.").format(),
                    "exact accounting, without addresses")
          .optional("best-fit", &Given::best_fit, arena_settings(AllocatorKind::best_fit),
                    "an arena: the smallest hole that is large enough")
          .optional("first-fit", &Given::first_fit, arena_settings(AllocatorKind::first_fit),
                    "an arena: the hole at the lowest address")
          .optional("caching", &Given::caching, caching_settings(), "PyTorch's")
          .optional("bfc", &Given::bfc, bfc_settings(), "TensorFlow's")
          .optional("static", &Given::placed, static_settings(), "placed before the run")
          .check(keys,
                 [](Given&, const Node& node, Diagnostics& diagnostics) {
                   if (node.entries().size() == 1) return;
                   diagnostics.error(node.where(),
                                     fmt::format("found {} allocators, expected one of {}",
                                                 node.entries().size(), available()));
                 })
          .format();
  return either<AllocatorSettings>(
      allocator_by_name(), mapped<WithSettings, AllocatorSettings>(with_settings, settings_of));
}

std::string_view to_text(AllocatorKind kind) {
  switch (kind) {
    case AllocatorKind::ideal:
      return "ideal";
    case AllocatorKind::best_fit:
      return "best-fit";
    case AllocatorKind::first_fit:
      return "first-fit";
    case AllocatorKind::caching:
      return "caching";
    case AllocatorKind::bfc:
      return "bfc";
    case AllocatorKind::placed:
      return "static";
  }
  return "";
}

const std::vector<AllocatorKind>& allocator_kinds() {
  static const std::vector<AllocatorKind> kinds{AllocatorKind::ideal,     AllocatorKind::best_fit,
                                                AllocatorKind::first_fit, AllocatorKind::caching,
                                                AllocatorKind::bfc,       AllocatorKind::placed};
  return kinds;
}

}  // namespace plimsoll
