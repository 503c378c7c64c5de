/// A limit on the time of a step: so many times what all operators take, each once.
#pragma once

#include "base/format.hpp"

namespace plimsoll {

/// A number such as `1.5`, at least 1.
[[nodiscard]] Format<Located<Ratio>> runtime_factor_format();

/// `factor` times `once`, rounded down; unlimited beyond the range of Time.
[[nodiscard]] Time most_time(Time once, Ratio factor);

}  // namespace plimsoll
