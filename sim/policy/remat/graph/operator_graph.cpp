#include "policy/remat/graph/operator_graph.hpp"

#include "plan/build/plan_builder.hpp"
#include "policy/interface/entry.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::uint32_t kNoValueNumber = 0xFFFFFFFF;

void require_compute_graph(const Workload& workload, const std::string& policy,
                           const Location& where) {
  const bool is_one = workload.forwards == workload.operators.size() &&
                      std::ranges::all_of(workload.operators, [](const Operator& op) {
                        return op.updates.begin == op.updates.end;
                      });
  if (!is_one)
    refuse_parameter(where,
                     fmt::format("`{}` is for compute graphs, whose operators have a `time`; `{}` "
                                 "has backwards, or changes values in place",
                                 policy, workload.name),
                     "`remat/rotor` and `remat/exact` plan for chains and networks");
}

/// Reads nodes one after the other, and numbers what they make.
class GraphReader {
 public:
  GraphReader(const Workload& workload, std::vector<Time> times)
      : workload_(workload),
        times_(std::move(times)),
        number_(workload.tensors.size(), kNoValueNumber) {}

  OperatorGraph read() {
    for (std::uint32_t op = 0; op < workload_.operators.size(); ++op) add(op);
    return std::move(graph_);
  }

 private:
  void add(std::uint32_t op) {
    const Operator& it = workload_.operators[op];
    OperatorGraph::Node& node = graph_.nodes.emplace_back();
    node.time = times_[op];
    node.workspace = it.workspace;
    node.runs_once = it.runs_once;
    for (const TensorId read : workload_.list(it.reads)) {
      const std::uint32_t value = number_[index(read)];
      if (value == kNoValueNumber) {
        if (inputs_.insert(read).second) graph_.resident += workload_[read].bytes;
        continue;
      }
      graph_.values[value].is_read = true;
      node.reads.push_back(value);
    }
    for (const TensorId made : workload_.list(it.kept)) {
      number_[index(made)] = static_cast<std::uint32_t>(graph_.values.size());
      node.makes.push_back(number_[index(made)]);
      const Tensor& tensor = workload_[made];
      graph_.values.push_back({made, tensor.bytes, op, false, tensor.lifetime == Lifetime::stays});
    }
  }

  const Workload& workload_;
  const std::vector<Time> times_;
  std::vector<std::uint32_t> number_;  ///< by tensor
  std::set<TensorId> inputs_;          ///< that are read, so that they are there
  OperatorGraph graph_;
};

}  // namespace

Time OperatorGraph::time() const {
  Time sum;
  for (const Node& node : nodes) sum += node.time;
  return sum;
}

OperatorGraph operator_graph(const Problem& problem, ProcessorId processor,
                             const std::string& policy, const Location& where) {
  require_compute_graph(problem.workload, policy, where);
  return GraphReader(problem.workload, durations(problem.workload, problem.platform, processor))
      .read();
}

Plan plan_of_computations(const Problem& problem, const OperatorGraph& graph, ProcessorId processor,
                          const std::string& policy,
                          const std::vector<std::uint32_t>& computations) {
  std::vector<std::uint32_t> runs_left(graph.nodes.size(), 0);
  for (const std::uint32_t node : computations) ++runs_left[node];
  PlanBuilder builder(problem.workload, problem.platform, policy);
  const LaneId stream = builder.stream(processor);
  const MemoryId memory = problem.platform[processor].memory;
  for (const std::uint32_t node : computations) {
    builder.compute(stream, OperatorId{node});
    if (--runs_left[node] == 0) continue;
    for (const std::uint32_t value : graph.nodes[node].makes)
      if (graph.values[value].stays) builder.release(graph.values[value].tensor, 0, memory);
  }
  return builder.finish();
}

}  // namespace plimsoll
