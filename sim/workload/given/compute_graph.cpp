#include "workload/given/compute_graph.hpp"

#include "workload/core/workload_builder.hpp"
#include "workload/given/given_operators.hpp"

#include <algorithm>
#include <map>

namespace plimsoll {
namespace {

Format<GraphComputation> compute_format() {
  using Spec = GraphComputation;
  auto record =
      Record<Spec>("operator", "An operator of a compute graph: what it reads and makes.")
          .where(&Spec::where)
          .required("name", &Spec::name, name(), "unique in the graph")
          .optional("inputs", &Spec::inputs, list_of(located(name())), "the values that it reads")
          .optional("outputs", &Spec::outputs, map_of(quantity<Bytes>()),
                    "the values that it makes")
          .optional("time", &Spec::time, quantity<Time>(), "of one run")
          .optional("flops", &Spec::flops, quantity<Flops>(),
                    "of one run, in the place of `time`: how long they take, and their energy, the "
                    "platform says")
          .optional("workspace", &Spec::workspace, quantity<Bytes>(), "while it runs; default 0 B")
          .optional("energy", &Spec::energy, quantity<Energy>(), "of one run")
          .optional("recompute", &Spec::recompute, boolean(),
                    "whether it may run again; default true")
          .optional("random", &Spec::random, boolean(),
                    "whether it draws random numbers, the same ones when it runs again; default "
                    "false")
          .format();
  return checked<Spec>(record, [](const Node& node, Diagnostics& diagnostics) {
    if (!node.is_mapping()) return;
    const bool has_time = node.find("time") != nullptr;
    if (has_time && node.find("flops") != nullptr)
      diagnostics.error(node.find("flops")->where(), "`flops` beside `time`",
                        "expected one of the two");
    else if (!has_time && node.find("flops") == nullptr)
      diagnostics.error(node.where(), "an operator without `time`", "expected `time` or `flops`");
  });
}

/// A list of operators, or a mapping with one under `operators`.
Format<ComputeOperators> compute_operators_format() {
  const auto list = list_of(compute_format(), 1, kMaxStages);
  auto record = Record<ComputeOperators>("graph", "The operators of a compute graph.")
                    .optional("unread", &ComputeOperators::unread,
                              one_of<Unread>({{"free", Unread::free}, {"retain", Unread::retain}}),
                              "what becomes of outputs that nobody reads: `free`, right after "
                              "their operator, or `retain`, to the end; default free")
                    .required("operators", &ComputeOperators::operators, list,
                              "in a topological order, in which they run")
                    .format();
  return either(mapped<std::vector<GraphComputation>, ComputeOperators>(
                    list,
                    [](std::vector<GraphComputation> operators) {
                      return ComputeOperators{Unread::free, std::move(operators)};
                    }),
                std::move(record));
}

class ComputeGraphBuilder {
 public:
  explicit ComputeGraphBuilder(const ComputeGraphSpec& graph)
      : graph_(graph), builder_(graph.name) {}

  Workload build() {
    for (const auto& [input, bytes] : graph_.inputs) add_value(input.value, bytes, Lifetime::input);
    std::map<std::string, bool> read;
    for (const GraphComputation& op : graph_.graph.operators)
      for (const Located<std::string>& input : op.inputs) read[input.value] = true;
    const Lifetime unread =
        graph_.graph.unread == Unread::retain ? Lifetime::stays : Lifetime::step;
    for (const GraphComputation& op : graph_.graph.operators) {
      OperatorSpec spec;
      spec.name = op.name;
      spec.given_time = op.time;
      if (op.flops) spec.flops = *op.flops;
      spec.given_energy = op.energy;
      spec.workspace = op.workspace;
      spec.runs_once = !op.recompute;
      spec.is_random = op.random;
      for (const Located<std::string>& input : op.inputs)
        spec.reads.push_back(values_.at(input.value));
      for (const auto& [output, bytes] : op.outputs)
        spec.kept.push_back(
            add_value(output.value, bytes, read[output.value] ? Lifetime::step : unread));
      spec.bare = spec.kept;
      builder_.add(std::move(spec));
    }
    return builder_.freeze();
  }

 private:
  TensorId add_value(const std::string& name, Bytes bytes, Lifetime lifetime) {
    return values_[name] =
               builder_.add(Tensor{name, bytes, TensorClass::activation, lifetime, kNoTensor});
  }

  const ComputeGraphSpec& graph_;
  WorkloadBuilder builder_;
  std::map<std::string, TensorId> values_;
};

}  // namespace

bool is_compute_graph(const Node& document) {
  const Node* graph = document.find("graph");
  if (graph != nullptr && graph->is_mapping()) {
    if (graph->find("unread") != nullptr) return true;
    graph = graph->find("operators");
  }
  if (graph == nullptr || !graph->is_sequence()) return false;
  for (const Node& item : graph->items()) {
    if (item.find("time") != nullptr || item.find("flops") != nullptr) return true;
    if (item.find("forward") != nullptr) return false;
  }
  return false;
}

Format<ComputeGraphSpec> compute_graph_format() {
  auto record =
      Record<ComputeGraphSpec>("compute graph", "A graph of what runs, with times and sizes.")
          .where(&ComputeGraphSpec::where)
          .required("workload", &ComputeGraphSpec::name, name(), "the workload's name")
          .optional("inputs", &ComputeGraphSpec::inputs, map_of(quantity<Bytes>()),
                    "the values that are there from the start")
          .required("graph", &ComputeGraphSpec::graph, compute_operators_format(), "the operators")
          .optional("batch", &ComputeGraphSpec::batch, batch_format(),
                    "samples of the whole mini-batch")
          .format();
  return checked<ComputeGraphSpec>(
      record, [shape = record.shape, operators = compute_format().shape](const Node& node,
                                                                         Diagnostics& diagnostics) {
        check_graph_names(node, shape, operators, FileOrder::topological, diagnostics);
      });
}

Workload build(const ComputeGraphSpec& graph, const WorkloadOptions& options) {
  Workload workload = ComputeGraphBuilder(graph).build();
  set_batch(workload, graph.batch, options);
  return workload;
}

}  // namespace plimsoll
