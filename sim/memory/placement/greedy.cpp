#include "memory/placement/greedy.hpp"

#include "engine/wide.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <tuple>

namespace plimsoll {

namespace {

struct NamedRule {
  PlacementRule rule;
  const char* name;
};
constexpr std::array kRules{NamedRule{PlacementRule::by_size, "greedy-by-size"},
                            NamedRule{PlacementRule::by_lifetime, "greedy-by-lifetime"},
                            NamedRule{PlacementRule::by_area, "greedy-by-area"},
                            NamedRule{PlacementRule::by_start, "greedy-by-start"},
                            NamedRule{PlacementRule::xla_spatial, "xla-spatial"},
                            NamedRule{PlacementRule::xla_temporal, "xla-temporal"},
                            NamedRule{PlacementRule::best, "best"}};

/// What is placed, by offset: a list that is scanned from below for each new buffer.
class Shelf {
 public:
  explicit Shelf(std::size_t buffers) { placed_.reserve(buffers); }

  void add(const TimedBuffer& buffer, Bytes offset) {
    if (buffer.size == Bytes{}) return;  // in nobody's way
    const Placed placed{buffer.lower, buffer.upper, offset.count(), (offset + buffer.size).count()};
    placed_.insert(std::ranges::upper_bound(placed_, placed.begin, {}, &Placed::begin), placed);
  }

  /// The lowest offset at which the buffer overlaps nothing.
  [[nodiscard]] Bytes lowest_gap(const TimedBuffer& buffer) const {
    std::int64_t top = 0;
    for (const Placed& it : placed_) {
      if (!is_beside(it, buffer)) continue;
      if (it.begin - top >= buffer.size.count()) break;
      top = std::max(top, aligned_up(it.end, buffer.alignment.count()));
    }
    return Bytes{top};
  }

  /// The offset in the smallest gap that holds it; of equal ones the lowest, above all if none does.
  [[nodiscard]] Bytes smallest_gap(const TimedBuffer& buffer) const {
    std::int64_t top = 0, offset = -1, smallest = std::numeric_limits<std::int64_t>::max();
    for (const Placed& it : placed_) {
      if (!is_beside(it, buffer)) continue;
      const std::int64_t gap = it.begin - top;
      if (gap >= buffer.size.count() && gap < smallest) {
        smallest = gap;
        offset = top;
      }
      top = std::max(top, aligned_up(it.end, buffer.alignment.count()));
    }
    return Bytes{offset < 0 ? top : offset};
  }

 private:
  struct Placed {
    std::int64_t lower, upper, begin, end;
  };
  static bool is_beside(const Placed& placed, const TimedBuffer& buffer) {
    return placed.lower < buffer.upper && buffer.lower < placed.upper;
  }

  std::vector<Placed> placed_;
};

/// What a rule takes first: the smallest key.
using Order = std::tuple<Signed128, std::int64_t, std::int64_t>;

Order key_of(const TimedBuffer& buffer, std::size_t at, PlacementRule rule) {
  const auto listed = static_cast<std::int64_t>(at);
  const std::int64_t size = buffer.size.count();
  const std::int64_t lifetime = buffer.upper - buffer.lower;
  switch (rule) {
    case PlacementRule::by_lifetime:
      return {-Signed128{lifetime}, 0, listed};
    case PlacementRule::by_area:
      return {-Signed128{size} * lifetime, 0, listed};
    case PlacementRule::by_start:
      return {buffer.lower, -size, listed};
    case PlacementRule::xla_spatial:
      return {-Signed128{size}, -lifetime, listed};
    case PlacementRule::xla_temporal:
      return {-Signed128{lifetime}, -size, listed};
    default:
      return {-Signed128{size}, 0, -listed};
  }
}

std::vector<std::size_t> order_of(std::span<const TimedBuffer> buffers, PlacementRule rule) {
  std::vector<std::pair<Order, std::size_t>> keys;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (!buffers[i].offset) keys.emplace_back(key_of(buffers[i], i, rule), i);
  std::ranges::sort(keys);
  std::vector<std::size_t> order;
  order.reserve(keys.size());
  for (const auto& [key, i] : keys) order.push_back(i);
  return order;
}

Offsets place_in_order(std::span<const TimedBuffer> buffers, PlacementRule rule) {
  const bool takes_smallest =
      rule == PlacementRule::xla_spatial || rule == PlacementRule::xla_temporal;
  Offsets offsets(buffers.size());
  Shelf shelf(buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].offset) continue;
    offsets[i] = *buffers[i].offset;
    shelf.add(buffers[i], offsets[i]);
  }
  for (const std::size_t i : order_of(buffers, rule)) {
    offsets[i] = takes_smallest ? shelf.smallest_gap(buffers[i]) : shelf.lowest_gap(buffers[i]);
    shelf.add(buffers[i], offsets[i]);
  }
  return offsets;
}

}  // namespace

std::string to_text(PlacementRule rule) {
  return std::ranges::find(kRules, rule, &NamedRule::rule)->name;
}

std::optional<PlacementRule> placement_rule(std::string_view name) {
  const auto found =
      std::ranges::find_if(kRules, [&](const NamedRule& it) { return it.name == name; });
  if (found == kRules.end()) return std::nullopt;
  return found->rule;
}

std::vector<std::string> placement_rule_names() {
  std::vector<std::string> names;
  for (const NamedRule& it : kRules) names.emplace_back(it.name);
  return names;
}

Offsets place_by_rule(std::span<const TimedBuffer> buffers, PlacementRule rule) {
  if (rule != PlacementRule::best) return place_in_order(buffers, rule);
  Offsets best = place_in_order(buffers, PlacementRule::by_size);
  for (const NamedRule& it : kRules) {
    if (it.rule == PlacementRule::best || it.rule == PlacementRule::by_size) continue;
    Offsets other = place_in_order(buffers, it.rule);
    if (end_of(buffers, other) < end_of(buffers, best)) best = std::move(other);
  }
  return best;
}

}  // namespace plimsoll
