/// Searches for schedules under a limit on the whole of each device's memory: parameters,
/// gradients, optimizer state, messages and workspaces included.
///
/// The searches bound what microbatches keep (SlotCosts::Slot::saved and `held`); the rest follows
/// from the order and the times. So the bound is lowered, device by device, by what the claimed
/// peak of the plan exceeds the limit, until it fits or a device has no room for the fewest chunks
/// with which the search succeeds; then the plan of those fewest chunks is what decides. A larger
/// limit may lead these searches to a slower plan: with `improve` eighths of what the schedule
/// without a limit needs are tried as well (smaller_budgets.hpp).
#pragma once

#include "policy/pipeline/planning/plan_pipeline.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace plimsoll {

struct LimitedParameters : PipelineParameters {
  std::optional<Located<Bytes>> memory_limit;
  bool improve = false;  ///< plans of smaller limits are looked at, too
};

/// Adds `memory_limit` and `improve` to a record of parameters that derive from LimitedParameters.
template <class Parameters>
void add_memory_limit(Record<Parameters>& record) {
  std::optional<Located<Bytes>> Parameters::*limit = &Parameters::memory_limit;
  record.optional("memory_limit", limit, located(quantity<Bytes>(Unlimited::allowed)),
                  "bytes of each device's memory for all that is there; default: only what "
                  "microbatches keep is bounded");
  bool Parameters::*improve = &Parameters::improve;
  record.optional("improve", improve, boolean(),
                  "whether the schedules of this policy for smaller limits are looked at as well, "
                  "and the fastest is taken; default false");
}

/// Finds a schedule whose devices keep at most `kept[i]`, or none.
using LimitedSearch = std::function<std::optional<Schedule>(
    const SlotCosts& costs, std::uint32_t microbatches, const std::vector<Bytes>& kept)>;

/// Plans with `kept` as the bound, and under `memory_limit` where there is one. `kept_chunks` is
/// the bound in chunks of a device, of the size of its largest, with which `search` always
/// succeeds. Answers Infeasible with the peak of the leanest plan that the search finds. At most
/// 8 x devices x kept_chunks searches and plans, usually a few tens. Throws InputError where the
/// peak cannot be told without running the plan, on links for which copies contend.
[[nodiscard]] Planned plan_limited(const Problem& problem, const LimitedParameters& parameters,
                                   StagePlacementRule placement, std::int64_t kept_chunks,
                                   const LimitedSearch& search);

}  // namespace plimsoll
