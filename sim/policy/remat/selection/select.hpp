/// What remat/select-dp and remat/select-linear share: their parameters, what of a chain an
/// objective counts, and the plan of a set of checkpoints.
///
/// Position i of a selection is the input of stage i (from 0), position L the end of the chain. The
/// stages before the last checkpoint run forward leaving only checkpoints, the rest keeps
/// everything and runs once; every other segment runs again, keeping everything, before its
/// backward. All objectives are executed like this; the published ones also run the last segment
/// again, which on a chain needs no less memory.
///
/// The published objectives know one size an activation, which is there as checkpoint, as
/// recomputed activation and as gradient. Of a chain they see d_0 = the input and d_i = `saved` of
/// stage i = 1..L (its output is in it); workspaces, gradients and parameters they do not see.
#pragma once

#include "policy/interface/entry.hpp"
#include "policy/remat/selection/checkpoint_selection.hpp"
#include "workload/chain/chain_costs.hpp"

#include <string>

namespace plimsoll {

enum class SelectObjective : std::uint8_t { engine, replay, traced, fixed };

struct SelectParameters : SingleProcessorParameters {
  Located<SelectObjective> objective;
};

/// A Record of the parameters of the policy `name`.
[[nodiscard]] Record<SelectParameters> select_record(const std::string& name);

/// The instance whose M(0) is what execution needs beyond `costs.resident`, where the optimizer
/// needs no more than the backwards: exactly on abstract chains, at most on networks. There an
/// output that no backward reads counts as a checkpoint, but inside a segment only until the next
/// stage has run.
[[nodiscard]] SelectionChain engine_chain(const ChainCosts& costs);

/// d_0, ..., d_L of the published objectives.
[[nodiscard]] std::vector<std::int64_t> activation_sizes(const ChainCosts& costs);

/// The plan that keeps the checkpoints of `selection`, with the largest operator as a bound. The
/// value of a published objective, which is not what execution needs, is its claim of the model.
[[nodiscard]] Plan plan_of_selection(const Problem& problem, ProcessorId processor,
                                     const Selection& selection,
                                     const SelectParameters& parameters);

/// The instance of `objective`, which is not `fixed`.
[[nodiscard]] SelectionChain selection_chain(SelectObjective objective, const ChainCosts& costs);

}  // namespace plimsoll
