/// A lower bound of the makespan of every offload of a chain under a budget: the optimum of a
/// linear program, found without a solver. Plans that recompute are not bounded by it.
///
/// The program (fully divisible copies): any fraction of saved_1 .. saved_{L-2} may leave and come
/// back, memory is freed and used byte by byte, the two directions are independent, and idle time
/// w_k may precede every operation k = 1..2L. saved_j leaves after forward j and is back before
/// backward j+1; its bytes count as freed only once forward j+1 has read it. At the start and at
/// the end of every operation what is there is at most M. Minimise the durations + sum w_k.
///
/// It is a problem in one dimension. Let D be the bytes that are away. D rises by at most the
/// bandwidth out and falls by at most the bandwidth back, lies above R_k - M (R_k: what operation k
/// holds when nothing moves) and below what may be away at operation k. Every solution of the
/// program has such a D. Conversely D may be taken unimodal: its hull min(max before, max behind)
/// keeps all of these, since what may be away first only grows and then only shrinks. Then let the
/// bytes of the first stages leave first and come back last: their windows contain those of all
/// others, so every byte finds its way, and at operation k the bytes away are those that the
/// operation may count as freed, as far as there are as many.
///
/// The least time to be at D before an operation is a convex function with slopes -1/back, 0,
/// 1/out: a flat interval and the idle time so far describe it. An operation widens the interval by
/// what its duration can move; a window that the interval misses costs the idle time to reach it.
/// Everything is counted in 1e-12 B in 128 bits, so nothing is rounded before the end, where the
/// bound is rounded up, as makespans are integers.
///
/// Since release is progressive here and latency is left out, the bound holds for whole and for
/// progressive release, on every kind of link.
#pragma once

#include "policy/offload/model/offload_model.hpp"

#include <optional>

namespace plimsoll {

/// O(operators + stages). Nothing where the budget is below what every schedule needs.
/// On a network it bounds what its operators need, not the model of its stages: a saved tensor
/// counts from the end of its stage's forward to the start of the last backward that reads it, and
/// may be away in all that time; temporaries are left out.
[[nodiscard]] std::optional<Time> offload_lower_bound(const Problem& problem,
                                                      const OffloadMemories& memories,
                                                      Bytes budget);

/// `planned` with it as the bound of its makespan: the plans of rules that recompute nothing, and
/// on a chain move nothing but what the program moves.
[[nodiscard]] Planned with_offload_bound(Planned planned, const Problem& problem,
                                         const OffloadMemories& memories, Bytes budget);

/// The same of the model of a chain.
[[nodiscard]] std::optional<Time> fluid_bound(const OffloadModel& model);

}  // namespace plimsoll
