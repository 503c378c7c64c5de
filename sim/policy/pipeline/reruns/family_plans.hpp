/// Plans of the devices of a family for rooms on a fixed grid, from which a budget takes the one
/// with the least reruns that it has room for.
///
/// No room of the grid depends on the budget, so that a larger budget chooses among the same plans
/// and more: it is slower only where a plan for much less room has fewer reruns. A device that holds
/// n microbatches of a slot has n times what one keeps across the pause between its forward and its
/// backward, and what the one needs that runs. For each room of the grid, shares of what is kept
/// without reruns are tried, for all slots alike, the rest being there for what runs; the shares
/// whose first plans run least again are planned well, and what they need is counted anew, from what
/// they keep. All once, `selective` and `full` are plans of any room.
#pragma once

#include "policy/pipeline/reruns/device_families.hpp"
#include "policy/pipeline/reruns/device_load.hpp"
#include "policy/pipeline/reruns/slot_plan.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace plimsoll {

/// For the slots of a family together.
struct FamilyPlan {
  std::vector<SlotPlan> slots;        ///< by slot of the family
  std::vector<std::int64_t> counted;  ///< bytes by device of the family
  std::int64_t time = 0;              ///< ps of reruns

  [[nodiscard]] bool fits(std::span<const std::int64_t> room) const;
};

class FamilyPlans {
 public:
  using Slots = std::vector<std::unique_ptr<SlotPlanner>>;
  using Loads = std::vector<std::vector<DeviceLoad>>;

  /// `slots` of all families by number, `loads` by device; all must outlive it.
  FamilyPlans(const DeviceFamily& family, const Slots& slots, const Loads& loads,
              const Workload& workload);

  [[nodiscard]] const DeviceFamily& family() const { return family_; }
  /// Everything runs once.
  [[nodiscard]] const FamilyPlan& plain() const { return rules_.front(); }

  /// The plan with the least reruns within `room`, bytes by device of the family; nothing where
  /// none is found. Plans a few rooms of the grid, each once.
  [[nodiscard]] const FamilyPlan* best(std::span<const std::int64_t> room);

  /// The first plan for the largest room of the grid within `room`, without improvement; nothing
  /// where none is found.
  [[nodiscard]] const FamilyPlan* first(std::span<const std::int64_t> room);

  /// The plan of the least room for which one is found, by bisection, or a leaner rule.
  [[nodiscard]] const FamilyPlan& leanest();

 private:
  using Share = std::int64_t;
  /// The first plans of a room, with the share whose plans run least again.
  struct First {
    FamilyPlan plan;
    Share share = 0;
  };

  void add_rules(const Workload& workload);
  [[nodiscard]] FamilyPlan counted(std::vector<SlotPlan> slots) const;
  [[nodiscard]] std::int64_t grid_room(std::size_t device, std::int64_t place) const;
  [[nodiscard]] std::int64_t place_below(std::span<const std::int64_t> room) const;
  [[nodiscard]] std::int64_t others(std::size_t device, std::uint32_t slot,
                                    std::span<const std::int64_t> kept) const;
  [[nodiscard]] std::optional<SlotRoom> room(std::size_t slot, Share share,
                                             std::int64_t place) const;
  [[nodiscard]] std::optional<FamilyPlan> plan(Share share, std::int64_t place, bool improved);
  [[nodiscard]] bool has_plan(std::int64_t place);
  const std::optional<First>& first_at(std::int64_t place);
  const std::optional<FamilyPlan>& at(std::int64_t place);

  const DeviceFamily& family_;
  const Slots& slots_;
  const Loads& loads_;
  std::vector<FamilyPlan> rules_;                            ///< of any room; all once first
  std::map<std::int64_t, std::optional<FamilyPlan>> plans_;  ///< by place in the grid
  std::map<std::int64_t, std::optional<First>> firsts_;      ///< likewise
};

}  // namespace plimsoll
