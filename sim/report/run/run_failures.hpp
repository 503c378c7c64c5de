/// Why a run did not end well, and what to try. Internal to this floor.
#pragma once

#include "report/text/style.hpp"
#include "scenario/document/scenario.hpp"
#include "scenario/run/run.hpp"

#include <span>
#include <string>

namespace plimsoll {

/// A few lines; empty for a run that ended well. Policies that fail among `all`, the runs of the
/// scenario, are not recommended.
[[nodiscard]] std::string explain_failure(const Scenario& scenario, const RunResult& result,
                                          std::span<const RunResult> all, const Style& style);

}  // namespace plimsoll
