#include "workload/step/optimizer_step.hpp"

#include "workload/operators/muon.hpp"
#include "workload/operators/optimizer_rules.hpp"

#include <algorithm>
#include <map>

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
      if (options_.optimizer == Optimizer::muon) {
        if (options_.momentum_is_apart)
          add_apart(layer);
        else
          add_orthogonalization(layer);
      }
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

  // ---- Muon of matrices, or moments, of which there are parts ----

  void add_apart(const UpdatedLayer& layer) {
    directions_.clear();
    std::vector<const UpdatedParameter*> hidden;
    for (const UpdatedParameter& parameter : layer.parameters)
      if (is_of_muon(parameter)) hidden.push_back(&parameter);
    if (hidden.empty()) return;
    add_momentum(layer, hidden);
    gather_directions(layer, hidden);
    orthogonalize_directions(layer, hidden);
  }

  TensorId add_direction(const UpdatedParameter& parameter, const char* suffix, const Dims& dims) {
    const Tensor& of = builder_[parameter.tensor];
    return builder_.add(Tensor{of.name + suffix, muon_momentum(elements_of(dims)).direction,
                               TensorClass::gradient, Lifetime::step, kNoTensor, false, false,
                               of.is_of_experts});
  }

  void add_momentum(const UpdatedLayer& layer, const std::vector<const UpdatedParameter*>& hidden) {
    OperatorSpec spec = spec_of(layer, ".momentum");
    spec.launches = 0;
    for (const UpdatedParameter* parameter : hidden) {
      const MuonMomentum momentum = muon_momentum(elements_of(parameter->trained));
      spec.reads.push_back(parameter->gradient);
      add_moments(*parameter, spec);
      const TensorId direction = add_direction(*parameter, ".direction", parameter->trained);
      spec.kept.push_back(direction);
      directions_[parameter->tensor] = direction;
      spec.traffic += momentum.traffic;
      spec.launches += momentum.kernels;
    }
    spec.reads.insert(spec.reads.end(), spec.updates.begin(), spec.updates.end());
    spec.bare = spec.kept;
    builder_.add(std::move(spec));
  }

  /// Of those that the tensor axis divides.
  void gather_directions(const UpdatedLayer& layer,
                         const std::vector<const UpdatedParameter*>& hidden) {
    OperatorSpec spec = spec_of(layer, ".gather");
    spec.given_time = Time{};
    spec.runs_once = true;
    spec.collective = {CollectiveKind::all_gather, MeshAxis::tensor};
    for (const UpdatedParameter* parameter : hidden) {
      if (parameter->whole == parameter->trained) continue;
      TensorId& direction = directions_[parameter->tensor];
      spec.reads.push_back(direction);
      direction = add_direction(*parameter, ".direction.whole", parameter->whole);
      spec.kept.push_back(direction);
    }
    spec.bare = spec.kept;
    if (!spec.reads.empty()) builder_.add(std::move(spec));
  }

  void orthogonalize_directions(const UpdatedLayer& layer,
                                const std::vector<const UpdatedParameter*>& hidden) {
    OperatorSpec spec = spec_of(layer, ".orthogonalize");
    spec.operator_class = OperatorClass::matmul;
    spec.dtype = DType::bf16;
    spec.launches = 0;
    for (const UpdatedParameter* parameter : hidden) {
      const auto of = orthogonalization_of_direction(layer.operator_class, parameter->whole);
      spec.updates.push_back(directions_[parameter->tensor]);
      spec.flops += of.flops;
      spec.traffic += of.traffic;
      spec.workspace = std::max(spec.workspace, of.workspace);
      spec.launches += of.kernels;
    }
    spec.reads = spec.updates;
    builder_.add(std::move(spec));
  }

  /// What the update reads in the place of the gradient: of what is orthogonal the rank's part.
  void read_direction(const UpdatedParameter& parameter, TensorId direction,
                      OperatorSpec& spec) const {
    spec.reads.push_back(direction);
    spec.traffic += orthogonal_bytes(elements_of(parameter.trained)) - builder_[direction].bytes;
  }

  void add_update(const UpdatedLayer& layer) {
    OperatorSpec spec = spec_of(layer, ".update");
    Bytes again, untouched;
    std::uint32_t kernels = 0;
    for (const UpdatedParameter& parameter : layer.parameters) {
      const Optimizer optimizer = optimizer_of(parameter);
      const Elements trained{elements(parameter)};
      const auto direction = directions_.find(parameter.tensor);
      if (direction != directions_.end())
        read_direction(parameter, direction->second, spec);
      else
        spec.reads.push_back(parameter.gradient);
      spec.updates.push_back(parameter.tensor);
      untouched += builder_[parameter.tensor].bytes - parameter.trained_bytes;
      if (options_.master_weights) add_master(parameter, spec);
      if (optimizer != Optimizer::muon) add_moments(parameter, spec);
      spec.flops += Flops{update_flops(optimizer)} * trained.count();
      if (options_.fused_optimizer || parameter.is_in_int8) continue;
      spec.workspace = std::max(spec.workspace,
                                optimizer_temporaries(optimizer, trained, options_.state_element));
      again += repeated_passes(optimizer, trained, options_.state_element);
      // Which has counted what is orthogonal in the gradient's place.
      if (direction != directions_.end())
        again += kMasterElement * trained.count() - orthogonal_bytes(trained);
      kernels += update_kernels(optimizer, parameter.trained);
    }
    const bool has_state = spec.updates.size() > layer.parameters.size();
    if (!has_state && std::ranges::all_of(layer.parameters, &UpdatedParameter::is_in_int8))
      spec.dtype = DType::int8;
    spec.launches = std::max(kernels, 1U);
    spec.reads.insert(spec.reads.end(), spec.updates.begin(), spec.updates.end());
    spec.traffic += builder_.moved(spec) + again - untouched * 2;
    builder_.add(std::move(spec));
  }

  /// What only the optimizer reads.
  [[nodiscard]] Tensor state_of(const UpdatedParameter& parameter, const std::string& suffix,
                                Bytes bytes) const {
    const Tensor& of = builder_[parameter.tensor];
    Tensor state{of.name + "." + suffix, bytes, TensorClass::optimizer_state, Lifetime::resident};
    state.is_of_experts = of.is_of_experts;
    return state;
  }

  void add_master(const UpdatedParameter& parameter, OperatorSpec& spec) {
    Tensor master = state_of(parameter, "master", kMasterElement * elements(parameter));
    master.cast = parameter.trained_bytes;
    spec.updates.push_back(builder_.add(std::move(master)));
  }

  void add_moments(const UpdatedParameter& parameter, OperatorSpec& spec) {
    for (const auto& [suffix, bytes] :
         optimizer_state(optimizer_of(parameter), parameter.trained, options_.state_element))
      spec.updates.push_back(builder_.add(state_of(parameter, suffix, bytes)));
  }

  WorkloadBuilder& builder_;
  const std::vector<UpdatedLayer>& layers_;
  const StepOptions& options_;
  /// By parameter, where the momentum of the layer is apart: of what is updated next.
  std::map<TensorId, TensorId> directions_;
};

}  // namespace

void add_optimizer_step(WorkloadBuilder& builder, const std::vector<UpdatedLayer>& layers,
                        const StepOptions& options) {
  OptimizerStep(builder, layers, options).run();
}

}  // namespace plimsoll
