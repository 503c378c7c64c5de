#include "workload/given/graph_workload.hpp"

#include "workload/core/workload_builder.hpp"
#include "workload/given/given_operators.hpp"

#include <map>

namespace plimsoll {
namespace {

struct OperatorList {
  std::vector<GraphOperatorSpec> operators;
};

Format<StageEnergy> operator_energy_format() {
  return Record<StageEnergy>("operator energy", "Energy of one execution of the operator.")
      .optional("forward", &StageEnergy::forward, quantity<Energy>(), "of the forward")
      .optional("backward", &StageEnergy::backward, quantity<Energy>(), "of the backward")
      .format();
}

void check_saved(GraphOperatorSpec& op, const Node& node, Diagnostics& diagnostics) {
  const std::vector<std::string> keys{"saved", "outputs"};
  try {
    const Bytes outputs = sum_of(op.outputs);
    if (op.saved && *op.saved < outputs)
      report(node, keys, "operator",
             "saved (" + to_text(*op.saved) + ") is less than the outputs (" + to_text(outputs) +
                 "), which it includes",
             diagnostics);
  } catch (const QuantityOverflow&) {
    report(node, keys, "operator", "the sizes of its outputs add up to more than can be counted",
           diagnostics);
  }
}

Format<GraphOperatorSpec> graph_operator_format() {
  using Spec = GraphOperatorSpec;
  Record<Spec> record("operator", "An operator of a graph: what it reads, makes and keeps.");
  record.where(&Spec::where)
      .required("name", &Spec::name, name(), "unique in the graph")
      .optional("inputs", &Spec::inputs, list_of(located(name())), "the values that it reads")
      .optional("outputs", &Spec::outputs, map_of(quantity<Bytes>()), "the values that it makes")
      .required("forward", &Spec::forward, quantity<Time>(), "time of the forward")
      .optional("backward", &Spec::backward, quantity<Time>(), "time of the whole backward")
      .optional("backward_input", &Spec::backward_input, quantity<Time>(),
                "time of the half that makes the inputs' gradients")
      .optional("backward_weight", &Spec::backward_weight, quantity<Time>(),
                "time of the half that makes the parameters' gradients")
      .optional("saved", &Spec::saved, quantity<Bytes>(),
                "what the backward needs, the outputs included; default their sum")
      .optional("parameters", &Spec::parameters, quantity<Bytes>(), "default 0 B")
      .optional("forward_workspace", &Spec::forward_workspace, quantity<Bytes>(), "default 0 B")
      .optional("backward_workspace", &Spec::backward_workspace, quantity<Bytes>(), "default 0 B")
      .optional("energy", &Spec::energy, operator_energy_format(), "of forward and backward");
  record.check({"saved", "outputs"}, check_saved);
  check_backward(record, "operator");
  return record.format();
}

/// A list of operators, or a mapping with one under `operators`.
Format<std::vector<GraphOperatorSpec>> operators_format() {
  const auto list = list_of(graph_operator_format(), 1, kMaxStages);
  auto record = Record<OperatorList>("graph", "The operators of a graph.")
                    .required("operators", &OperatorList::operators, list, "in any order")
                    .format();
  return either(list,
                mapped<OperatorList, std::vector<GraphOperatorSpec>>(
                    std::move(record), [](OperatorList l) { return std::move(l.operators); }));
}

class GraphBuilder {
 public:
  GraphBuilder(const GraphSpec& graph, Optimizer optimizer)
      : graph_(graph), optimizer_(optimizer), builder_(graph.name) {}

  Workload build() {
    for (const auto& [input, bytes] : graph_.inputs) add_value(input.value, bytes, kNoTensor);
    Makers makers;
    for (std::uint32_t i = 0; i < graph_.operators.size(); ++i)
      for (const auto& [output, bytes] : graph_.operators[i].outputs)
        makers.emplace(output.value, i);
    const std::vector<std::uint32_t> order = order_of(graph_.operators, makers).order;
    operators_.resize(graph_.operators.size());
    for (const std::uint32_t i : order) add_forward(i);
    for (std::size_t k = order.size(); k-- > 0;) add_backward(order[k]);
    return builder_.freeze();
  }

 private:
  struct Value {
    TensorId tensor = kNoTensor, gradient = kNoTensor;
    bool is_read = false;
  };
  struct OperatorTensors {
    TensorId saved = kNoTensor;
    GivenParameters given;
    OperatorId forward = kNoOperator;
  };

  /// A value inside `saved`, or an input of the graph where that is kNoTensor.
  TensorId add_value(const std::string& name, Bytes bytes, TensorId saved) {
    const bool is_input = saved == kNoTensor;
    Value value;
    value.tensor = builder_.add(Tensor{name, bytes, TensorClass::activation,
                                       is_input ? Lifetime::input : Lifetime::step, saved});
    value.gradient = builder_.add(Tensor{name + ".gradient", bytes, TensorClass::gradient,
                                         is_input ? Lifetime::stays : Lifetime::step, kNoTensor});
    values_[name] = value;
    return value.tensor;
  }

  void add_forward(std::uint32_t i) {
    const GraphOperatorSpec& op = graph_.operators[i];
    OperatorTensors& tensors = operators_[i];
    tensors.saved = builder_.add(Tensor{op.name + ".saved", op.saved.value_or(sum_of(op.outputs)),
                                        TensorClass::saved, Lifetime::step, kNoTensor});
    tensors.given = add_parameters(builder_, op.name, op.parameters, optimizer_);
    OperatorSpec spec;
    spec.name = op.name + ".forward";
    spec.given_time = op.forward;
    spec.given_energy = op.energy.forward;
    spec.workspace = op.forward_workspace;
    for (const Located<std::string>& input : op.inputs) {
      Value& value = values_.at(input.value);
      value.is_read = true;
      spec.reads.push_back(value.tensor);
    }
    spec.reads.insert(spec.reads.end(), tensors.given.resident.begin(),
                      tensors.given.resident.end());
    spec.kept = {tensors.saved};
    for (const auto& [output, bytes] : op.outputs)
      spec.bare.push_back(add_value(output.value, bytes, tensors.saved));
    tensors.forward = builder_.add(std::move(spec));
  }

  void add_backward(std::uint32_t i) {
    const GraphOperatorSpec& op = graph_.operators[i];
    const OperatorTensors& tensors = operators_[i];
    OperatorSpec spec;
    spec.name = op.name + ".backward";
    spec.phase = Phase::backward;
    spec.forward = tensors.forward;
    spec.given_time = whole_backward(op.backward, op.backward_input, op.backward_weight);
    spec.given_energy = op.energy.backward;
    spec.workspace = op.backward_workspace;
    for (const auto& [output, bytes] : op.outputs) {
      const Value& value = values_.at(output.value);
      (value.is_read ? spec.reads : spec.kept).push_back(value.gradient);
    }
    spec.reads.push_back(tensors.saved);
    for (const Located<std::string>& input : op.inputs) {
      const Value& value = values_.at(input.value);
      spec.reads.push_back(value.tensor);
      spec.kept.push_back(value.gradient);
    }
    if (tensors.given.parameters != kNoTensor) {
      spec.reads.push_back(tensors.given.parameters);
      spec.kept.push_back(tensors.given.gradient);
    }
    spec.bare = spec.kept;
    builder_.add(std::move(spec));
  }

  const GraphSpec& graph_;
  Optimizer optimizer_;
  WorkloadBuilder builder_;
  std::map<std::string, Value> values_;
  std::vector<OperatorTensors> operators_;
};

}  // namespace

Format<GraphSpec> graph_format() {
  auto record =
      Record<GraphSpec>("graph workload", "A graph of operators with given times and sizes.")
          .where(&GraphSpec::where)
          .required("workload", &GraphSpec::name, name(), "the workload's name")
          .optional("inputs", &GraphSpec::inputs, map_of(quantity<Bytes>()),
                    "the values that are there from the start")
          .required("graph", &GraphSpec::operators, operators_format(), "the operators")
          .optional("batch", &GraphSpec::batch, batch_format(), "samples of the whole mini-batch")
          .optional("optimizer", &GraphSpec::optimizer, optimizer_format(), "default none")
          .format();
  return checked<GraphSpec>(
      record, [shape = record.shape, operators = graph_operator_format().shape](
                  const Node& node, Diagnostics& diagnostics) {
        check_graph_names(node, shape, operators, FileOrder::any, diagnostics);
      });
}

Workload build(const GraphSpec& graph, const WorkloadOptions& options) {
  const Optimizer optimizer = options.optimizer.value_or(graph.optimizer.value_or(Optimizer::none));
  Workload workload = GraphBuilder(graph, optimizer).build();
  set_batch(workload, graph.batch, options);
  return workload;
}

}  // namespace plimsoll
