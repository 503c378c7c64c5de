/// What ran on what, as the headings of reports have it.
#pragma once

#include "scenario/document/scenario.hpp"
#include "scenario/run/run.hpp"

#include <span>
#include <string>

namespace plimsoll {

/// "gpt3-175b (blocks: 40, hidden: 5120) on v100-32gb, batch 4": with what a network is given in the
/// place of its own sizes, since its name alone would tell of another network.
[[nodiscard]] std::string run_subject(const Scenario& scenario, std::span<const RunResult> results);

}  // namespace plimsoll
