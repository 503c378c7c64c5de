#include "workload/given/chain_workload.hpp"

#include "workload/core/workload_builder.hpp"
#include "workload/given/given_operators.hpp"

#include <utility>

namespace plimsoll {
namespace {

Format<StageEnergy> stage_energy_format() {
  return Record<StageEnergy>("stage energy", "Energy of one execution of the stage.")
      .optional("forward", &StageEnergy::forward, quantity<Energy>(), "of the forward")
      .optional("backward", &StageEnergy::backward, quantity<Energy>(), "of the whole backward")
      .format();
}

/// The checks across the fields of a stage.
void add_checks(Record<StageSpec>& stage) {
  static const std::vector<std::string> kSaved{"saved", "output"};
  static const std::vector<std::string> kHeld{"held_for_weight_gradient", "saved"};
  stage.check(kSaved, [](StageSpec& spec, const Node& node, Diagnostics& diagnostics) {
    if (spec.saved < spec.output)
      report(node, kSaved, "stage",
             "saved (" + to_text(spec.saved) + ") is less than output (" + to_text(spec.output) +
                 "), which it includes",
             diagnostics);
  });
  stage.check(kHeld, [](StageSpec& spec, const Node& node, Diagnostics& diagnostics) {
    if (spec.held_for_weight_gradient.value_or(Bytes{}) > spec.saved)
      report(node, kHeld, "stage",
             "held_for_weight_gradient is more than saved, of which it is a part", diagnostics);
  });
  check_backward(stage, "stage");
}

Format<StageSpec> stage_format() {
  Record<StageSpec> stage("stage", "A stage of a chain: its times, and what it keeps.");
  stage.where(&StageSpec::where)
      .required("name", &StageSpec::name, name(), "unique in the chain")
      .required("forward", &StageSpec::forward, quantity<Time>(), "time of the forward")
      .optional("backward", &StageSpec::backward, quantity<Time>(), "time of the whole backward")
      .optional("backward_input", &StageSpec::backward_input, quantity<Time>(),
                "time of the half that makes the input's gradient")
      .optional("backward_weight", &StageSpec::backward_weight, quantity<Time>(),
                "time of the half that makes the parameters' gradients")
      .optional("output", &StageSpec::output, quantity<Bytes>(), "a_i; default 0 B")
      .required("saved", &StageSpec::saved, quantity<Bytes>(),
                "all that the backward needs from the forward, the output included")
      .optional("held_for_weight_gradient", &StageSpec::held_for_weight_gradient, quantity<Bytes>(),
                "the part of saved kept on for backward_weight; default all")
      .optional("gradient", &StageSpec::gradient, quantity<Bytes>(),
                "gradient of the output; default its size")
      .optional("parameters", &StageSpec::parameters, quantity<Bytes>(), "default 0 B")
      .optional("forward_workspace", &StageSpec::forward_workspace, quantity<Bytes>(),
                "while the forward runs; default 0 B")
      .optional("backward_workspace", &StageSpec::backward_workspace, quantity<Bytes>(),
                "while the backward runs; default 0 B")
      .optional("optimizer_step", &StageSpec::optimizer_step, quantity<Time>(),
                "time of the optimizer on the stage's parameters, once a step; default none")
      .optional("energy", &StageSpec::energy, stage_energy_format(), "of forward and backward");
  add_checks(stage);
  return stage.format();
}

/// Builds the operators of one chain; positions of stages count from 0, values from 0 (a_0).
class ChainBuilder {
 public:
  ChainBuilder(const ChainSpec& chain, const WorkloadOptions& options)
      : chain_(chain),
        split_(options.split_backward),
        builder_(chain.name),
        optimizer_(options.optimizer.value_or(chain.optimizer.value_or(Optimizer::none))) {}

  Workload build() {
    add_values();
    for (std::size_t i = 0; i < chain_.stages.size(); ++i) add_forward(i);
    for (std::size_t i = chain_.stages.size(); i-- > 0;) add_backward(i);
    for (std::size_t i = 0; i < chain_.stages.size(); ++i) add_optimizer_step(i);
    return builder_.freeze();
  }

 private:
  struct StageTensors {
    std::vector<TensorId> saved;  ///< one, or what is held last and the rest
    GivenParameters given;
    OperatorId forward = kNoOperator;
  };

  void add_values() {
    value_.push_back(builder_.add(
        Tensor{"input", chain_.input, TensorClass::activation, Lifetime::input, kNoTensor}));
    delta_.push_back(builder_.add(
        Tensor{"input.gradient", chain_.input, TensorClass::gradient, Lifetime::stays, kNoTensor}));
    stages_.reserve(chain_.stages.size());
    for (const StageSpec& stage : chain_.stages) {
      StageTensors tensors;
      tensors.saved = add_saved(stage);
      value_.push_back(
          builder_.add(Tensor{stage.name + ".output", stage.output, TensorClass::activation,
                              Lifetime::step, tensors.saved.front()}));
      delta_.push_back(
          builder_.add(Tensor{stage.name + ".gradient", stage.gradient.value_or(stage.output),
                              TensorClass::gradient, Lifetime::step, kNoTensor}));
      tensors.given = add_parameters(builder_, stage.name, stage.parameters, optimizer_,
                                     stage.optimizer_step.has_value());
      stages_.push_back(std::move(tensors));
    }
  }

  std::vector<TensorId> add_saved(const StageSpec& stage) {
    const auto add = [&](const char* suffix, Bytes bytes) {
      return builder_.add(
          Tensor{stage.name + suffix, bytes, TensorClass::saved, Lifetime::step, kNoTensor});
    };
    const Bytes held = stage.held_for_weight_gradient.value_or(stage.saved);
    if (!split_ || held == stage.saved) return {add(".saved", stage.saved)};
    const TensorId rest = add(".saved", stage.saved - held);
    return {rest, add(".held", held)};
  }

  void add_forward(std::size_t i) {
    const StageSpec& stage = chain_.stages[i];
    StageTensors& tensors = stages_[i];
    OperatorSpec spec;
    spec.name = stage.name + ".forward";
    spec.given_time = stage.forward;
    spec.given_energy = stage.energy.forward;
    spec.workspace = stage.forward_workspace;
    spec.reads = {value_[i]};
    spec.reads.insert(spec.reads.end(), tensors.given.resident.begin(),
                      tensors.given.resident.end());
    spec.kept = tensors.saved;
    spec.bare = {value_[i + 1]};
    tensors.forward = builder_.add(std::move(spec));
  }

  void add_backward(std::size_t i) {
    const StageSpec& stage = chain_.stages[i];
    const StageTensors& tensors = stages_[i];
    OperatorSpec spec;
    spec.forward = tensors.forward;
    spec.workspace = stage.backward_workspace;
    if (i + 1 < chain_.stages.size()) spec.reads.push_back(delta_[i + 1]);
    for (const TensorId saved : tensors.saved) spec.reads.push_back(saved);
    spec.reads.push_back(value_[i]);
    if (tensors.given.parameters != kNoTensor) spec.reads.push_back(tensors.given.parameters);
    spec.kept = {delta_[i]};
    if (i + 1 == chain_.stages.size()) spec.kept.push_back(delta_[i + 1]);
    spec.given_energy = stage.energy.backward;
    if (split_) {
      spec.name = stage.name + ".backward_input";
      spec.phase = Phase::backward_input;
      spec.given_time = *stage.backward_input;
    } else {
      spec.name = stage.name + ".backward";
      spec.phase = Phase::backward;
      spec.given_time = whole_backward(stage.backward, stage.backward_input, stage.backward_weight);
      if (tensors.given.gradient != kNoTensor) spec.kept.push_back(tensors.given.gradient);
    }
    spec.bare = spec.kept;
    builder_.add(std::move(spec));
    if (split_) add_backward_weight(stage, tensors);
  }

  void add_backward_weight(const StageSpec& stage, const StageTensors& tensors) {
    OperatorSpec spec;
    spec.name = stage.name + ".backward_weight";
    spec.phase = Phase::backward_weight;
    spec.forward = tensors.forward;
    spec.given_time = *stage.backward_weight;
    if (stage.energy.backward) spec.given_energy = Energy{};
    spec.reads = {tensors.saved.back()};
    if (tensors.given.gradient != kNoTensor) spec.kept = {tensors.given.gradient};
    spec.bare = spec.kept;
    builder_.add(std::move(spec));
  }

  /// It waits for the stage's last gradient, which is of 0 B where no parameters are given.
  void add_optimizer_step(std::size_t i) {
    const StageSpec& stage = chain_.stages[i];
    if (!stage.optimizer_step) return;
    const GivenParameters& given = stages_[i].given;
    OperatorSpec spec;
    spec.name = stage.name + ".update";
    spec.phase = Phase::optimizer;
    spec.operator_class = OperatorClass::optimizer;
    spec.given_time = stage.optimizer_step;
    spec.reads = {given.gradient};
    spec.reads.insert(spec.reads.end(), given.resident.begin(), given.resident.end());
    spec.updates = given.resident;
    builder_.add(std::move(spec));
  }

  const ChainSpec& chain_;
  bool split_;
  WorkloadBuilder builder_;
  Optimizer optimizer_;
  std::vector<TensorId> value_, delta_;  ///< a_0..a_L, delta_0..delta_L
  std::vector<StageTensors> stages_;
};

void check_halves(const ChainSpec& chain) {
  Diagnostics diagnostics;
  for (const StageSpec& stage : chain.stages)
    if (!stage.backward_input)
      diagnostics.error(stage.where, "stage `" + stage.name +
                                         "` gives only `backward`; a schedule that splits the "
                                         "backward needs `backward_input` and `backward_weight`");
  diagnostics.throw_if_errors();
}

}  // namespace

Format<ChainSpec> chain_format() {
  const auto stages = checked<std::vector<StageSpec>>(
      list_of(stage_format(), 1, kMaxStages),
      [](const Node& node, Diagnostics& diagnostics) { check_names(node, "stage", diagnostics); });
  return Record<ChainSpec>("chain workload", "A chain of stages with given times and sizes.")
      .where(&ChainSpec::where)
      .required("workload", &ChainSpec::name, name(), "the workload's name")
      .optional("input", &ChainSpec::input, quantity<Bytes>(), "a_0; default 0 B")
      .required("chain", &ChainSpec::stages, stages, "the stages, in the order of execution")
      .optional("batch", &ChainSpec::batch, batch_format(), "samples of the whole mini-batch")
      .optional("optimizer", &ChainSpec::optimizer, optimizer_format(), "default none")
      .optional("step_overhead", &ChainSpec::step_overhead, quantity<Time>(), kStepOverheadText)
      .format();
}

Workload build(const ChainSpec& chain, const WorkloadOptions& options) {
  if (options.split_backward) check_halves(chain);
  Workload workload = ChainBuilder(chain, options).build();
  workload.is_chain = true;
  set_batch(workload, chain.batch, options);
  return workload;
}

}  // namespace plimsoll
