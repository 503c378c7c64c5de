/// When saved tensors lie idle in a step that nothing delays, and when copies must start to be back
/// in time: what systems that swap from a recorded iteration decide with.
#pragma once

#include "policy/offload/copies/transfers.hpp"

#include <span>
#include <vector>

namespace plimsoll {

/// The times of policy `none`, operator by operator, and of copies that nothing delays.
class SwapTiming {
 public:
  SwapTiming(const Problem& problem, const OffloadMemories& memories);

  [[nodiscard]] Time start(std::uint32_t op) const { return starts_[op]; }
  [[nodiscard]] Time end(std::uint32_t op) const { return starts_[op + 1]; }
  [[nodiscard]] Time copy_out(Bytes bytes) const;
  [[nodiscard]] Time copy_in(Bytes bytes) const;

  /// From the last use in a forward to the first in a backward.
  [[nodiscard]] Time idle(const SavedTensor& tensor) const {
    return start(tensor.first_backward_use) - end(tensor.last_forward_use);
  }

  /// Each tensor leaves right after its last forward use and comes back as late as possible without
  /// collision: from the last deadline to the first, a copy ends when its tensor is used or the
  /// next copy begins; it is issued at the last operator that starts no later than it must. In the
  /// order of the first backward uses. O(tensors log(tensors + operators)).
  [[nodiscard]] std::vector<SwapInterval> latest(std::vector<SavedTensor> tensors) const;

 private:
  const Route *out_, *in_;
  std::vector<Time> starts_;  ///< by operator, and the end of the last
};

/// The same tensors, fetched only once the operator before the use has started.
[[nodiscard]] std::vector<SwapInterval> on_demand(std::span<const SavedTensor> tensors);

/// The `late` trips, of on_demand(), issued earlier as far as the loads leave room within `budget`
/// and no earlier than the `early` ones, of latest() for the same tensors; still in the order of
/// their uses. What fits on demand fits like this. O(trips x operators).
[[nodiscard]] std::vector<SwapInterval> as_early_as_fits(std::span<const SwapInterval> early,
                                                         std::span<const SwapInterval> late,
                                                         const LoadProfile& profile, Bytes budget);

}  // namespace plimsoll
