#include "policy/pipeline/periodic/modular_tasks.hpp"

#include <algorithm>
#include <numeric>

namespace plimsoll {

namespace {

/// start[to] >= start[from] + least.
struct Difference {
  std::uint32_t from, to;
  Time least;
};

std::vector<Difference> differences(const ModularTasks& tasks, const PeriodCounts& counts,
                                    Time period) {
  std::vector<Difference> all;
  for (std::uint32_t task = 1; task < tasks.lasts.size(); ++task)
    all.push_back({task - 1, task, tasks.lasts[task - 1]});
  for (std::size_t i = 0; i < tasks.apart.size(); ++i) {
    const auto [first, second] = tasks.apart[i];
    all.push_back({first, second, tasks.lasts[first] + period * counts[i]});
    all.push_back({second, first, tasks.lasts[second] - period * (counts[i] + 1)});
  }
  for (std::size_t i = 0; i < tasks.spans.size(); ++i) {
    const auto [first, second] = tasks.spans[i];
    all.push_back({second, first, tasks.lasts[second] - period * counts[tasks.apart.size() + i]});
  }
  return all;
}

}  // namespace

PeriodCounts one_at_a_time(const ModularTasks& tasks) {
  PeriodCounts counts(tasks.counts());
  std::fill(counts.begin() + std::ssize(tasks.apart), counts.end(), 1);
  return counts;
}

Bytes bytes_in(const ModularTasks::Room& room, const PeriodCounts& counts) {
  Bytes sum = room.fixed;
  for (const ModularTasks::Kept& kept : room.kept) {
    std::int64_t alive = kept.alive;
    for (const std::uint32_t count : kept.plus) alive += counts[count];
    for (const std::uint32_t count : kept.minus) alive -= counts[count];
    sum += kept.each * alive;
  }
  return sum;
}

bool fits(const ModularTasks& tasks, const PeriodCounts& counts) {
  return std::ranges::all_of(tasks.rooms, [&](const ModularTasks::Room& room) {
    return bytes_in(room, counts) <= room.limit;
  });
}

std::optional<std::vector<Time>> earliest_starts(const ModularTasks& tasks,
                                                 const PeriodCounts& counts, Time period) {
  const std::vector<Difference> all = differences(tasks, counts, period);
  std::vector<Time> starts(tasks.lasts.size());
  for (std::size_t round = 0; round <= starts.size(); ++round) {
    tasks.work.add(all.size());
    bool moved = false;
    for (const Difference& it : all)
      if (const Time least = starts[it.from] + it.least; least > starts[it.to]) {
        starts[it.to] = least;
        moved = true;
      }
    if (!moved) return starts;
  }
  return std::nullopt;
}

std::optional<Time> least_period(const ModularTasks& tasks, const PeriodCounts& counts, Time low) {
  // A circle of differences passes every task once at most, so its length is that of all.
  Time high = std::accumulate(tasks.lasts.begin(), tasks.lasts.end(), low);
  if (!earliest_starts(tasks, counts, high)) return std::nullopt;
  while (low < high) {
    const Time middle{low.count() + (high.count() - low.count()) / 2};
    if (earliest_starts(tasks, counts, middle))
      high = middle;
    else
      low = middle + Time{1};
  }
  return low;
}

}  // namespace plimsoll
