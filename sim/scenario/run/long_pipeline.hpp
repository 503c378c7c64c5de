/// The run of a pipeline of many microbatches, worked out from runs of few (long_run.hpp).
#pragma once

#include "policy/interface/registry.hpp"
#include "scenario/document/memo.hpp"
#include "scenario/run/ranks.hpp"
#include "scenario/run/run.hpp"

#include <optional>

namespace plimsoll {

/// Nothing where all microbatches are to be played for all that is told of it. `step` is that of one microbatch.
[[nodiscard]] std::optional<RunResult> run_long_pipeline(
    const Scenario& scenario, const Node& policy, const BoundPolicy& bound, const Ranks& ranks,
    const RunOptions& options, const TrainingStep& step);

}  // namespace plimsoll
