/// What a planner of graphs looks at: operators with times, the values that they read and make, and
/// what of each occupies memory. Of compute graphs (workload/given/compute_graph.hpp).
#pragma once

#include "policy/interface/policy.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

/// Values are numbered in the order in which operators make them; inputs of the graph, which are
/// there throughout, are none.
struct OperatorGraph {
  struct Node {
    Time time;
    Bytes workspace;
    std::vector<std::uint32_t> reads, makes;  ///< values
    bool runs_once = false;
  };
  struct Value {
    TensorId tensor = kNoTensor;
    Bytes bytes;
    std::uint32_t maker = 0;
    bool is_read = false;
    bool stays = false;  ///< has to be there at the end
  };
  std::vector<Node> nodes;  ///< by operator, in the order of the file
  std::vector<Value> values;
  Bytes resident;  ///< there throughout: inputs that are read

  [[nodiscard]] Time time() const;  ///< of all nodes, each once
};

/// The graph of a workload without backwards, with times on `processor`. Throws InputError, at
/// `where` and in the name of `policy`, for other workloads. O(operators + reads).
[[nodiscard]] OperatorGraph operator_graph(const Problem& problem, ProcessorId processor,
                                           const std::string& policy, const Location& where);

/// The plan that runs `computations`, nodes in an order in which everything read is there, each as
/// often as it is named; what stays is that of the last run of its maker. O(computations + reads).
[[nodiscard]] Plan plan_of_computations(const Problem& problem, const OperatorGraph& graph,
                                        ProcessorId processor, const std::string& policy,
                                        const std::vector<std::uint32_t>& computations);

}  // namespace plimsoll
