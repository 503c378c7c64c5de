#include "policy/interface/registry.hpp"
#include "policy/pipeline/orders/one_f_one_b.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

struct AccumulatingParameters : PipelineParameters {
  std::optional<Located<std::int64_t>> accumulate;
};

/// Updates of a device between forward and forward: those of the backwards before it, which are a
/// warm-up behind.
std::vector<std::uint32_t> updates_before(std::uint32_t warm_up, std::uint32_t microbatches,
                                          std::uint32_t every) {
  std::vector<std::uint32_t> updates;
  for (std::uint32_t k = 0; k < microbatches; ++k)
    updates.push_back(k > warm_up ? (k - warm_up) / every : 0);
  return updates;
}

/// Every device has its own latest version at a forward.
Schedule with_stashing(std::uint32_t devices, std::uint32_t microbatches) {
  Schedule schedule = one_f_one_b(devices, microbatches, 1);
  schedule.updates.every = 1;
  for (std::uint32_t i = 0; i < devices; ++i)
    schedule.updates.read.push_back(
        updates_before(warm_up_of_1f1b(devices, i, microbatches), microbatches, 1));
  return schedule;
}

/// Every device reads the version that the first one had at the forward. The first forwards, a
/// warm-up of the first device, read the version before the update of the mini-batch before; a
/// device makes that update when the mini-batch before has left it, its own warm-up later.
Schedule with_two_versions(std::uint32_t devices, std::uint32_t microbatches, std::uint32_t every) {
  Schedule schedule = one_f_one_b(devices, microbatches, 1);
  WeightUpdates& updates = schedule.updates;
  updates.every = every;
  const std::uint32_t behind = warm_up_of_1f1b(devices, 0, microbatches);
  std::vector<std::uint32_t> read = updates_before(behind, microbatches, every);
  for (std::uint32_t k = behind; behind > 0 && k < microbatches; ++k) ++read[k];
  updates.read.assign(devices, read);
  for (std::uint32_t i = 0; behind > 0 && i < devices; ++i)
    updates.begun.push_back(std::max(warm_up_of_1f1b(devices, i, microbatches), 1U));
  return schedule;
}

/// The first devices - 1 microbatches fill a replica's pipeline, the last ones drain it.
Planned plan_steady(const Problem& problem, const PipelineParameters& parameters,
                    const ScheduleRule& rule) {
  require_one_virtual_stage(parameters);
  require_equal_replicas(parameters);
  const auto devices = std::ssize(pipeline_devices(problem, parameters));
  if (parameters.microbatches <= devices)
    refuse(parameters.where,
           fmt::format("`{}` on {} devices is steady only with more microbatches than "
                       "devices; microbatches is {}{}",
                       parameters.name, devices, parameters.microbatches,
                       parameters.equal_replicas() == 1 ? "" : " a replica"));
  return plan_pipeline(problem, parameters, rule);
}

Planned plan_pipedream(const Problem& problem, const PipelineParameters& parameters) {
  return plan_steady(problem, parameters, [](std::uint32_t p, std::uint32_t m, std::uint32_t) {
    return with_stashing(p, m);
  });
}

Planned plan_2bw(const Problem& problem, const AccumulatingParameters& parameters) {
  const auto devices = std::ssize(pipeline_devices(problem, parameters));
  const std::int64_t every = parameters.accumulate ? parameters.accumulate->value : devices;
  if (every < devices)
    refuse(parameters.accumulate->where,
           fmt::format("two versions are enough only where an update takes as many "
                       "microbatches as there are devices, {}; accumulate is {}",
                       devices, every));
  if (parameters.equal_replicas() != 1 && parameters.microbatches < devices + every)
    refuse(where_replicated(parameters),
           fmt::format("{} microbatches of each replica hold no whole update in a steady "
                       "state; expected at least {}",
                       parameters.microbatches, devices + every));
  return plan_steady(problem, parameters, [every](std::uint32_t p, std::uint32_t m, std::uint32_t) {
    return with_two_versions(p, m, static_cast<std::uint32_t>(every));
  });
}

}  // namespace

PolicyInfo pipeline_pipedream_policy() {
  return make_policy<PipelineParameters>(
      {.name = "pipeline/pipedream",
       .summary = "1F1B without a flush: an update after each backward, with stashed weights.",
       .paper = "Narayanan et al. 2019, \"PipeDream: Generalized Pipeline Parallelism for DNN "
                "Training\", SOSP; the numbers of versions as reconstructed: those that "
                "microbatches in flight still read, each device with its own latest version at a "
                "forward (no vertical sync), and one gradient, which replicas reduce after each "
                "backward",
       .assumes = "one stage a device; a backward that is not split; an update takes one "
                  "microbatch of every replica, and a device waits for it; more microbatches of a "
                  "replica than it has devices",
       .guarantees = "device i keeps at most p-i microbatches and p-i versions of its parameters; "
                     "on equal stages without message latency, devices idle in the steady state "
                     "only while replicas reduce",
       .complexity = "O(microbatches x operators)",
       .facts = {.updates_after = 1}},
      pipeline_record("pipeline/pipedream"), plan_pipedream);
}

PolicyInfo pipeline_pipedream_2bw_policy() {
  auto record = pipeline_record<AccumulatingParameters>("pipeline/pipedream-2bw");
  record.optional("accumulate", &AccumulatingParameters::accumulate, located(integer(1, 1'000'000)),
                  "microbatches of each replica whose gradients one update takes, at least one a "
                  "device of it; default: one a device");
  return make_policy<AccumulatingParameters>(
      {.name = "pipeline/pipedream-2bw",
       .summary = "1F1B without a flush, with two versions of the parameters.",
       .paper = "Narayanan et al. 2021, \"Memory-Efficient Pipeline-Parallel DNN Training\" "
                "(PipeDream-2BW), ICML, arXiv:2006.09503; as reconstructed: a microbatch reads on "
                "every device the version that the first device had at its forward; one gradient, "
                "which replicas reduce after the last backward of an update",
       .assumes =
           "one stage a device; a backward that is not split; more microbatches of a replica than "
           "it has devices; an update takes `accumulate` of them, and a device waits for it",
       .guarantees = "device i keeps at most p-i microbatches and two versions of its parameters; "
                     "on equal stages without message latency, devices idle in the steady state "
                     "only while replicas reduce",
       .complexity = "O(microbatches x operators)",
       .facts = {.updates_after = 0}},
      record, plan_2bw);
}

}  // namespace plimsoll
