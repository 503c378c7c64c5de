/// The integer program of gaps: each is dropped or not, and the bytes of the dropped ones around a run
/// are no less than what it needs above the room.
///
/// A search over the gaps, the widest in bytes first, that leaves out what no plan can be: sets that
/// do not suffice even with all undecided gaps, and sets whose bound by prices (Lagrange) is no less
/// than the best so far. What it has no time for counts with its bound, so the result holds
/// wherever it ends. All of it is integer arithmetic.
#pragma once

#include "base/work.hpp"
#include "policy/graph/gaps.hpp"

#include <cstdint>
#include <span>

namespace plimsoll {

/// Prices are whole numbers of 2^-24 ps a byte.
inline constexpr std::int64_t kPriceUnits = std::int64_t{1} << 24;

/// The least time of dropped gaps, in ps, or less where it is not found in 2,000,000 steps; never
/// less than the bound that `prices`, by run and not negative, give by weak duality. Precondition:
/// not gaps.is_impossible(). Each set that is looked at takes O(runs).
[[nodiscard]] std::int64_t whole_gap_bound(const Gaps& gaps, std::span<const std::int64_t> prices,
                                           const Work& work);

}  // namespace plimsoll
