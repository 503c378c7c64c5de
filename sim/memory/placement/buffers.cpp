#include "memory/placement/buffers.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <tuple>

namespace plimsoll {

namespace {

std::vector<std::size_t> by_lower(std::span<const TimedBuffer> buffers) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::tuple(buffers[i].lower, i); });
  return order;
}

bool share_bytes(const TimedBuffer& a, Bytes at_a, const TimedBuffer& b, Bytes at_b) {
  return a.size > Bytes{} && b.size > Bytes{} && at_a < at_b + b.size && at_b < at_a + a.size;
}

/// With sizes rounded up to multiples of `unit`.
std::int64_t load_in_units(std::span<const TimedBuffer> buffers, std::int64_t unit) {
  // Ends come before starts of the same time.
  std::vector<std::pair<std::int64_t, std::int64_t>> events;
  events.reserve(2 * buffers.size());
  for (const TimedBuffer& it : buffers) {
    const std::int64_t size = aligned_up(it.size.count(), unit);
    events.emplace_back(it.lower, size);
    events.emplace_back(it.upper, -size);
  }
  std::ranges::sort(events);
  std::int64_t alive = 0, most = 0;
  for (const auto& [time, change] : events) most = std::max(most, alive += change);
  return most;
}

/// Every offset is a multiple of the unit, so all below the topmost buffer take whole units.
std::int64_t aligned_load(std::span<const TimedBuffer> buffers) {
  std::int64_t unit = 0, most_lost = 0;
  for (const TimedBuffer& it : buffers) unit = std::gcd(unit, it.alignment.count());
  if (unit <= 1) return 0;
  for (const TimedBuffer& it : buffers)
    most_lost = std::max(most_lost, aligned_up(it.size.count(), unit) - it.size.count());
  return load_in_units(buffers, unit) - most_lost;
}

}  // namespace

Bytes load_of(std::span<const TimedBuffer> buffers) {
  return Bytes{load_in_units(buffers, 1)};
}

Bytes lowest_end(std::span<const TimedBuffer> buffers) {
  Bytes lowest{std::max(load_in_units(buffers, 1), aligned_load(buffers))};
  for (const TimedBuffer& it : buffers)
    lowest = std::max(lowest, it.offset.value_or(Bytes{}) + it.size);
  return lowest;
}

Bytes end_of(std::span<const TimedBuffer> buffers, std::span<const Bytes> offsets) {
  assert(buffers.size() == offsets.size());
  Bytes end;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    end = std::max(end, offsets[i] + buffers[i].size);
  return end;
}

std::optional<Collision> collision_in(std::span<const TimedBuffer> buffers,
                                      std::span<const Bytes> offsets) {
  assert(buffers.size() == offsets.size());
  std::vector<std::size_t> alive;
  for (const std::size_t next : by_lower(buffers)) {
    std::erase_if(alive, [&](std::size_t i) { return buffers[i].upper <= buffers[next].lower; });
    for (const std::size_t other : alive)
      if (share_bytes(buffers[other], offsets[other], buffers[next], offsets[next]))
        return Collision{other, next};
    alive.push_back(next);
  }
  return std::nullopt;
}

std::optional<Collision> given_collision(std::span<const TimedBuffer> buffers) {
  std::vector<std::size_t> given;
  std::vector<TimedBuffer> those;
  Offsets offsets;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].offset) continue;
    given.push_back(i);
    those.push_back(buffers[i]);
    offsets.push_back(*buffers[i].offset);
  }
  auto found = collision_in(those, offsets);
  if (found) found = Collision{given[found->first], given[found->second]};
  return found;
}

}  // namespace plimsoll
