#include "scenario/run/ranks.hpp"

#include "plan/build/gathers_ahead.hpp"
#include "workload/sharding/sharded_step.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

bool has_parameter(const PolicyInfo& info, const std::string& key) {
  return std::ranges::any_of(info.parameters.fields,
                             [&](const Shape::Field& field) { return field.key == key; });
}

void refuse_given(const Node& policy, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const Node* given = policy.find(key))
      refuse(given->where(),
             fmt::format("`{}` and `parallel` both say which processors work; expected one of them",
                         key));
}

}  // namespace

Ranks::Ranks(const Scenario& scenario) : scenario_(scenario) {
  if (!scenario.parallel) return;
  spreading_ = mesh_of(scenario.platform, *scenario.parallel);
  spreading_->overlap = scenario.sharding.overlap;
  const auto& bucket = scenario.sharding.bucket;
  spreading_->bucket = bucket ? bucket->value : kBucket;
  spreading_->first_bucket = bucket ? bucket->value : kFirstBucket;
  const std::int64_t stage = scenario.sharding.stage;
  if (stage == 1) spreading_->of_gradients = CollectiveKind::reduce_scatter;
  if (stage > 1) spreading_->of_gradients = CollectiveKind::none;
  spreading_->gathers_parameters = stage == 1 || stage == 2;
  check_sharding();
  check_layers(scenario.parallel->tensor, "tensor");
  check_layers(scenario.parallel->context, "context");
  check_layers(scenario.parallel->expert, "expert");
  check_tensor();
}

void Ranks::check_layers(const std::optional<Located<std::int64_t>>& axis, const char* name) const {
  if (MeshOptions::size(axis) == 1) return;
  if (!std::holds_alternative<LayersSpec>(scenario_.workload))
    refuse(axis->where, fmt::format("`{}` divides the layers of a network, and `{}` is no file of "
                                    "`layers`",
                                    name, scenario_.workload_name));
  if (const auto& lora = scenario_.workload_options.lora)
    refuse(lora->rank.where, fmt::format("`lora` with the axis `{}` is not supported yet", name));
}

void Ranks::check_tensor() const {
  if (size(&MeshOptions::tensor) == 1) return;
  const WorkloadOptions& options = scenario_.workload_options;
  if (options.autocast && tensor_axis()->sequence)
    refuse(*tensor_axis()->sequence,
           "`sequence: true` with `autocast` is not supported yet: what is gathered would be cast "
           "afterwards",
           "`dtype: bf16` with `master_weights: true` is mixed precision, too");
}

bool Ranks::divides_stages() const {
  return scenario_.sharding.stage > 1 && spreading_->likes.size() > 1;
}

void Ranks::check_sharding() const {
  const ShardingOptions& sharding = scenario_.sharding;
  if (sharding.stage == 0) return;
  if (!std::holds_alternative<LayersSpec>(scenario_.workload) &&
      !std::holds_alternative<OnnxSpec>(scenario_.workload))
    refuse(sharding.where,
           fmt::format("`sharding` divides the parameters of layers, and `{}` is no network of "
                       "layers",
                       scenario_.workload_name));
  if (divides_stages() && !sharding.overlap)
    refuse(
        sharding.where,
        fmt::format("`overlap: false` with `stage: {}` of a pipeline: a stage cannot wait with its "
                    "gradients for those of other stages",
                    sharding.stage),
        "`overlap: true`, or sharding in stage 0 or 1");
}

Workload Ranks::step_of_one(Workload step) const {
  const ShardingOptions& sharding = scenario_.sharding;
  if (!spreading_ || sharding.stage == 0) return step;
  const bool by_stage = divides_stages();
  const std::int64_t context = size(&MeshOptions::context);
  StateSharding of_state{sharding.stage, context * samples(), by_stage ? 0 : sharding.prefetch,
                         sharding.overlap, by_stage};
  of_state.ranks_of_experts = context * size(&MeshOptions::data);
  return sharded_step(step, of_state);
}

std::int64_t Ranks::count() const {
  return spreading_ ? std::int64_t{spreading_->ranks()} *
                          static_cast<std::int64_t>(spreading_->likes.size())
                    : 1;
}

std::int64_t Ranks::samples() const {
  return spreading_ ? scenario_.parallel->samples() : 1;
}

std::string Ranks::axes_of_samples() const {
  const MeshOptions& parallel = *scenario_.parallel;
  const bool has_data = MeshOptions::size(parallel.data) > 1;
  if (MeshOptions::size(parallel.expert) == 1) return "data axis";
  return has_data ? "expert and data axes" : "expert axis";
}

std::int64_t Ranks::size(std::optional<Located<std::int64_t>> MeshOptions::*axis) const {
  return spreading_ ? MeshOptions::size(*scenario_.parallel.*axis) : 1;
}

std::int64_t Ranks::of_a_sample() const {
  return size(&MeshOptions::tensor) * size(&MeshOptions::context);
}

std::optional<TensorAxis> Ranks::tensor_axis() const {
  const std::int64_t ranks = size(&MeshOptions::tensor);
  if (ranks == 1) return std::nullopt;
  TensorAxis axis{scenario_.parallel->tensor->where, ranks, std::nullopt};
  const auto& sequence = scenario_.parallel->sequence;
  if (sequence && sequence->value) axis.sequence = sequence->where;
  return axis;
}

void Ranks::tell(WorkloadOptions& options) const {
  options.tensor = tensor_axis();
  if (size(&MeshOptions::context) > 1) options.context = scenario_.parallel->context;
  if (size(&MeshOptions::expert) > 1) options.expert = scenario_.parallel->expert;
}

Node Ranks::policy_of_one(const Node& policy) const {
  if (!spreading_) return policy;
  Diagnostics diagnostics;
  Node told = policy;
  if (policy.is_scalar()) {
    told = parse_value("{}", policy.where().origin);
    told.set("name", policy, diagnostics);
  }
  const Node* name = told.find("name");
  const PolicyInfo* info =
      name != nullptr && name->is_scalar() ? find_policy(name->scalar()) : nullptr;
  if (info == nullptr) return policy;
  const auto name_of = [&](const std::vector<ProcessorId>& likes) {
    return '"' + scenario_.platform[likes.front()].name + '"';
  };
  if (has_parameter(*info, "devices")) {
    refuse_given(told, {"devices", "data_parallel", "replicas"});
    std::vector<std::string> names;
    for (const auto& likes : spreading_->likes) names.push_back(name_of(likes));
    told.set("devices", parse_value(fmt::format("[{}]", fmt::join(names, ", ")), "parallel"),
             diagnostics);
  } else {
    if (spreading_->likes.size() > 1)
      refuse(scenario_.parallel->pipeline->where,
             fmt::format("policy `{}` runs a whole network on each rank; `pipeline: {}` is for "
                         "policies `pipeline/..`",
                         info->name, spreading_->likes.size()));
    refuse_given(told, {"on"});
    told.set("on", parse_value(name_of(spreading_->likes.front()), "parallel"), diagnostics);
  }
  diagnostics.throw_if_errors();
  return told;
}

Plan Ranks::of_all(Plan of_one, const Problem& problem) const {
  if (!spreading_) return of_one;
  if (divides_stages())
    of_one = with_gathers_ahead(std::move(of_one), problem.workload, scenario_.sharding.prefetch);
  else if (scenario_.sharding.stage > 2)
    of_one = with_gathers_ahead(std::move(of_one), problem.workload, scenario_.sharding.prefetch,
                                MovedGathers::repeated);
  return plan_of_ranks(of_one, problem, *scenario_.parallel, *spreading_);
}

}  // namespace plimsoll
