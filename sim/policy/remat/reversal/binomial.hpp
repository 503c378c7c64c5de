/// Binomial checkpointing: the schedule with the least number of forward steps that reverses a
/// chain of equal steps with a given number of slots for states.
///
/// Griewank, Walther, "Algorithm 799: Revolve", ACM TOMS 26(1), 2000. With beta(c, r) = C(c+r, c)
/// and r the least integer with n <= beta(c, r), c slots reverse n steps after r n - beta(c+1, r-1)
/// forward steps without tape, beside the n runs that the adjoints need (here: kept forwards). The
/// start state occupies one of the slots throughout. Example: n = 10, c = 3: r = 2 and
/// 2 * 10 - C(5, 4) = 15.
#pragma once

#include "policy/remat/chain/chain_sequence.hpp"

namespace plimsoll {

/// Bare forwards of the schedule; 0 for n <= 1. O(r), r at most sqrt(2n) for slots >= 2.
/// Preconditions: slots >= 1, 0 <= steps < 2^31.
[[nodiscard]] std::int64_t binomial_advances(std::int64_t steps, std::int64_t slots);

/// How far to advance from a stored state before storing the next one, with `steps` left and
/// `slots` slots, that state's included. Every length of an optimal range gives the same count;
/// this one is the choice of the published program as reconstructed. O(r). Preconditions: slots >=
/// 1, 2 <= steps < 2^31.
[[nodiscard]] std::int64_t binomial_step(std::int64_t steps, std::int64_t slots);

/// Appends the schedule that runs stages [begin, end) forward from the input of `begin`, which is
/// there and takes the first slot, and backward. O(1) amortized an action. Preconditions: begin <
/// end, slots >= 1.
void append_binomial(ChainSequence& sequence, std::uint32_t begin, std::uint32_t end,
                     std::int64_t slots);

}  // namespace plimsoll
