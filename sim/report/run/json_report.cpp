#include "report/run/json_report.hpp"

#include "execution/held_stages.hpp"
#include "scenario/run/mesh_remedies.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace plimsoll {

namespace {

using Json = nlohmann::ordered_json;

Json by_class(const std::array<Bytes, kTensorClasses>& bytes) {
  Json object = Json::object();
  for (std::size_t c = 0; c < kTensorClasses; ++c)
    if (bytes[c] != Bytes{}) object[to_text(static_cast<TensorClass>(c))] = bytes[c].count();
  return object;
}

/// A new object of that name. No other has it: looking for one would take O(n) each time.
Json& added(Json& all, const std::string& name) {
  return all.get_ref<Json::object_t&>().emplace_back(name, Json::object()).second;
}

Json memories_json(const Metrics& metrics) {
  Json all = Json::object();
  for (const MemoryMetrics& memory : metrics.memories) {
    Json& object = added(all, memory.name);
    if (memory.capacity) object["capacity_bytes"] = memory.capacity->count();
    object["peak_requested_bytes"] = memory.peak_requested.count();
    object["peak_allocated_bytes"] = memory.peak_allocated.count();
    object["peak_held_bytes"] = memory.peak_held.count();
    object["peak_reserved_bytes"] = memory.peak_reserved.count();
    object["fragmentation"] = memory.fragmentation;
    object["peak_time_s"] = in_seconds(memory.peak_time);
    object["at_peak"] = by_class(memory.at_peak);
    object["written_bytes"] = memory.bytes_written.count();
    if (memory.wear) object["wear_per_iteration"] = *memory.wear;
  }
  return all;
}

Json links_json(const Metrics& metrics) {
  Json all = Json::object();
  for (const LinkMetrics& link : metrics.links) {
    Json& object = added(all, link.name);
    object["forward_bytes"] = link.bytes[0].count();
    object["backward_bytes"] = link.bytes[1].count();
    if (!link.busy) continue;
    object["forward_busy"] = (*link.busy)[0];
    object["backward_busy"] = (*link.busy)[1];
    if (link.busy_of_both) object["busy"] = *link.busy_of_both;
  }
  return all;
}

/// Abstract operators have times and no FLOPs.
bool knows_flops(const Workload& workload) {
  return std::ranges::any_of(workload.operators,
                             [](const Operator& op) { return op.flops != Flops{}; });
}

Json processors_json(const RunResult& result) {
  Json all = Json::object();
  for (const ProcessorMetrics& processor : result.metrics.processors) {
    Json& object = added(all, processor.name);
    object["busy_s"] = in_seconds(processor.busy);
    object["span_s"] = in_seconds(processor.span);
    if (processor.reach) object["reach_s"] = in_seconds(*processor.reach);
    Json& stalls = object["stall_s"] = Json::object();
    for (std::size_t c = 0; c < kStallCauses; ++c)
      stalls[to_text(static_cast<StallCause>(c))] = in_seconds(processor.stall[c]);
    if (processor.bubble) object["bubble"] = *processor.bubble;
    object["recomputed_ops"] = processor.recomputed_ops;
    if (processor.recomputed_ops > 0 && !knows_flops(result.workload_as_run))
      object["recomputed_flops"] = nullptr;
    else
      object["recomputed_flops"] = processor.recomputed_flops.count();
  }
  return all;
}

Json energy_json(const EnergyMetrics& energy, const EnergyBand& band) {
  Json object{{"total_j", in_joules(energy.total)},
              {"per_sample_j", in_joules(energy.per_sample)},
              {"average_w", in_watts(energy.average)},
              {"peak_w", nullptr}};
  if (energy.peak) object["peak_w"] = in_watts(*energy.peak);
  const double sample = in_joules(energy.per_sample);
  object["per_sample_band_j"] = {sample * band.least, sample * band.most};
  Json& components = object["components"] = Json::object();
  for (const auto& [name, part] : energy.components) components[name] = in_joules(part);
  Json& phases = object["phases"] = Json::object();
  for (std::size_t i = 0; i < kEnergyPhases; ++i)
    if (energy.phases[i] != Energy{})
      phases[to_text(static_cast<EnergyPhase>(i))] = in_joules(energy.phases[i]);
  if (energy.steps_per_battery) object["steps_per_battery"] = *energy.steps_per_battery;
  if (energy.samples_per_battery) object["samples_per_battery"] = *energy.samples_per_battery;
  return object;
}

void add_if(Json& object, const char* key, const std::optional<double>& value) {
  if (value) object[key] = *value;
}

Json checkpoints_json(const CheckpointMetrics& it) {
  Json object{{"to", it.to},
              {"bytes", it.bytes.count()},
              {"every_steps", it.every},
              {"write_s", in_seconds(it.write)},
              {"read_s", in_seconds(it.read)}};
  if (it.write_energy) object["write_j"] = in_joules(*it.write_energy);
  if (it.read_energy) object["read_j"] = in_joules(*it.read_energy);
  object["time_share"] = it.time_share;
  add_if(object, "energy_share", it.energy_share);
  add_if(object, "young_s", it.young_s);
  add_if(object, "daly_s", it.daly_s);
  return object;
}

Json training_json(const WholeTraining& training) {
  Json object = Json::object();
  if (training.steps) object["steps"] = *training.steps;
  object["steps_per_day"] = training.steps_per_day;
  object["step_s"] = training.step_s;
  add_if(object, "step_j", training.step_j);
  if (training.rest) object["rest_w"] = in_watts(*training.rest);
  add_if(object, "days", training.days);
  add_if(object, "energy_j", training.energy_j);
  if (const auto& charge = training.charge) {
    object["battery"] = {{"days_per_charge", charge->days},
                         {"steps_per_charge", charge->steps},
                         {"samples_per_charge", charge->samples}};
    add_if(object["battery"], "charges", charge->charges);
  }
  if (const auto& failures = training.failures) {
    object["failures"] = {{"per_day", failures->per_day}, {"repeated", failures->repeated}};
    add_if(object["failures"], "in_all", failures->in_all);
  }
  if (training.checkpoints) object["checkpoints"] = checkpoints_json(*training.checkpoints);
  for (const StorageMetrics& it : training.storages) {
    Json& storage = object["storage"][it.name];
    storage["written_bytes_per_step"] = it.written_per_step;
    add_if(storage, "written_bytes", it.written);
    add_if(storage, "wear", it.wear);
    add_if(storage, "lasts_days", it.lasts_days);
  }
  return object;
}

Json peaks_json(const RunResult& result, const std::vector<std::pair<MemoryId, Bytes>>& peaks) {
  Json object = Json::object();
  for (const auto& [memory, bytes] : peaks)
    object[result.memory_names[static_cast<std::size_t>(memory)]] = bytes.count();
  return object;
}

Json stages_json(const RunResult& result) {
  Json all = Json::array();
  for (const HeldStages& held : held_stages(result.plan, result.workload_as_run)) {
    Json& object = all.emplace_back(
        Json{{"begin", held.begin}, {"end", held.end}, {"first", held.first}, {"last", held.last}});
    for (const ProcessorId processor : held.processors)
      object["processors"].push_back(
          result.metrics.processors[static_cast<std::size_t>(processor)].name);
  }
  return all;
}

Json claims_json(const RunResult& result) {
  const Claims& claims = result.claims;
  Json object = Json::object();
  if (claims.makespan) object["makespan_s"] = in_seconds(*claims.makespan);
  if (claims.period) object["period_s"] = in_seconds(*claims.period);
  if (!claims.peak.empty()) object["peak_bytes"] = peaks_json(result, claims.peak);
  if (claims.energy) object["energy_j"] = in_joules(*claims.energy);
  if (!claims.in_flight.empty()) object["in_flight"] = claims.in_flight;
  if (claims.model_makespan) object["model_makespan_s"] = in_seconds(*claims.model_makespan);
  if (claims.model_period) object["model_period_s"] = in_seconds(*claims.model_period);
  if (!claims.model_peak.empty())
    object["model_peak_bytes"] = peaks_json(result, claims.model_peak);
  if (claims.optimal) object["optimal"] = *claims.optimal;
  if (!claims.chosen.empty()) object["chosen"] = claims.chosen;
  for (const LeftOut& it : claims.left_out)
    object["left_out"].push_back({{"policy", it.policy}, {"why", it.why}});
  return object;
}

Json eviction_json(const EvictionClaims& eviction) {
  return {{"evictions", eviction.evictions},
          {"evicted_bytes", eviction.evicted_bytes.count()},
          {"score_evaluations", eviction.score_evaluations},
          {"searches", eviction.searches},
          {"mean_fragmentation", as_fraction(eviction.mean_fragmentation)}};
}

Json bounds_json(const RunResult& result) {
  const Bounds& bounds = result.bounds;
  Json object = Json::object();
  if (bounds.makespan) object["makespan_s"] = in_seconds(*bounds.makespan);
  if (bounds.period) object["period_s"] = in_seconds(*bounds.period);
  if (!bounds.peak.empty()) object["peak_bytes"] = peaks_json(result, bounds.peak);
  if (bounds.energy) object["energy_j"] = in_joules(*bounds.energy);
  if (result.from_file && !object.empty()) object["claimed_by_file"] = true;
  return object;
}

Json layout_json(const LayoutAtRefusal& layout) {
  Json kept = Json::array();
  for (const KeptSegment& segment : layout.kept)
    kept.push_back({{"segment", segment.number},
                    {"size_bytes", segment.size.count()},
                    {"free_bytes", segment.free.count()},
                    {"largest_free_bytes", segment.largest_free.count()},
                    {"blocks", segment.blocks},
                    {"tensors", segment.tensors}});
  return {
      {"requested_bytes", layout.requested.count()}, {"allocated_bytes", layout.allocated.count()},
      {"held_bytes", layout.reserved.count()},       {"rounding_bytes", layout.rounding.count()},
      {"unsplit_tails_bytes", layout.tails.count()}, {"holes_bytes", layout.holes.count()},
      {"cut_segments", layout.cut_segments},         {"kept", std::move(kept)}};
}

Json remedies_json(const MeshRemedies& remedies) {
  Json run = Json::array(), failed = Json::array(), skipped = Json::array();
  for (const MeshRemedies::Change& it : remedies.run)
    run.push_back({{"arguments", it.arguments}, {"step_s", in_seconds(it.makespan)}});
  for (const ChangeArguments& it : remedies.failed) failed.push_back({{"arguments", it}});
  for (const ChangeArguments& it : remedies.skipped) skipped.push_back({{"arguments", it}});
  return {{"run", std::move(run)},
          {"out_of_memory", std::move(failed)},
          {"not_tried", std::move(skipped)}};
}

Json oom_json(const OutOfMemory& oom) {
  Json object{{"step", oom.step},
              {"memory", oom.memory},
              {"asked_bytes", oom.asked.count()},
              {"free_bytes", oom.free.count()},
              {"largest_free_block_bytes", oom.largest_free_block.count()},
              {"by_class", by_class(oom.by_class)}};
  Json& residents = object["residents"] = Json::array();
  for (const Resident& resident : oom.largest)
    residents.push_back({{"tensor", resident.tensor},
                         {"class", to_text(resident.tensor_class)},
                         {"bytes", resident.bytes.count()}});
  if (oom.cache)
    object["cache"] = {{"held_bytes", oom.cache->reserved.count()},
                       {"segments", oom.cache->segments},
                       {"free_bytes", oom.cache->free.count()},
                       {"largest_free_block_bytes", oom.cache->largest_free.count()},
                       {"segments_kept_in_part", oom.cache->with_free},
                       {"blocks_that_keep_them", oom.cache->keeping}};
  if (oom.layout) object["layout"] = layout_json(*oom.layout);
  if (oom.placement)
    object["placement"] = {{"method", oom.placement->method},
                           {"blocks", oom.placement->blocks},
                           {"load_bytes", oom.placement->load.count()},
                           {"end_bytes", oom.placement->end.count()},
                           {"lower_bound_bytes", oom.placement->lower_bound.count()}};
  return object;
}

Json sharding_json(const MeshOfRun& mesh) {
  Json object{{"stage", mesh.stage}};
  if (mesh.group) object["group"] = *mesh.group;
  object["parts"] = mesh.parts;
  object["parts_of_experts"] = mesh.parts_of_experts;
  object["copies"] = mesh.copies;
  return object;
}

Json form_json(const MeshOfRun::Form& form) {
  using Algorithm = MeshOptions::Algorithm;
  const Algorithm algorithm = form.node > 1                       ? Algorithm::hierarchical
                              : form.algorithm == AllReduce::tree ? Algorithm::tree
                                                                  : Algorithm::ring;
  Json object{{"along", name_of(form.along)}, {"form", name_of(algorithm)}};
  if (form.node > 1) {
    object["node"] = form.node;
    object["on"] = name_of(form.level_on);
  }
  return object;
}

/// How they are divided.
Json ranks_json(const MeshOfRun& mesh) {
  Json axes = Json::object(), forms = Json::array();
  for (const MeshOfRun::Axis& axis : mesh.axes) axes[name_of(axis.axis)] = axis.size;
  Json object{
      {"count", mesh.ranks()}, {"axes", std::move(axes)}, {"sharding", sharding_json(mesh)}};
  if (!mesh.taken) return object;
  for (const MeshOfRun::Form& form : *mesh.taken) forms.push_back(form_json(form));
  object["collectives"] = {{"asked", name_of(mesh.collectives)}, {"taken", std::move(forms)}};
  return object;
}

/// Of a mesh of ranks.
void add_rank_measurements(const Metrics& metrics, Json& object) {
  if (metrics.tokens_per_s) object["tokens_per_s"] = *metrics.tokens_per_s;
  if (metrics.mfu) object["mfu"] = *metrics.mfu;
  if (metrics.hfu) object["hfu"] = *metrics.hfu;
  for (const CollectiveMetrics& it : metrics.collectives)
    object["collectives"][it.name] = {{"bytes", it.bytes.count()},
                                      {"busy_s", in_seconds(it.busy)},
                                      {"exposed_s", in_seconds(it.exposed)}};
}

void add_measurements(const RunResult& result, Json& object) {
  const Metrics& metrics = result.metrics;
  if (metrics.makespan) object["makespan_s"] = in_seconds(*metrics.makespan);
  if (metrics.period) object["period_s"] = in_seconds(*metrics.period);
  if (metrics.throughput) object["throughput_samples_per_s"] = *metrics.throughput;
  // A plan from a file has no schedule to be compared with.
  if (metrics.makespan && !result.overhead) object["overhead"] = nullptr;
  if (result.overhead) object["overhead"] = *result.overhead;
  add_rank_measurements(metrics, object);
  object["memories"] = memories_json(metrics);
  object["links"] = links_json(metrics);
  object["processors"] = processors_json(result);
  if (metrics.energy) object["energy"] = energy_json(*metrics.energy, result.energy_band);
  if (result.training) object["training"] = training_json(*result.training);
}

Json infeasible_json(const Infeasible& no) {
  Json object{{"why", no.why}};
  if (!no.smallest_budget.is_unlimited())
    object["smallest_budget_bytes"] = no.smallest_budget.count();
  return object;
}

Json run_json(const RunResult& result) {
  Json object{{"scenario", result.scenario},
              {"platform", result.platform},
              {"workload", result.workload},
              {"policy", result.policy}};
  if (!result.policy_parameters.empty()) object["policy_parameters"] = result.policy_parameters;
  if (!result.notes.empty()) object["notes"] = result.notes;
  object["status"] = status_text(result);
  if (result.mesh) object["ranks"] = ranks_json(*result.mesh);
  if (!result.infeasible) add_measurements(result, object);
  if (Json held = stages_json(result); !held.empty()) object["stages"] = std::move(held);
  if (result.claims.eviction) object["eviction"] = eviction_json(*result.claims.eviction);
  object["claims"] = claims_json(result);
  object["bounds"] = bounds_json(result);
  object["saved_bytes"] = result.saved_bytes.count();
  object["planning_s"] = result.planning_s;
  object["provenance"] = {{"worst_quality", to_text(result.worst_quality)}};
  Json& numbers = object["provenance"]["numbers"] = Json::object();
  for (std::size_t q = 0; q < kQualities; ++q)
    if (!result.numbers_of[q].empty())
      numbers[to_text(static_cast<Quality>(q))] = result.numbers_of[q];
  if (result.recorded)
    object["provenance"]["times"] = {{"of", "profile"}, {"recorded", *result.recorded}};
  if (result.oom) object["oom"] = oom_json(*result.oom);
  if (result.oom && result.mesh_remedies)
    object["oom"]["what_helps"] = remedies_json(*result.mesh_remedies);
  if (!result.cycle.empty()) object["deadlock"] = {{"cycle", result.cycle}};
  if (result.infeasible) object["infeasible"] = infeasible_json(*result.infeasible);
  return object;
}

}  // namespace

std::string json_report(std::span<const RunResult> results) {
  Json all = Json::array();
  for (const RunResult& result : results) all.push_back(run_json(result));
  // Names of files may hold any bytes.
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace plimsoll
