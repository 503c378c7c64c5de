#include "policy/claims/occupancy.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// Most are in order already.
void sort_by(const Moments& moments, std::span<std::uint32_t> ids) {
  const auto moment_of = [&](std::uint32_t id) { return moments[id]; };
  if (!std::ranges::is_sorted(ids, {}, moment_of)) std::ranges::sort(ids, {}, moment_of);
}

/// Sources that leave byte by byte, asked about at later and later moments.
class ReleasedByNow {
 public:
  explicit ReleasedByNow(std::vector<TimedRelease>& progressive) : progressive_(progressive) {
    std::ranges::sort(progressive, {}, &TimedRelease::open);
  }

  /// What has left of those that are not over.
  std::int64_t left_by(Moment now) {
    for (; next_ < progressive_.size() && progressive_[next_].open <= now; ++next_)
      open_.push_back(&progressive_[next_]);
    std::erase_if(open_, [&](const TimedRelease* it) { return it->over <= now; });
    std::int64_t left = 0;
    for (const TimedRelease* it : open_) left += it->release.free_by(now.time).count();
    return left;
  }

 private:
  const std::vector<TimedRelease>& progressive_;  ///< by when they open
  std::size_t next_ = 0;
  std::vector<const TimedRelease*> open_;
};

}  // namespace

Occupancy::Occupancy(const Plan& plan, const Problem& problem, Timeline& timeline)
    : plan_(plan),
      workload_(problem.workload),
      timeline_(timeline),
      initial_(problem.platform.memories.size()),
      starting_(initial_.size(), numbers_below(plan.steps.size()),
                [&](std::uint32_t s) { return memory_of(plan.steps[s], plan, problem.platform); }),
      ending_(initial_.size(), numbers_below(plan.steps.size()),
              [&](std::uint32_t s) {
                const Step& step = plan.steps[s];
                const bool works = workspace_of(step, problem.workload) > Bytes{};
                return works ? memory_of(step, plan, problem.platform) : kNone;
              }),
      freed_(initial_.size(), timeline.freed_order,
             [&](std::uint32_t b) { return index(plan.buffers[b].memory); }) {
  for (const BufferId buffer : plan.initial)
    initial_[index(plan[buffer].memory)] += bytes(index(buffer));
}

Bytes Occupancy::peak(std::uint32_t memory) {
  const auto starting = starting_.of(memory), ending = ending_.of(memory),
             freed = freed_.of(memory);
  sort_by(timeline_.starts, starting);
  sort_by(timeline_.ends, ending);
  sort_by(timeline_.freed, freed);
  ReleasedByNow released(timeline_.progressive[memory]);
  std::size_t next_end = 0, next_free = 0;
  std::int64_t now = 0, peak = 0;
  const auto take = [&](Moment when, std::int64_t bytes_taken) {
    for (; next_end < ending.size() && timeline_.ends[ending[next_end]] <= when; ++next_end)
      now -= workspace(ending[next_end]);
    for (; next_free < freed.size() && timeline_.freed[freed[next_free]] <= when; ++next_free)
      now -= bytes(freed[next_free]);
    now += bytes_taken;
    peak = std::max(peak, now - released.left_by(when));
  };
  take(Moment{}, initial_[memory]);
  for (const std::uint32_t step : starting) take(timeline_.starts[step], taken_by(step));
  return Bytes{peak};
}

std::int64_t Occupancy::bytes(std::uint32_t buffer) const {
  return workload_[plan_.buffers[buffer].tensor].bytes.count();
}

std::int64_t Occupancy::workspace(std::uint32_t step) const {
  return workspace_of(plan_.steps[step], workload_).count();
}

std::int64_t Occupancy::taken_by(std::uint32_t step) const {
  std::int64_t sum = workspace(step);
  for (const BufferId buffer : plan_.list(plan_.steps[step].writes)) sum += bytes(index(buffer));
  return sum;
}

}  // namespace plimsoll
