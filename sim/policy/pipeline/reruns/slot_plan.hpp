/// The reruns of one slot for the room that it is given.
#pragma once

#include "policy/graph/staged_schedule.hpp"
#include "policy/pipeline/parameters/operator_reruns.hpp"
#include "policy/pipeline/reruns/slot_graph.hpp"
#include "policy/remat/graph/search/rerun_search.hpp"
#include "policy/remat/segments/named_blocks.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plimsoll {

/// Bytes for what a slot keeps for one microbatch, and for all that is there of that microbatch
/// while the slot runs.
struct SlotRoom {
  std::int64_t kept = 0, running = 0;
  friend bool operator==(const SlotRoom&, const SlotRoom&) = default;
};

struct SlotPlan {
  std::vector<std::uint32_t> computations;  ///< nodes of the slot's graph
  std::int64_t time = 0;                    ///< ps of reruns
  std::int64_t kept = 0;                    ///< bytes carried across the pause
  std::int64_t peak = 0;                    ///< bytes of what is there of its microbatch
};

/// Plans for one slot. A pause between forwards and backwards needs, as a workspace, what the room
/// for running is larger than the room for what is kept: so a planner that knows one room for all
/// steps keeps to both.
class SlotPlanner {
 public:
  /// Both must outlive it.
  SlotPlanner(SlotGraph slot, const OperatorReruns& reruns, Work work);
  SlotPlanner(SlotPlanner&&) = delete;

  [[nodiscard]] const SlotGraph& slot() const { return slot_; }

  /// Why remat/checkmate does not take it; nothing where it does. `of` names the slot.
  [[nodiscard]] std::optional<std::string> program_refusal(const std::string& of) const;

  /// Whether the parameters let an operator run twice.
  [[nodiscard]] bool may_run_again() const {
    return !reruns_.computations || *reruns_.computations > 1;
  }
  /// Everything runs once.
  [[nodiscard]] SlotPlan plain() const;
  /// The cores of attention run again; nothing where there are none.
  [[nodiscard]] std::optional<SlotPlan> selective(const Workload& workload) const;
  /// Blocks run again, each before its backwards; nothing where the slot has none that does.
  [[nodiscard]] std::optional<SlotPlan> by_block(const Workload& workload,
                                                 std::span<const ForwardRange> blocks) const;
  /// All that may run again does so once gradients are there; nothing where nothing may.
  [[nodiscard]] std::optional<SlotPlan> full() const;

  /// A first plan within the room, without improvement; nothing where none is found.
  [[nodiscard]] std::optional<SlotPlan> first_plan(const SlotRoom& room);
  /// What the planner of the parameters makes of it.
  [[nodiscard]] std::optional<SlotPlan> best_plan(const SlotRoom& room);

 private:
  [[nodiscard]] std::optional<SlotPlan> plan(const SlotRoom& room, RerunSearchOptions options);
  [[nodiscard]] std::vector<Rerun> all_again() const;
  [[nodiscard]] SlotPlan measured(std::vector<std::uint32_t> computations) const;
  [[nodiscard]] std::optional<SlotPlan> with(const std::vector<Rerun>& reruns) const;
  void solve(std::optional<StagedSchedule>& best, std::int64_t room) const;

  SlotGraph slot_;
  const RerunGroups groups_;
  const OperatorReruns& reruns_;
  const Work work_;
  std::int64_t once_;  ///< ps, everything run once
};

}  // namespace plimsoll
