#include "policy/interface/registry.hpp"
#include "policy/pipeline/search/best_schedules.hpp"
#include "policy/pipeline/search/list_heuristic.hpp"
#include "policy/pipeline/search/memory_limit.hpp"

namespace plimsoll {

namespace {

Planned plan_zb_p(const Problem& problem, const LimitedParameters& parameters,
                  std::int64_t microbatches_kept_by_device) {
  require_one_virtual_stage(parameters);
  const auto devices = std::ssize(pipeline_devices(problem, parameters));
  return plan_limited(problem, parameters, loop_placement, microbatches_kept_by_device * devices,
                      [](const SlotCosts& costs, std::uint32_t m, const std::vector<Bytes>& kept) {
                        return first_of(list_schedules(costs, m, kept));
                      });
}

PolicyInfo zb_p_policy(const std::string& name, std::int64_t factor, const std::string& limit,
                       const std::string& like) {
  Record<LimitedParameters> record = pipeline_record<LimitedParameters>(name);
  add_memory_limit(record);
  return make_policy<LimitedParameters>(
      {.name = name,
       .summary = "A search for the least bubble where no device keeps more than " + limit +
                  " microbatches.",
       .paper = "Qi et al. 2024, \"Zero Bubble Pipeline Parallelism\", ICLR, arXiv:2401.10241: the "
                "list heuristic of its published code, without the ILP",
       .assumes = "one stage a device; a chain whose stages give both halves of their backward, or "
                  "a network; what a stage keeps counts `saved` until the backward of the input "
                  "and `held_for_weight_gradient` until that of the weights",
       .guarantees =
           "heuristic; the memory of " + like +
           ", aimed at the least largest span, for any times of stages and messages; under "
           "`memory_limit` the peak of no device is above it, or the answer is the limit "
           "that the leanest order needs. With `improve` eighths of the peak without a limit are "
           "tried as well, so that none of them has a faster plan",
       .complexity = "O(microbatches x devices^2 + microbatches x operators)",
       .facts = {.splits_backward = true}},
      record, [factor](const Problem& problem, const LimitedParameters& parameters) {
        return plan_zb_p(problem, parameters, factor);
      });
}

}  // namespace

PolicyInfo pipeline_zb_1p_policy() {
  return zb_p_policy("pipeline/zb-1p", 1, "p", "1F1B's first device on every device");
}

PolicyInfo pipeline_zb_2p_policy() {
  return zb_p_policy("pipeline/zb-2p", 2, "2p", "twice 1F1B's first device on every device");
}

}  // namespace plimsoll
