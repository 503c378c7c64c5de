#include "policy/graph/operator_graph.hpp"

#include "base/dense_id.hpp"
#include "plan/build/plan_builder.hpp"
#include "policy/graph/computations.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// Reads operators one after the other, and numbers what they make.
class GraphReader {
 public:
  GraphReader(const Workload& workload, std::vector<Time> times)
      : workload_(workload),
        times_(std::move(times)),
        number_(workload.tensors.size(), OperatorGraph::kNone),
        is_resident_(workload.tensors.size(), false) {}

  OperatorGraph read() {
    for (std::uint32_t op = 0; op < workload_.operators.size(); ++op) add(op);
    for (OperatorGraph::Value& value : graph_.values) finish(value);
    return std::move(graph_);
  }

 private:
  void add(std::uint32_t op) {
    const Operator& it = workload_.operators[op];
    OperatorGraph::Node& node = graph_.nodes.emplace_back();
    node.time = times_[op];
    node.workspace = it.workspace;
    if (it.generator != kNoTensor) node.generator = workload_[it.generator].bytes;
    node.runs_once = it.runs_once || it.phase != Phase::forward;
    for (const TensorId read : workload_.list(it.reads)) add_read(op, read);
    for (const TensorId changed : workload_.list(it.updates)) add_change(op, changed);
    for (const TensorId made : workload_.list(it.kept)) add_made(op, made);
    for (const TensorId made : workload_.list(it.bare)) add_made(op, made);
    for (const std::uint32_t value : node.makes) set_form(it, graph_.values[value]);
  }

  void add_read(std::uint32_t op, TensorId tensor) {
    const std::uint32_t value = number_[index(tensor)];
    if (value == OperatorGraph::kNone) {
      if (!is_resident_[index(tensor)]) graph_.resident += workload_[tensor].bytes;
      is_resident_[index(tensor)] = true;
      return;
    }
    std::vector<std::uint32_t>& readers = graph_.values[value].readers;
    if (!readers.empty() && readers.back() == op) return;
    readers.push_back(op);
    graph_.nodes[op].reads.push_back(value);
  }

  void add_change(std::uint32_t op, TensorId tensor) {
    if (number_[index(tensor)] == OperatorGraph::kNone)
      return;  // a parameter, or the state of an optimizer
    add_read(op, tensor);
    std::vector<std::uint32_t>& changes = graph_.nodes[op].changes;
    if (std::ranges::find(changes, number_[index(tensor)]) == changes.end())
      changes.push_back(number_[index(tensor)]);
  }

  /// A gradient that another backward has begun is added to.
  void add_made(std::uint32_t op, TensorId tensor) {
    std::uint32_t& number = number_[index(tensor)];
    if (number == OperatorGraph::kNone) {
      number = static_cast<std::uint32_t>(graph_.values.size());
      graph_.values.push_back({.tensor = tensor, .bytes = workload_[tensor].bytes, .maker = op});
      graph_.nodes[op].makes.push_back(number);
    } else if (graph_.values[number].maker != op) {
      add_change(op, tensor);
    }
  }

  void set_form(const Operator& maker, OperatorGraph::Value& value) {
    const auto bare = workload_.list(maker.bare);
    value.is_kept_only = std::ranges::find(bare, value.tensor) == bare.end();
    const TensorId whole = workload_[value.tensor].inside;
    if (whole != kNoTensor) value.inside = number_[index(whole)];
  }

  void finish(OperatorGraph::Value& value) {
    const Tensor& tensor = workload_[value.tensor];
    const bool is_spent = !value.readers.empty() &&
                          workload_.operators[value.readers.back()].phase == Phase::optimizer;
    value.stays = tensor.lifetime == Lifetime::stays ||
                  (tensor.lifetime == Lifetime::accumulated && !is_spent);
    if (tensor.cached) value.held_until = workload_.forwards - 1;
  }

  const Workload& workload_;
  const std::vector<Time> times_;
  std::vector<std::uint32_t> number_;  ///< by tensor
  std::vector<bool> is_resident_;      ///< by tensor
  OperatorGraph graph_;
};

}  // namespace

Time OperatorGraph::time() const {
  Time sum;
  for (const Node& node : nodes) sum += node.time;
  return sum;
}

bool OperatorGraph::is_plain() const {
  return std::ranges::all_of(nodes, [](const Node& node) { return node.changes.empty(); }) &&
         std::ranges::all_of(values, [](const Value& value) {
           return !value.is_kept_only && value.inside == OperatorGraph::kNone &&
                  value.held_until == OperatorGraph::kNone;
         });
}

OperatorGraph operator_graph(const Problem& problem, ProcessorId processor) {
  return GraphReader(problem.workload, durations(problem.workload, problem.platform, processor))
      .read();
}

std::int64_t room_within(Bytes budget, const OperatorGraph& graph) {
  if (budget.is_unlimited()) return std::numeric_limits<std::int64_t>::max() / 4;
  return budget.count() - graph.resident.count();
}

void release_wholes(PlanBuilder& builder, const Workload& workload, OperatorId op,
                    std::uint32_t microbatch, MemoryId memory) {
  for (const TensorId made : workload.list(workload[op].bare))
    if (const TensorId whole = workload[made].inside;
        whole != kNoTensor && builder.holds(whole, microbatch, memory))
      builder.release(whole, microbatch, memory);
}

Plan plan_of_computations(const Problem& problem, const OperatorGraph& graph, ProcessorId processor,
                          const std::string& policy, std::span<const std::uint32_t> computations) {
  const std::vector<Form> forms = judge_computations(graph, computations)->forms;
  std::vector<std::uint32_t> runs_left(graph.nodes.size(), 0);
  for (const std::uint32_t node : computations) ++runs_left[node];
  PlanBuilder builder(problem.workload, problem.platform, policy);
  builder.keep_each_generator();
  builder.reserve(computations.size(), graph.values.size(), problem.workload.tensor_lists.size());
  const LaneId stream = builder.stream(processor);
  const MemoryId memory = problem.platform[processor].memory;
  for (std::size_t i = 0; i < computations.size(); ++i) {
    const OperatorGraph::Node& node = graph.nodes[computations[i]];
    if (forms[i] == Form::bare)
      release_wholes(builder, problem.workload, OperatorId{computations[i]}, 0, memory);
    builder.compute(stream, OperatorId{computations[i]}, 0, forms[i]);
    if (--runs_left[computations[i]] == 0) continue;
    for (const std::uint32_t value : node.makes)
      if (graph.values[value].stays) builder.release(graph.values[value].tensor, 0, memory);
  }
  return builder.finish();
}

}  // namespace plimsoll
