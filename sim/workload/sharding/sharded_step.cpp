#include "workload/sharding/sharded_step.hpp"

#include "workload/sharding/unit_step.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace plimsoll {
namespace {

UnitStep::Ways ways_of(const StateSharding& sharding) {
  UnitStep::Ways ways;
  ways.bring = CollectiveKind::all_gather;
  ways.take = CollectiveKind::reduce_scatter;
  ways.brought = ".gather";
  ways.taken = ".reduce_scatter";
  ways.here = ".whole";
  ways.prefetch = sharding.prefetch;
  ways.brings_once = !sharding.reshards;
  ways.overlap = sharding.overlap;
  ways.by_chain_stage = sharding.by_chain_stage;
  return ways;
}

/// What is elsewhere are the parts of other ranks.
class ShardedStep : public UnitStep {
 public:
  ShardedStep(const Workload& step, const StateSharding& sharding)
      : UnitStep(step, ways_of(sharding)), sharding_(sharding) {
    if (sharding.from_master) find_masters();
  }

 private:
  void find_masters() {
    for (const Tensor& tensor : step_.tensors)
      if (tensor.cast > Bytes{}) cast_[tensor.name.substr(0, tensor.name.rfind('.'))] = tensor.cast;
  }
  /// What of a parameter the rank casts from master copies; of what is frozen there are none.
  [[nodiscard]] Bytes cast_of(TensorId parameter) const {
    const auto found = cast_.find(step_[parameter].name);
    return found == cast_.end() ? Bytes{} : found->second;
  }

  /// Experts that no other rank has are whole.
  [[nodiscard]] bool is_divided(const Tensor& tensor) const {
    return !tensor.is_of_experts || sharding_.ranks_of_experts > 1;
  }
  [[nodiscard]] bool brings(TensorId id) const override {
    return sharding_.stage >= 3 && is_parameter(step_[id]) && is_divided(step_[id]);
  }
  [[nodiscard]] bool takes(TensorId id) const override {
    return sharding_.stage >= 2 && step_[id].lifetime == Lifetime::accumulated &&
           is_divided(step_[id]);
  }

  /// What one of the ranks has that divide it.
  template <class Amount>
  [[nodiscard]] Amount part(Amount whole, bool of_experts) const {
    const std::int64_t ranks = of_experts ? sharding_.ranks_of_experts : sharding_.ranks;
    return Amount{(whole.count() + ranks - 1) / ranks};
  }

  [[nodiscard]] Tensor kept_of(TensorId id) const override {
    Tensor tensor = step_[id];
    const bool is_state = tensor.tensor_class == TensorClass::optimizer_state;
    if (brings(id)) tensor.bytes -= cast_of(id);
    if (is_state || brings(id) || takes(id))
      tensor.bytes = part(tensor.bytes, tensor.is_of_experts);
    return tensor;
  }

  /// An update is one of the rank's part; copies of parameters are made of all of them, and so are
  /// Muon's directions orthogonal.
  void add_optimizer() override {
    for (auto op = step_.optimizer_begin; op < step_.operators.size(); ++op) {
      OperatorSpec spec = spec_of(op);
      const bool of_experts =
          std::ranges::any_of(step_.list(step_.operators[op].reads),
                              [&](TensorId id) { return step_[id].is_of_experts; });
      if (sharding_.stage >= 1 && !works_on_whole(op)) {
        spec.flops = part(spec.flops, of_experts);
        spec.traffic = part(spec.traffic, of_experts);
        spec.workspace = part(spec.workspace, of_experts);
      }
      const bool makes_parts = sharding_.stage >= 1 && !spec.kept.empty() &&
                               spec.collective.kind == CollectiveKind::none &&
                               (!of_experts || sharding_.ranks_of_experts > 1);
      if (makes_parts)
        add_with_gather(std::move(spec), of_experts);
      else
        builder_.add(std::move(spec));
    }
  }

  [[nodiscard]] bool works_on_whole(std::uint32_t op) const {
    return std::ranges::any_of(step_.list(step_.operators[op].updates), [&](TensorId id) {
      return step_[id].is_whole || step_[id].lifetime == Lifetime::step;
    });
  }

  /// What it makes, of the rank's part; then that of all ranks.
  void add_with_gather(OperatorSpec spec, bool of_experts) {
    OperatorSpec gather;
    gather.name = spec.name + ".gather";
    gather.phase = spec.phase;
    gather.given_time = Time{};
    gather.runs_once = true;
    gather.collective = {CollectiveKind::all_gather, MeshAxis::data, of_experts};
    gather.kept = gather.bare = spec.kept;
    for (TensorId& made : spec.kept) {
      Tensor tensor = builder_[made];
      tensor.name += ".part";
      tensor.bytes = part(tensor.bytes, of_experts);
      made = builder_.add(std::move(tensor));
    }
    spec.bare = gather.reads = spec.kept;
    builder_.add(std::move(spec));
    builder_.add(std::move(gather));
  }

  const StateSharding& sharding_;
  std::map<std::string, Bytes> cast_;  ///< by name of the parameter
};

}  // namespace

Workload sharded_step(const Workload& step, const StateSharding& sharding) {
  return ShardedStep(step, sharding).run();
}

}  // namespace plimsoll
