#include "workload/network/optimizer_step.hpp"

#include "workload/operators/muon.hpp"
#include "workload/operators/optimizer_rules.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

/// What passes over all gradients before the first update.
struct GradientPass {
  const char* suffix;
  std::int64_t flops;  ///< an element
  bool changes;        ///< in place
  bool is_fused;       ///< one kernel, not one a tensor
};

class OptimizerStep {
 public:
  OptimizerStep(WorkloadBuilder& builder, const std::vector<UpdatedLayer>& layers,
                const StepOptions& options)
      : builder_(builder), layers_(layers), options_(options) {}

  void run() {
    if (options_.scales_loss) add({".unscale", 1, true, true});
    if (options_.clips_gradients) {
      add({".norm", 2, false, options_.fused_optimizer});
      add({".clip", 1, true, options_.fused_optimizer});
    }
    for (const UpdatedLayer& layer : layers_) {
      if (options_.optimizer == Optimizer::muon) add_orthogonalization(layer);
      add_update(layer);
    }
  }

 private:
  static OperatorSpec spec_of(const UpdatedLayer& layer, const char* suffix) {
    OperatorSpec spec;
    spec.name = layer.name + suffix;
    spec.phase = Phase::optimizer;
    spec.operator_class = OperatorClass::optimizer;
    return spec;
  }

  static std::int64_t elements(const UpdatedParameter& parameter) {
    return elements_of(parameter.trained).count();
  }

  void add(const GradientPass& pass) {
    for (const UpdatedLayer& layer : layers_) {
      OperatorSpec spec = spec_of(layer, pass.suffix);
      for (const UpdatedParameter& parameter : layer.parameters) {
        spec.reads.push_back(parameter.gradient);
        spec.flops += Flops{pass.flops} * elements(parameter);
      }
      if (pass.changes) spec.updates = spec.reads;
      if (!pass.is_fused) spec.launches = static_cast<std::uint32_t>(spec.reads.size());
      spec.traffic = builder_.moved(spec);
      builder_.add(std::move(spec));
    }
  }

  [[nodiscard]] bool is_of_muon(const UpdatedParameter& parameter) const {
    return options_.optimizer == Optimizer::muon && parameter.is_hidden && !parameter.is_in_int8;
  }

  [[nodiscard]] Optimizer optimizer_of(const UpdatedParameter& parameter) const {
    const bool is_of_adamw = options_.optimizer == Optimizer::muon && !is_of_muon(parameter);
    return is_of_adamw ? Optimizer::adamw : options_.optimizer;
  }

  /// In place of the gradients of what Muon takes, which only the update reads then.
  void add_orthogonalization(const UpdatedLayer& layer) {
    OperatorSpec spec = spec_of(layer, ".orthogonalize");
    spec.operator_class = OperatorClass::matmul;
    spec.dtype = DType::bf16;
    spec.launches = 0;
    for (const UpdatedParameter& parameter : layer.parameters) {
      if (!is_of_muon(parameter)) continue;
      const auto of = orthogonalization_of(layer.operator_class, parameter.trained);
      spec.updates.push_back(parameter.gradient);
      add_moments(parameter, spec);
      spec.flops += of.flops;
      spec.traffic += of.traffic;
      spec.workspace = std::max(spec.workspace, of.workspace);
      spec.launches += of.kernels;
    }
    spec.reads = spec.updates;
    if (!spec.reads.empty()) builder_.add(std::move(spec));
  }

  void add_update(const UpdatedLayer& layer) {
    OperatorSpec spec = spec_of(layer, ".update");
    Bytes again, untouched;
    std::uint32_t kernels = 0;
    for (const UpdatedParameter& parameter : layer.parameters) {
      const Optimizer optimizer = optimizer_of(parameter);
      const Elements trained{elements(parameter)};
      spec.reads.push_back(parameter.gradient);
      spec.updates.push_back(parameter.tensor);
      untouched += builder_[parameter.tensor].bytes - parameter.trained_bytes;
      if (options_.master_weights)
        add_state(parameter, "master", kMasterElement * elements(parameter), spec);
      if (optimizer != Optimizer::muon) add_moments(parameter, spec);
      spec.flops += Flops{update_flops(optimizer)} * trained.count();
      if (options_.fused_optimizer || parameter.is_in_int8) continue;
      spec.workspace = std::max(spec.workspace,
                                optimizer_temporaries(optimizer, trained, options_.state_element));
      again += repeated_passes(optimizer, trained, options_.state_element);
      kernels += update_kernels(optimizer, parameter.trained);
    }
    const bool has_state = spec.updates.size() > layer.parameters.size();
    if (!has_state && std::ranges::all_of(layer.parameters, &UpdatedParameter::is_in_int8))
      spec.dtype = DType::int8;
    spec.launches = std::max(kernels, 1U);
    spec.reads.insert(spec.reads.end(), spec.updates.begin(), spec.updates.end());
    spec.traffic = builder_.moved(spec) + again - untouched * 2;
    builder_.add(std::move(spec));
  }

  /// What only the optimizer reads.
  void add_state(const UpdatedParameter& parameter, const std::string& suffix, Bytes bytes,
                 OperatorSpec& spec) {
    const Tensor& of = builder_[parameter.tensor];
    spec.updates.push_back(
        builder_.add(Tensor{of.name + "." + suffix, bytes, TensorClass::optimizer_state,
                            Lifetime::resident, kNoTensor, false, false, of.is_of_experts}));
  }

  void add_moments(const UpdatedParameter& parameter, OperatorSpec& spec) {
    for (const auto& [suffix, bytes] :
         optimizer_state(optimizer_of(parameter), parameter.trained, options_.state_element))
      add_state(parameter, suffix, bytes, spec);
  }

  WorkloadBuilder& builder_;
  const std::vector<UpdatedLayer>& layers_;
  const StepOptions& options_;
};

}  // namespace

void add_optimizer_step(WorkloadBuilder& builder, const std::vector<UpdatedLayer>& layers,
                        const StepOptions& options) {
  OptimizerStep(builder, layers, options).run();
}

}  // namespace plimsoll
