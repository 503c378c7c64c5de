/// What may be added to a staged plan, so that a value need not be carried across a step.
#pragma once

#include "base/work.hpp"
#include "policy/graph/staged_schedule.hpp"

#include <limits>
#include <optional>
#include <vector>

namespace plimsoll {

struct RerunMoves {
  const OperatorGraph& graph;
  const RerunGroups& groups;
  /// Of one node, the first run included.
  std::size_t computations = std::numeric_limits<std::size_t>::max();
  const Work& work;

  [[nodiscard]] bool can_add(const StagedSchedule& plan, const Rerun& rerun) const;
  /// Whether the group has run again as often as it may.
  [[nodiscard]] bool is_used_up(const StagedSchedule& plan, std::uint32_t group) const;
  [[nodiscard]] bool is_after(StagedSchedule::Key step, const Rerun& rerun) const;
  [[nodiscard]] bool can_add_after(const StagedSchedule& plan, StagedSchedule::Key step,
                                   const Rerun& rerun) const {
    return is_after(step, rerun) && can_add(plan, rerun);
  }
  /// With `rerun`, recursively, all that its inputs would otherwise be carried across the step for;
  /// empty where that is much.
  [[nodiscard]] std::vector<Rerun> closure(const StagedSchedule& plan, StagedSchedule::Key step,
                                           const Rerun& rerun) const;
  /// The same rerun in the last stage in which all that it reads is there anyway.
  [[nodiscard]] std::optional<Rerun> early(const StagedSchedule& plan, StagedSchedule::Key step,
                                           const Rerun& rerun) const;
};

}  // namespace plimsoll
