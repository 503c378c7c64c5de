/// A limit on the time of a step: so many times what all operators take, each once.
#pragma once

#include "base/format.hpp"

#include <optional>
#include <string>

namespace plimsoll {

/// A number such as `1.5`, at least 1.
[[nodiscard]] Format<Located<Ratio>> runtime_factor_format();

/// `factor` times `once`, rounded down; unlimited beyond the range of Time.
[[nodiscard]] Time most_time(Time once, Ratio factor);

/// " and ends within 1.5 times the operators", behind why no schedule fits; empty without a factor.
[[nodiscard]] std::string in_time_in_words(const std::optional<Located<Ratio>>& factor);

}  // namespace plimsoll
