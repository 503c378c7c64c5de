/// What one slot runs for a microbatch, as a graph for planners of reruns.
///
/// Its forwards, a pause in which other microbatches run, and its backwards, in the order in which
/// the tasks of a schedule run them: where a schedule has halves of backwards, those for weights
/// come last. What other slots make is received: values of forwards before the first operator,
/// gradients right after the pause. Gradients that add up over microbatches, and what stays to the
/// end of the step, are left out: no plan of one microbatch changes what they need.
#pragma once

#include "policy/graph/operator_graph.hpp"
#include "policy/graph/rerun_groups.hpp"
#include "policy/pipeline/schedule/schedule.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

struct SlotGraph {
  /// What a node runs: an operator, the two halves of a backward as one, or nothing.
  using Part = SlotRuns::Part;

  OperatorGraph graph;
  std::vector<Part> parts;    ///< by node
  std::uint32_t pause = 0;    ///< the node between forwards and backwards
  std::uint32_t weights = 0;  ///< the first half for weights that is a task of its own
  Bytes kept;                 ///< carried across the pause where all runs once
  Bytes held;                 ///< carried on to `weights`, likewise
  Bytes peak;                 ///< of its nodes, likewise

  /// The first backward, gradients being there.
  [[nodiscard]] std::uint32_t first_backward() const { return pause + 2; }
  [[nodiscard]] bool has_halves() const { return weights < graph.nodes.size(); }
};

/// Of `whole`, the step's graph with times on the slot's device. With `has_halves` the halves of
/// backwards are tasks of their own. O(operators of the slot + reads, and values of the step).
[[nodiscard]] SlotGraph slot_graph(const Workload& workload, const OperatorGraph& whole,
                                   const Slots& slots, std::size_t slot, bool has_halves);

/// The tasks that run `computations`, a sequence of the slot's nodes, its tasks one after the
/// other. Precondition: judge_computations() has a cost for it.
[[nodiscard]] SlotRuns runs_of(const SlotGraph& slot, std::span<const std::uint32_t> computations);

}  // namespace plimsoll
