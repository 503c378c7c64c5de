/// Slots of a chain on devices, several on one if need be, as tasks of a period.
///
/// The tasks of one microbatch are the forwards and, between them, the values that cross the cuts,
/// then the backwards and gradients on the way back. Those of one device never overlap, nor those
/// on links that take turns. What a device keeps is looked at when a forward starts, since only
/// then do more microbatches become alive: of each of its slots the started forwards less the ended
/// backwards. Values that are received and gradients that cross a cut are counted by themselves, as
/// many as there ever are. So is what leaves its device: of a slot whose microbatches in flight are
/// more than can be there at once, as many as can.
#pragma once

#include "policy/pipeline/periodic/modular_tasks.hpp"
#include "policy/pipeline/periodic/periodic_costs.hpp"
#include "policy/pipeline/periodic/periodic_plan.hpp"

#include <map>
#include <vector>

namespace plimsoll {

class PeriodicAllocation {
 public:
  /// Slot k holds stages [cuts[k], cuts[k+1]) on device placement[k], which has limits[that].
  /// `costs` is of the devices of the slots. Precondition: forwards and backwards take time.
  PeriodicAllocation(const PeriodicCosts& costs, std::vector<std::size_t> cuts,
                     std::vector<std::uint32_t> placement, const std::vector<Bytes>& limits);

  [[nodiscard]] const ModularTasks& tasks() const { return tasks_; }
  [[nodiscard]] const std::vector<std::size_t>& cuts() const { return cuts_; }
  [[nodiscard]] const std::vector<std::uint32_t>& placement() const { return placement_; }

  /// What the busiest device or link does for one microbatch: no period is shorter.
  [[nodiscard]] Time bound() const;

  /// No period that this plans is shorter: the bound, and the copies of what leaves its device.
  [[nodiscard]] Time shortest() const;

  /// Whether what the program says of memory is what there is; else it says more.
  [[nodiscard]] bool is_memory_exact() const;

  /// By device, what is there at most with these counts.
  [[nodiscard]] std::vector<Bytes> counted(const PeriodCounts& counts) const;

  /// Precondition: the period is met with these counts.
  [[nodiscard]] PeriodicPattern pattern(const PeriodCounts& counts, Time period) const;

 private:
  [[nodiscard]] std::size_t slots() const { return placement_.size(); }
  // Tasks are forward 0, value 0, forward 1, ..., the last backward, its gradient, ..., backward 0.
  [[nodiscard]] std::uint32_t forward(std::size_t slot) const {
    return static_cast<std::uint32_t>(2 * slot);
  }
  [[nodiscard]] std::uint32_t backward(std::size_t slot) const {
    return static_cast<std::uint32_t>(tasks_.lasts.size() - 1 - 2 * slot);
  }
  [[nodiscard]] std::uint32_t value(std::size_t cut) const { return forward(cut) + 1; }
  [[nodiscard]] std::uint32_t gradient(std::size_t cut) const { return backward(cut) - 1; }

  void add_lasts();
  void find_moved();
  void keep_apart();
  void count_messages(std::size_t slot);
  void add_room(std::size_t slot, Bytes limit);
  [[nodiscard]] ModularTasks::Kept alive(std::size_t slot, std::size_t at) const;
  [[nodiscard]] Bytes bytes(std::size_t slot, const KeptCounts& kept) const;
  [[nodiscard]] std::uint32_t count(std::uint32_t first, std::uint32_t second) const;

  const PeriodicCosts& costs_;
  const std::vector<std::size_t> cuts_;
  const std::vector<std::uint32_t> placement_;
  ModularTasks tasks_;
  std::vector<std::vector<std::uint32_t>> turns_;  ///< by task: devices, then links
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> pairs_;
  /// By slot: what it has at most at once, where that is known to be less than what is in flight.
  std::vector<std::optional<KeptCounts>> at_home_;
  std::vector<std::vector<ModularTasks::Kept>> messages_;  ///< by slot
};

}  // namespace plimsoll
