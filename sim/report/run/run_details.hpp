/// One run in full. Internal to this floor.
#pragma once

#include "report/text/style.hpp"
#include "scenario/document/scenario.hpp"
#include "scenario/run/run.hpp"

#include <string>
#include <vector>

namespace plimsoll {

/// Share of what plans may use that the peak takes; 0 of an unlimited memory.
[[nodiscard]] double fill_of(const MemoryMetrics& memory);

/// Memory, time, links and energy, each on a few lines.
[[nodiscard]] std::string run_details(const Scenario& scenario, const RunResult& result,
                                      const Style& style);

}  // namespace plimsoll
