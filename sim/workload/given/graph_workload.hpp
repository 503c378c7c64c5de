/// A directed acyclic graph of operators with given times and sizes.
///
/// Each operator behaves as a stage of a chain: its forward reads the values that it names; keep
/// leaves `saved`, which contains its outputs, checkpoint leaves the outputs. Its backward reads
/// the gradients of its outputs, `saved` and its input values, and makes the gradients of its
/// inputs; a gradient that another reader's backward has made already is added to. The gradient of
/// an output that nobody reads is made by the operator's own backward, as delta_L in a chain;
/// gradients of the graph's inputs stay.
#pragma once

#include "workload/given/chain_workload.hpp"
#include "workload/given/graph_names.hpp"

#include <vector>

namespace plimsoll {

struct GraphOperatorSpec {
  Location where;
  std::string name;
  std::vector<Located<std::string>> inputs;
  NamedBytes outputs;
  Time forward;
  std::optional<Time> backward, backward_input, backward_weight;
  std::optional<Bytes> saved;  ///< default: the sum of the outputs
  Bytes parameters, forward_workspace, backward_workspace;
  StageEnergy energy;
};

struct GraphSpec {
  Location where;
  std::string name;
  NamedBytes inputs;
  std::vector<GraphOperatorSpec> operators;  ///< in any order; it breaks ties
  std::optional<std::int64_t> batch;
  std::optional<Optimizer> optimizer;
  std::optional<std::string> recorded;  ///< of a profile: with what
};

/// How a graph is written. Reading checks that names are unique and known, that saved is at least
/// the outputs, that backwards are given, and that there is no cycle.
[[nodiscard]] Format<GraphSpec> graph_format();

/// O(operators + inputs).
[[nodiscard]] Workload build(const GraphSpec& graph, const WorkloadOptions& options);

}  // namespace plimsoll
