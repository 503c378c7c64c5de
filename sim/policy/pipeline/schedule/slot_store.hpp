/// What slots keep, in the stores of their devices.
#pragma once

#include "plan/build/plan_builder.hpp"
#include "policy/pipeline/schedule/slots.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace plimsoll {

class SlotStore {
 public:
  /// `stores` by device; `recomputed` by slot, empty where none is. The arguments must outlive it.
  SlotStore(const std::vector<MemoryId>& stores, const std::vector<bool>& recomputed,
            PlanBuilder& builder)
      : stores_(stores), recomputed_(recomputed), builder_(builder) {}

  /// What the slot keeps of each microbatch; the same in all placements.
  [[nodiscard]] const std::vector<TensorId>& kept(const Slots& slots, std::uint32_t slot);

  /// Adds the copies of a microbatch to the store, or those back from it. `slots` are those of the
  /// microbatch.
  const std::vector<StepId>& leave(const Slots& slots, std::uint32_t slot,
                                   std::uint32_t microbatch);
  std::vector<StepId> come_back(const Slots& slots, std::uint32_t slot, std::uint32_t microbatch);

  /// The copies of what has left and is not back.
  [[nodiscard]] std::vector<StepId> gone(std::uint32_t slot, std::uint32_t microbatch) const;

 private:
  const std::vector<MemoryId>& stores_;
  const std::vector<bool>& recomputed_;
  PlanBuilder& builder_;
  std::vector<std::optional<std::vector<TensorId>>> kept_;  ///< by slot, as far as asked for
  /// By slot and microbatch: the copies of what is in the store.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<StepId>> gone_;
};

}  // namespace plimsoll
