/// Which divisions of a workload a capacity plan tries, and why it leaves out others, in words. Internal to this floor.
#pragma once

#include "scenario/capacity/capacity.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace plimsoll {

/// "dgx-a100, dgx-h100 with none, remat/blocks": what is said of several configurations.
using NamesOf = std::function<std::string(std::span<const Configuration* const>)>;

/// Each reason once, with the configurations that it holds for; what holds for all is in one line. Empty where nothing
/// is divided. O(divisions x reasons).
[[nodiscard]] std::vector<std::string> division_lines(
    const std::vector<Configuration>& configurations, const NamesOf& names_of);

}  // namespace plimsoll
