/// Operators that a tensor axis does not divide: each of its ranks runs all of them, for the same samples.
#pragma once

#include "workload/core/workload.hpp"

#include <cstdint>
#include <string>

namespace plimsoll {

/// "of the operators, 159 of convolution run whole on each of the 4 ranks of the tensor axis: 98 % of a rank's FLOPs":
/// forwards and backwards (Operator::is_whole).
/// Empty where they have less than 1 % of a rank's FLOPs. O(operators).
[[nodiscard]] std::string note_on_whole_operators(const Workload& of_rank, std::int64_t ranks);

}  // namespace plimsoll
