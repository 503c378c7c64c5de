#include "policy/offload/copies/swap_timing.hpp"

#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <cassert>

namespace plimsoll {

SwapTiming::SwapTiming(const Problem& problem, const OffloadMemories& memories)
    : out_(problem.topology.route(memories.home, memories.storage)),
      in_(problem.topology.route(memories.storage, memories.home)) {
  Time now;
  for (const Time duration : durations(problem.workload, problem.platform, memories.processor)) {
    starts_.push_back(now);
    now += duration;
  }
  starts_.push_back(now);
}

Time SwapTiming::copy_out(Bytes bytes) const {
  return out_->latency + transfer_time(bytes, out_->bandwidth);
}

Time SwapTiming::copy_in(Bytes bytes) const {
  return in_->latency + transfer_time(bytes, in_->bandwidth);
}

std::vector<SwapInterval> SwapTiming::latest(std::vector<SavedTensor> tensors) const {
  std::ranges::stable_sort(tensors, {}, &SavedTensor::first_backward_use);
  std::vector<SwapInterval> trips;
  Time busy_from = starts_.back();
  for (std::size_t i = tensors.size(); i-- > 0;) {
    const SavedTensor& it = tensors[i];
    const Time back = std::min(start(it.first_backward_use), busy_from);
    const Time copy = copy_in(it.bytes);
    busy_from = back > copy ? back - copy : Time{};
    const auto after = std::ranges::upper_bound(starts_, busy_from) - starts_.begin();
    const auto at = static_cast<std::uint32_t>(after - 1);
    trips.push_back({it.tensor, it.bytes, it.last_forward_use, it.last_forward_use,
                     std::clamp(at, it.last_forward_use, it.first_backward_use - 1)});
  }
  std::ranges::reverse(trips);
  return trips;
}

std::vector<SwapInterval> on_demand(std::span<const SavedTensor> tensors) {
  std::vector<SwapInterval> trips;
  for (const SavedTensor& it : tensors)
    trips.push_back(
        {it.tensor, it.bytes, it.last_forward_use, it.last_forward_use, it.first_backward_use - 1});
  std::ranges::stable_sort(trips, {}, &SwapInterval::in_after);
  return trips;
}

std::vector<SwapInterval> as_early_as_fits(std::span<const SwapInterval> early,
                                           std::span<const SwapInterval> late,
                                           const LoadProfile& profile, Bytes budget) {
  assert(std::ranges::equal(early, late, {}, &SwapInterval::tensor, &SwapInterval::tensor));
  std::vector<SwapInterval> trips(late.begin(), late.end());
  std::vector<Bytes> loads = profile.loads_with(trips);
  std::uint32_t before = 0;  // where the copy before is issued
  for (std::size_t i = 0; i < trips.size(); ++i) {
    std::uint32_t& at = trips[i].in_after;
    const std::uint32_t first = std::max(early[i].in_after, before);
    for (; at > first && loads[at] + trips[i].bytes <= budget; --at) loads[at] += trips[i].bytes;
    before = at;
  }
  return trips;
}

}  // namespace plimsoll
