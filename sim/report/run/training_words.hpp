/// A training over days in words.
#pragma once

#include "scenario/run/whole_training.hpp"

#include <string>
#include <utility>
#include <vector>

namespace plimsoll {

/// "12.5 days", "3.2 years"; shorter ones as a Time: "4.5 h".
[[nodiscard]] std::string days_text(double days);

/// Any number of joules.
[[nodiscard]] std::string joules_text(double joules);

/// Labels and what stands beside them.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> training_words(
    const WholeTraining& training);

}  // namespace plimsoll
