#include "scenario/run/ranks.hpp"

#include "base/dense_id.hpp"
#include "plan/build/gathers_ahead.hpp"
#include "policy/parallel/state_options.hpp"
#include "scenario/run/mesh_axes.hpp"
#include "scenario/run/plan_of_mesh.hpp"
#include "workload/sharding/sharded_step.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

bool has_parameter(const PolicyInfo& info, const std::string& key) {
  return std::ranges::any_of(info.parameters.fields,
                             [&](const Shape::Field& field) { return field.key == key; });
}

/// nullptr where none is named, or an unknown one.
const PolicyInfo* info_of(const Node& policy) {
  const Node* name = policy.is_mapping() ? policy.find("name") : &policy;
  return name != nullptr && name->is_scalar() ? find_policy(name->scalar()) : nullptr;
}

bool is_of_pipelines(const Node& policy) {
  const PolicyInfo* info = info_of(policy);
  return info != nullptr && has_parameter(*info, "devices");
}

/// What an axis would divide, an ONNX file has in constants.
[[noreturn]] void refuse_onnx(const Location& where, MeshOptions::Axis axis) {
  using Axis = MeshOptions::Axis;
  const char* what =
      axis == Axis::tensor    ? "features and heads, whose numbers its reshapes and slices state"
      : axis == Axis::context ? "positions, whose number its reshapes and masks state"
                              : "the experts of a `mixture`, for which ONNX has no operator";
  refuse(where, fmt::format("an ONNX file cannot be divided: `{}` divides {}", name_of(axis), what),
         "`data`, `pipeline` and `sharding` take an ONNX file; a file of `layers` has all axes");
}

void refuse_given(const Node& policy, std::initializer_list<const char*> keys) {
  for (const char* key : keys)
    if (const Node* given = policy.find(key))
      refuse(given->where(),
             fmt::format("`{}` and `parallel` both say which processors work; expected one of them",
                         key));
}

}  // namespace

Ranks::Ranks(const Scenario& scenario, const Node& policy)
    : scenario_(scenario), topology_(scenario.platform) {
  if (scenario.state) updaters_ = updaters_of(*scenario.state, scenario.platform);
  if (is_mesh()) find_mesh();
  if (scenario.state) find_homes(policy);
  const PolicyInfo* info = info_of(policy);
  if (info != nullptr && info->is_for_chains) take_stages_as_units();
}

void Ranks::join_rounds() {
  if (spreading_) spreading_->joins_rounds = true;
}

void Ranks::find_mesh() {
  check_updaters();
  spreading_ = mesh_of(scenario_.platform, *scenario_.parallel, updaters_);
  spreading_->overlap = scenario_.sharding.overlap;
  const auto& bucket = scenario_.sharding.bucket;
  spreading_->bucket = bucket ? bucket->value : kBucket;
  spreading_->first_bucket = bucket ? bucket->value : kFirstBucket;
  const std::int64_t stage = scenario_.sharding.stage;
  if (stage == 1) spreading_->of_gradients = CollectiveKind::reduce_scatter;
  if (stage > 1) spreading_->of_gradients = CollectiveKind::none;
  spreading_->gathers_parameters = stage == 1 || stage == 2;
  check_sharding();
  if (has_groups()) {
    check_group();
    divide_into_groups(*spreading_, *scenario_.parallel, *scenario_.sharding.group);
  }
  for (const MeshOptions::Axis axis :
       {MeshOptions::Axis::tensor, MeshOptions::Axis::context, MeshOptions::Axis::expert})
    check_layers(axis);
  check_from_master();
  check_reshard();
  if (stage > 2) check_fp8("`sharding` in stage 3 leaves no rank whole parameters");
}

/// A processor that only updates is none of the ranks, which `devices` name, or which are all the others.
void Ranks::check_updaters() const {
  const Platform& platform = scenario_.platform;
  const auto& devices = scenario_.parallel->devices;
  const std::int64_t ranks = scenario_.parallel->product();
  const auto all = static_cast<std::int64_t>(platform.processors.size());
  const auto others = all - static_cast<std::int64_t>(updaters_.size());
  std::vector<ProcessorId> both = updaters_;
  if (devices)
    std::erase_if(both, [&](ProcessorId id) {
      return std::ranges::find(*devices, platform[id].name, &Located<std::string>::value) ==
             devices->end();
    });
  const bool each_updates = devices && both.size() == devices->size();
  const bool has_room = !devices && (ranks <= others || ranks > all);
  if (both.empty() || each_updates || has_room) return;
  const std::string& first = platform[both.front()].name;
  const std::string& last = platform[both.back()].name;
  refuse(scenario_.state->optimizer->on->where,
         both.size() == 1
             ? fmt::format("`on` names `{}`, a rank of the mesh, and no rank updates for others",
                           first)
             : fmt::format(
                   "`on` names `{}` to `{}`, ranks of the mesh, and no rank updates for others",
                   first, last),
         "without `on` each rank updates its own part");
}

/// Where nothing says otherwise, the first that does not only update.
ProcessorId Ranks::device_of(const Node& policy) const {
  const Platform& platform = scenario_.platform;
  const Node* on = policy.is_mapping() ? policy.find("on") : nullptr;
  if (on != nullptr && on->is_scalar())
    if (const auto found = platform.find_processor(on->scalar())) return *found;
  for (std::uint32_t p = 0; p < platform.processors.size(); ++p)
    if (std::ranges::count(updaters_, ProcessorId{p}) == 0) return ProcessorId{p};
  return ProcessorId{0};
}

void Ranks::find_homes(const Node& policy) {
  if (!is_mesh()) {
    spreading_.emplace();
    spreading_->likes = {{device_of(policy)}};
    spreading_->of_gradients = CollectiveKind::none;
  }
  for (const auto& likes : spreading_->likes)
    for (const ProcessorId device : likes) std::erase(updaters_, device);
  std::optional<AwayState> of_all;
  for (const auto& likes : spreading_->likes) {
    auto& homes = spreading_->homes.emplace_back();
    for (const ProcessorId device : likes) {
      homes.push_back(homes_of(*scenario_.state, scenario_.platform, topology_, device));
      const AwayState its = away_of(homes.back(), scenario_.platform, device);
      if (of_all && its != *of_all) refuse_home_of_one(device);
      of_all = its;
    }
  }
  if (!of_all->parameters && !of_all->gradients && !of_all->optimizer && !of_all->updates) {
    spreading_->homes.clear();
    if (!is_mesh()) spreading_.reset();
    return;
  }
  away_ = of_all;
  if (away_->parameters || away_->updates)
    check_fp8("`state` leaves no whole parameters where they are updated or used");
  const std::int64_t stage = scenario_.sharding.stage;
  away_->prefetch = is_pipeline() ? 0 : scenario_.sharding.prefetch;
  if (stage == 1 || stage == 2) {
    away_->parts = parts();
    away_->parts_of_experts = parts_of_experts();
  }
  check_state();
}

/// Where state goes to the memory of one rank, it stays there for that one alone.
void Ranks::refuse_home_of_one(ProcessorId device) const {
  const StateOptions& state = *scenario_.state;
  const Platform& platform = scenario_.platform;
  const auto works_in = [&](const std::string& memory) -> const Processor* {
    for (const auto& likes : spreading_->likes)
      for (const ProcessorId rank : likes)
        if (platform[platform[rank].memory].name == memory) return &platform[rank];
    return nullptr;
  };
  const auto free = std::ranges::find_if(platform.memories, [&](const Memory& memory) {
    return !memory.is_switch && works_in(memory.name) == nullptr;
  });
  for (const auto* named :
       {state.optimizer ? &state.optimizer->memory : nullptr, &state.parameters, &state.gradients})
    if (named != nullptr && *named)
      if (const Processor* rank = works_in((*named)->value))
        refuse((*named)->where,
               fmt::format("`{}` is the memory in which rank `{}` works: its own state would stay "
                           "there, that of the other ranks would leave them",
                           (*named)->value, rank->name),
               free == platform.memories.end()
                   ? "expected a memory in which no rank works, and there is none"
                   : fmt::format("expected a memory in which no rank works, such as `{}`",
                                 free->key()));
  refuse(state.where,
         fmt::format("state of `{}` would live otherwise than that of `{}`", platform[device].name,
                     platform[spreading_->likes.front().front()].name));
}

void Ranks::check_network(const Location& where, const char* key, const char* what) const {
  if (!std::holds_alternative<LayersSpec>(scenario_.workload) &&
      !std::holds_alternative<OnnxSpec>(scenario_.workload))
    refuse(where, fmt::format("`{}` {} the parameters of layers, and `{}` is no network of layers",
                              key, what, scenario_.workload_name));
}

void Ranks::check_state() const {
  const StateOptions& state = *scenario_.state;
  check_network(state.where, "state", "places");
  if (optimizer() == Optimizer::muon && away_->updates)
    refuse(state.where,
           "`optimizer: muon` multiplies matrices in bf16 where updates run, which `on` gives to a "
           "processor that does nothing else",
           "without `on` the processor that computes updates, too; or `optimizer: adamw`");
  const std::int64_t stage = scenario_.sharding.stage;
  const std::int64_t alike = size(&MeshOptions::context) * samples();
  if (state.optimizer && optimizer() == Optimizer::none)
    refuse(state.optimizer->where, "there is no state of an optimizer: the workload names none",
           "expected `optimizer: adam` or another in `workload`");
  if (alike > 1 && stage < 2 && (away_->gradients || away_->updates))
    refuse(state.where,
           fmt::format("{} ranks reduce their gradients before these leave, which takes "
                       "`sharding: {{stage: 2}}` or 3",
                       alike));
  if (has_groups() && spreading_->has_copies() && (away_->gradients || away_->updates))
    refuse(scenario_.sharding.group->where,
           "`group` with gradients or updates elsewhere is not supported yet: parts are reduced "
           "across groups after the last microbatch, and these leave before",
           "without `group` all ranks of the data axis divide state");
  if (alike > 1 && stage < 3 && away_->parameters)
    refuse(state.parameters->where,
           fmt::format("`parameters` of {} ranks in `{}` take `sharding: {{stage: 3}}`: else each "
                       "rank would have all of them there",
                       alike, state.parameters->value));
}

bool Ranks::has_groups() const {
  return is_mesh() && scenario_.sharding.stage > 0 && scenario_.sharding.group;
}

std::int64_t Ranks::parts_of_experts() const {
  return size(&MeshOptions::context) *
         (has_groups() ? scenario_.sharding.group->value : size(&MeshOptions::data));
}

std::int64_t Ranks::parts() const {
  return size(&MeshOptions::expert) * parts_of_experts();
}

void Ranks::check_group() const {
  if (parts() == 1)
    refuse(scenario_.sharding.group->where,
           fmt::format("`group: 1` leaves each rank of the data axis all state, and `stage: {}` "
                       "divides none",
                       scenario_.sharding.stage),
           "expected a group of at least 2, or `stage: 0`");
}

bool Ranks::divides_stages() const {
  return scenario_.sharding.stage > 1 && is_pipeline();
}

bool Ranks::brings_parameters() const {
  const ShardingOptions& sharding = scenario_.sharding;
  const bool gathers = is_mesh() && sharding.stage > 2;
  return (gathers && (!sharding.reshard || sharding.reshard->value)) ||
         (away_ && away_->parameters);
}

void Ranks::check_sharding() const {
  const ShardingOptions& sharding = scenario_.sharding;
  if (sharding.stage == 0) return;
  check_network(sharding.where, "sharding", "divides");
  if (divides_stages() && !sharding.overlap)
    refuse(
        sharding.where,
        fmt::format("`overlap: false` with `stage: {}` of a pipeline: a stage cannot wait with its "
                    "gradients for those of other stages",
                    sharding.stage),
        "`overlap: true`, or sharding in stage 0 or 1");
}

void Ranks::check_layers(MeshOptions::Axis axis) const {
  const MeshOptions& parallel = *scenario_.parallel;
  if (parallel.size(axis) == 1) return;
  const auto size = std::ranges::find(kNamedAxes, axis, &NamedAxis::axis)->size;
  const Location& where = (parallel.*size)->where;
  if (std::holds_alternative<OnnxSpec>(scenario_.workload)) refuse_onnx(where, axis);
  if (!std::holds_alternative<LayersSpec>(scenario_.workload))
    refuse(where, fmt::format("`{}` divides the layers of a network, and `{}` is no file of "
                              "`layers`",
                              name_of(axis), scenario_.workload_name));
}

void Ranks::check_reshard() const {
  const ShardingOptions& sharding = scenario_.sharding;
  if (!sharding.reshard) return;
  const Location& where = sharding.reshard->where;
  if (sharding.stage < 3)
    refuse(where,
           fmt::format("`reshard` is about gathered parameters, and stage {} gathers none for a "
                       "forward",
                       sharding.stage),
           "`stage: 3` does");
  if (!sharding.reshard->value && is_pipeline())
    refuse(where,
           "`reshard: false` in a pipeline: each microbatch under way would hold whole parameters "
           "of its "
           "own",
           "`stage: 2` keeps one copy of them");
}

void Ranks::check_from_master() const {
  const ShardingOptions& sharding = scenario_.sharding;
  if (!sharding.from_master || !sharding.from_master->value) return;
  const Location& where = sharding.from_master->where;
  if (sharding.stage < 3)
    refuse(where,
           fmt::format("`from_master` is about parts of parameters, and stage {} divides none",
                       sharding.stage),
           "`stage: 3` does");
  if (!scenario_.workload_options.master_weights)
    refuse(where, "`from_master` casts parts of master copies, and there are none",
           "`master_weights: true` makes them");
  if (scenario_.state)
    refuse(where, "`from_master` with `state` is not supported yet",
           "`state` says where parameters live");
}

Optimizer Ranks::optimizer() const {
  const auto* layers = std::get_if<LayersSpec>(&scenario_.workload);
  const auto of_file = layers != nullptr ? layers->optimizer : std::nullopt;
  return scenario_.workload_options.optimizer.value_or(of_file.value_or(Optimizer::none));
}

/// What is cached is made once a step, of whole parameters, where they are updated.
void Ranks::check_fp8(const char* why) const {
  const auto& fp8 = scenario_.workload_options.fp8;
  if (fp8 && fp8->value.caches_weights)
    refuse(fp8->where, fmt::format("`fp8` caches copies of whole weights, and {}", why),
           "`fp8: {recipe: ..., weights: anew}` makes them for each microbatch");
}

Workload Ranks::step_of_one(Workload step) const {
  const ShardingOptions& sharding = scenario_.sharding;
  if (is_mesh() && sharding.stage > 0) {
    const bool by_stage = sharding.stage > 1 && has_stages_as_units();
    StateSharding of_state{sharding.stage, parts(), by_stage ? 0 : sharding.prefetch,
                           sharding.overlap, by_stage};
    of_state.ranks_of_experts = parts_of_experts();
    of_state.from_master = sharding.from_master && sharding.from_master->value;
    of_state.reshards = !sharding.reshard || sharding.reshard->value;
    step = sharded_step(step, of_state);
  }
  return away_ ? with_state_elsewhere(step) : step;
}

Workload Ranks::with_state_elsewhere(const Workload& step) const {
  if (away_->gradients || away_->updates)
    for (const Tensor& tensor : step.tensors)
      if (tensor.is_partial)
        refuse(scenario_.state->where,
               fmt::format("`{}` is a part of a sum over the tensor axis, and cannot leave before "
                           "the ranks have added it up",
                           tensor.name));
  AwayState away = *away_;
  away.by_chain_stage = has_stages_as_units();
  return away_step(step, away);
}

std::string Ranks::why_not_theirs(const Plan& plan, const Workload& as_played) const {
  return is_mesh() ? why_not_of_mesh(plan, as_played, scenario_.platform, *spreading_) : "";
}

Workload Ranks::as_played(Workload step) const {
  return away_ ? with_room_for_gradients(std::move(step)) : step;
}

std::int64_t Ranks::count() const {
  return is_mesh() ? std::int64_t{spreading_->ranks()} *
                         static_cast<std::int64_t>(spreading_->likes.size())
                   : 1;
}

std::int64_t Ranks::samples() const {
  return is_mesh() ? scenario_.parallel->samples() : 1;
}

std::string Ranks::axes_of_samples() const {
  const MeshOptions& parallel = *scenario_.parallel;
  const bool has_data = MeshOptions::size(parallel.data) > 1;
  if (MeshOptions::size(parallel.expert) == 1) return "data axis";
  return has_data ? "expert and data axes" : "expert axis";
}

std::int64_t Ranks::size(std::optional<Located<std::int64_t>> MeshOptions::*axis) const {
  return is_mesh() ? MeshOptions::size(*scenario_.parallel.*axis) : 1;
}

std::int64_t Ranks::of_a_sample() const {
  return size(&MeshOptions::tensor) * size(&MeshOptions::context);
}

void Ranks::tell(WorkloadOptions& options) const {
  if (is_mesh()) tell_axes(*scenario_.parallel, options);
  options.momentum_is_apart =
      options.tensor.has_value() || scenario_.sharding.stage > 0 || has_state_elsewhere();
}

Node Ranks::policy_of_one(const Node& policy) const {
  if (!is_mesh() && away_ && is_of_pipelines(policy))
    refuse(policy.where(), "`state` of a pipeline takes `parallel: {pipeline: N}`");
  if (!is_mesh()) return policy;
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

/// All but those that only update, and of a mesh those of no rank's kind: a host's, whose memory is storage.
std::vector<ProcessorId> Ranks::that_compute(const Platform& platform) const {
  std::set<std::string_view> kinds;
  if (is_mesh())
    for (const auto& likes : spreading_->likes)
      for (const ProcessorId of : likes) kinds.insert(platform[of].key());
  std::vector<ProcessorId> kept;
  for (std::uint32_t p = 0; p < platform.processors.size(); ++p)
    if (std::ranges::count(updaters_, ProcessorId{p}) == 0 &&
        (!is_mesh() || kinds.contains(platform.processors[p].key())))
      kept.push_back(ProcessorId{p});
  return kept;
}

Planned Ranks::planned(const std::function<Planned(const Problem&)>& plan,
                       const Problem& problem) const {
  const bool names_devices = is_mesh() && scenario_.parallel->devices;
  if (!away_ && !names_devices) return plan(problem);
  const std::vector<ProcessorId> kept = that_compute(problem.platform);
  const Workload seen = away_ ? as_seen_here(problem.workload, away_->updates) : problem.workload;
  const ChainView chain = problem.chain.is_of_pipeline ? pipeline_view(seen) : chain_view(seen);
  Platform here = problem.platform;
  here.processors.clear();
  for (const ProcessorId p : kept) here.processors.push_back(problem.platform[p]);
  const Topology topology(here);
  Planned planned = plan({seen, chain, here, topology, problem.judge, problem.work});
  if (Plan* own = std::get_if<Plan>(&planned)) {
    for (Lane& lane : own->lanes)
      if (lane.kind == Lane::Kind::stream) lane.processor = kept[index(lane.processor)];
    for (Mirror& mirror : own->mirrors)
      mirror = {kept[index(mirror.processor)], kept[index(mirror.like)]};
  }
  return planned;
}

std::unique_ptr<LeastCollectives> Ranks::least_collectives(const Problem& problem) const {
  if (!is_mesh()) return nullptr;
  return std::make_unique<LeastCollectives>(*spreading_, *scenario_.parallel, problem.workload,
                                            problem.platform, problem.topology);
}

MemoryId Ranks::memory_of_first() const {
  return scenario_.platform[spreading_->likes.front().front()].memory;
}

Plan Ranks::of_all(Plan of_one, const Problem& problem, std::optional<std::int64_t> ahead) const {
  if (!spreading_) return of_one;
  const bool brings = scenario_.sharding.stage > 2 || (away_ && away_->parameters);
  const MovedGathers moved = is_pipeline()           ? MovedGathers::all
                             : has_stages_as_units() ? MovedGathers::of_pass
                                                     : MovedGathers::repeated;
  if (brings)
    of_one = with_gathers_ahead(std::move(of_one), problem.workload,
                                ahead.value_or(scenario_.sharding.prefetch), moved);
  return is_mesh() ? plan_of_ranks(of_one, problem, *scenario_.parallel, *spreading_, symmetry_)
                   : plan_of_one_rank(of_one, problem, *spreading_);
}

}  // namespace plimsoll
