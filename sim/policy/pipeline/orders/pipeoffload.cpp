#include "policy/claims/copy_time.hpp"
#include "policy/interface/registry.hpp"
#include "policy/pipeline/orders/offload_pass.hpp"
#include "policy/pipeline/planning/fastest_cut.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"
#include "policy/pipeline/schedule/slot_savings.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

struct OffloadPassParameters : GroupParameters {
  /// Half of the chunks leave where nothing is said.
  [[nodiscard]] Ratio share() const {
    return offload ? offload->value.share : Ratio{kWhole.count() / 2};
  }
  bool drop_savings() {
    const bool had_any = share() > Ratio{};
    (void)PipelineParameters::drop_savings();
    if (!offload) offload = {SlotChoice{{}, Ratio{}}, where};
    return had_any;
  }
};

Record<OffloadPassParameters> pipeoffload_record() {
  Record<OffloadPassParameters> record =
      cut_record<OffloadPassParameters>("pipeline/pipeoffload", 2);
  add_group(record, "1");
  std::optional<Located<SlotChoice>> OffloadPassParameters::*offload =
      &OffloadPassParameters::offload;
  std::optional<Located<std::string>> OffloadPassParameters::*to = &OffloadPassParameters::to;
  record
      .optional("offload", offload, located(offload_format()),
                "which chunks of each device are moved where time allows: `all`, `none`, or a "
                "share of them, from the first; default 50 %")
      .optional("to", to, located(name()),
                "the memory to offload to; default: for each device the one with the fastest way "
                "out and back");
  return record;
}

std::uint32_t chunks_away(const OffloadPassParameters& parameters) {
  if (parameters.offload && !parameters.offload->value.slots.empty())
    refuse(parameters.offload->where,
           "`pipeline/pipeoffload` takes chunks from the first of each device on; "
           "expected `all`, `none` or a share of them");
  return static_cast<std::uint32_t>(
      (parameters.virtual_stages * parameters.share().count() + kWhole.count() - 1) /
      kWhole.count());
}

/// Of what the slot keeps that takes longest, one way or the other.
Time longest_copy(const Problem& problem, const Slots& slots, const std::vector<MemoryId>& stores) {
  Time longest;
  for (std::size_t slot = 0; slot < slots.count(); ++slot) {
    const MemoryId home = slots.memory(slots.device(slot)), store = stores[slots.device(slot)];
    Time out, back;
    for (const TensorId tensor : slots.kept(slot, false)) {
      out += copy_time(problem, home, store, problem.workload[tensor].bytes);
      back += copy_time(problem, store, home, problem.workload[tensor].bytes);
    }
    longest = std::max({longest, out, back});
  }
  return longest;
}

Planned plan_pipeoffload(const Problem& problem, const OffloadPassParameters& parameters) {
  const std::vector<ProcessorId> devices = pipeline_devices(problem, parameters);
  if (devices.size() < 2)
    refuse(parameters.where, "`pipeline/pipeoffload` is for two devices or more");
  const std::uint32_t group = group_of(parameters, devices.size(), 1);
  const std::uint32_t chunks = chunks_away(parameters);
  PipelineParameters pipeline = parameters;
  pipeline.offload.reset();  // what leaves is in the orders
  if (chunks == 0)
    return plan_timed_pipeline(problem, pipeline, loop_placement,
                               [group](const SlotCosts& costs, std::uint32_t microbatches) {
                                 return gis_schedule(costs, microbatches, group);
                               });
  const std::vector<MemoryId> stores = stores_of(problem, parameters, devices);
  return with_fastest_cut(problem, pipeline, loop_placement, [&](const PipelineParameters& cut) {
    const Partition partition = partition_for(problem, cut, devices);
    const Slots slots(problem, partition, devices,
                      loop_placement(static_cast<std::uint32_t>(devices.size()),
                                     static_cast<std::uint32_t>(cut.virtual_stages)));
    const Time copy = longest_copy(problem, slots, stores);
    return plan_timed_pipeline(
        problem, cut, loop_placement, [&](const SlotCosts& costs, std::uint32_t microbatches) {
          Schedule schedule = with_offload_pass({costs, microbatches, group, chunks, copy});
          schedule.stores = stores;
          return schedule;
        });
  });
}

}  // namespace

PolicyInfo pipeline_pipeoffload_policy() {
  return make_policy<OffloadPassParameters>(
      {.name = "pipeline/pipeoffload",
       .summary = "Interleaved chunks one microbatch at a time, the first of them on the host "
                  "between forward and backward.",
       .paper = "Wan et al. 2025, \"PipeOffload: Improving Scalability of Pipeline Parallelism "
                "with Memory Optimization\", ICML, arXiv:2503.01328 (PO-H; PO-F with `offload: "
                "all`), by the rules of its published code; as reconstructed: the pass plans on "
                "its own clock, and what is executed keeps its order, not its times; a chunk "
                "without time to leave and return stays",
       .assumes = "two devices or more, each with a memory of its own and a route to a storage; a "
                  "chain whose stages give both halves of their backward, or a network",
       .guarantees =
           "heuristic; no device holds more chunks at once than the pass counts on its "
           "clock; recorded peaks of the published pass at F = B = W are met, or undercut "
           "by a chunk",
       .complexity = "O(tasks log tasks + microbatches x operators)",
       .facts = {.splits_backward = true}},
      pipeoffload_record(), plan_pipeoffload);
}

}  // namespace plimsoll
