/// Which steps make and read each buffer of a plan.
#pragma once

#include "plan/core/plan.hpp"

#include <optional>
#include <span>
#include <vector>

namespace plimsoll {

inline constexpr StepId kNoStep{0xFFFFFFFF};

/// The users of every buffer, gathered in O(steps + reads).
class Readers {
 public:
  explicit Readers(const Plan& plan);

  /// The step that writes `buffer`, or kNoStep for an initial one.
  [[nodiscard]] StepId producer(BufferId buffer) const {
    return producer_[static_cast<std::size_t>(buffer)];
  }
  /// Its readers in issue order.
  [[nodiscard]] std::span<const StepId> of(BufferId buffer) const {
    const auto b = static_cast<std::size_t>(buffer);
    return std::span(steps_).subspan(begin_[b], begin_[b + 1] - begin_[b]);
  }
  /// The copy that takes the buffer away (`whole` or `progressive`), or kNoStep.
  [[nodiscard]] StepId taken_by(BufferId buffer) const {
    return taken_by_[static_cast<std::size_t>(buffer)];
  }

 private:
  std::vector<std::uint32_t> begin_;
  std::vector<StepId> steps_;
  std::vector<StepId> producer_;
  std::vector<StepId> taken_by_;
};

/// Whether `value` of a microbatch, which matters where not all share it, is in `buffer`, and the
/// buffer in `memory`.
[[nodiscard]] bool holds_value(const Buffer& buffer, TensorId value, std::uint32_t microbatch,
                               MemoryId memory, const Workload& workload);

/// The last of `steps` (in issue order) in every stream, and every copy, in issue order. O(steps^2)
/// in the number of lanes they are spread over, which is one or two in practice.
[[nodiscard]] std::vector<StepId> last_in_each_lane(const Plan& plan,
                                                    std::span<const StepId> steps);

/// The same into `last`, for loops over many buffers.
void last_in_each_lane(const Plan& plan, std::span<const StepId> steps, std::vector<StepId>& last);

}  // namespace plimsoll
