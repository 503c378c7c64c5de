/// Which steps make and read each buffer of a plan.
#pragma once

#include "base/id_set.hpp"
#include "plan/core/plan.hpp"
#include "platform/core/home_memory.hpp"

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
/// buffer in one of `memories`.
[[nodiscard]] bool holds_value(const Buffer& buffer, TensorId value, std::uint32_t microbatch,
                               const WorkingMemories& memories, const Workload& workload);

/// Which values a list of buffers holds: for the lists of many steps, one after the other.
class HeldValues {
 public:
  explicit HeldValues(const Workload& workload)
      : workload_(workload), any_(workload.tensors.size()), of_microbatch_(any_) {}

  /// Looks at those of `buffers` that are in one of `memories`. O(buffers).
  void gather(const Plan& plan, std::span<const BufferId> buffers, std::uint32_t microbatch,
              const WorkingMemories& memories);
  /// Whether holds_value() is true of one of them. O(1).
  [[nodiscard]] bool has(TensorId value) const;

 private:
  const Workload& workload_;
  IdSet<TensorId> any_, of_microbatch_;  ///< tensors of the buffers: of all, of the microbatch
};

/// Which buffers hold one of some values: the same question from the other side.
class WantedValues {
 public:
  explicit WantedValues(const Workload& workload)
      : workload_(workload), any_(workload.tensors.size()), of_microbatch_(any_) {}

  void clear();
  void add(TensorId value);
  /// Whether holds_value() is true of the buffer and one of the values. O(1).
  [[nodiscard]] bool are_in(const Buffer& buffer, std::uint32_t microbatch,
                            const WorkingMemories& memories) const;

 private:
  const Workload& workload_;
  IdSet<TensorId> any_, of_microbatch_;  ///< tensors that hold one, of any or of the microbatch
};

/// Finds in lists of steps the last one of each lane.
class LastInLanes {
 public:
  /// `plan` may get more lanes and steps later.
  explicit LastInLanes(const Plan& plan) : plan_(plan), seen_(plan.lanes.size()) {}

  /// The last of `steps` (in issue order) in every stream, and every copy, in issue order; good
  /// until the next call. O(steps).
  std::span<const StepId> of(std::span<const StepId> steps);

 private:
  const Plan& plan_;
  IdSet<LaneId> seen_;
  std::vector<StepId> last_;
};

}  // namespace plimsoll
