/// A run that is tried to advise: what it would take.
#pragma once

#include "scenario/run/run.hpp"

#include <cstdint>
#include <optional>

namespace plimsoll {

/// Of planning, for each run: a second of a core, or a little more.
inline constexpr std::int64_t kWorkOfTrial = 200'000'000;

/// The policy with the parameters of a run that it planned.
[[nodiscard]] Node own_policy(const RunResult& result);

/// A step; nothing where the run does not end well. Throws InputError where there is none. O(a run).
[[nodiscard]] std::optional<Time> tried_step(const Scenario& scenario, const Node& policy,
                                             const RunOptions& options);

}  // namespace plimsoll
