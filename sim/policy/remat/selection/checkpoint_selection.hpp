/// Which activations of a chain to keep when every other one is computed once more: the recursion
/// of Hong, Tsai, Wang, Liu, Wu 2025 ("GPU Memory Usage Optimization for Backward Propagation in
/// Deep Network Training", JPDC), on flat arrays of integers (bytes).
///
/// Positions 0..n-1 stand for activations. A set K of checkpoints contains 0 and n-1; forward keeps
/// K only, backward runs the segments (i, j) between neighbours in K from the last, each after
/// computing its interior again from i. With checkpoint i resident, all that happens from i on
/// needs
///
///   M(n-1) = last
///   M(i)   = own_i + min over j > i of max( M(j), U(i,j) )
///   U(i,j) = max( end_j + max need_k, waiting_j + max forward_need_k ) - before_i,  k in (i, j]
///
/// and M(0) is the least peak. The objectives differ in the arrays only; P is a running sum:
///
///   objective  own_i  need_k                                        end_j      before_i    last
///   traced     d_i    d_{k-1}                                       P_j + d_j  P_{i+1}     d_{n-1}
///   replay     d_i    P_k + d_k + d_{k-1}                           0          P_{i+1}   2 d_{n-1}
///   engine     a_i    P_{k-1} + b_k + last_{k+1}                    0          P_i             0
///
/// with P_k = d_0 + ... + d_{k-1} for the first two (traced is the paper's revised objective, from
/// the recursion of the authors' program; replay is what an event-by-event execution of the same
/// model needs) and P_k = saved_1 + ... + saved_k for the engine, where b_k is all of stage k while
/// its backward runs (on a chain saved_k, both gradients, the workspace, its parameter gradients)
/// and last_k the parameter gradients of stages k and behind. There n = L + 1, and position L
/// stands for the end of the chain: the last segment is not run again. `forward_need` and `waiting`
/// are there for the engine alone and only where a forward may need more than the backwards:
///
///   forward_need_k = P_k + of_k;  waiting_j = delta_j + last_{j+1}, 0 for j = L.
///
/// Of all K with the least peak the selections below return the one whose last checkpoint before
/// n-1 comes first: a chain's running time beyond policy `none` is the forwards up to there. Of
/// those it has the fewest bytes at each checkpoint, and then the nearest predecessors, so that all
/// algorithms agree on K. The published algorithms leave ties open; this choice is ours.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace plimsoll {

/// Invariants: n >= 2 values in each array, `forward_need` and `waiting` empty or n, and with them
/// `end` is 0; `need` and `forward_need` at 0 are not used; `end` and `before` do not fall, so that
/// U(i,j) grows as i falls and, without `forward_need`, with j. All sums of all values fit 62 bits.
struct SelectionChain {
  std::vector<std::int64_t> own, need, end, before;
  std::vector<std::int64_t> forward_need, waiting;
  std::int64_t last = 0;

  [[nodiscard]] std::size_t size() const { return own.size(); }
};

struct Selection {
  std::int64_t value = 0;                  ///< M(0)
  std::vector<std::uint32_t> checkpoints;  ///< ascending, from 0; n-1 is left out
  bool operator==(const Selection&) const = default;
};

/// The instances of the published objectives for activations of `sizes` bytes, two or more.
[[nodiscard]] SelectionChain traced_chain(std::span<const std::int64_t> sizes);
[[nodiscard]] SelectionChain replay_chain(std::span<const std::int64_t> sizes);

/// What keeping `checkpoints` (ascending, from 0, without n-1) needs. O(n).
[[nodiscard]] std::int64_t value_of(const SelectionChain& chain,
                                    std::span<const std::uint32_t> checkpoints);

/// The dynamic program as it stands, with running sums and maxima. O(n^2) time, O(n) space.
[[nodiscard]] Selection select_quadratic(const SelectionChain& chain);

/// The same selection in O(n) time and space where there is no `forward_need`: candidates j in a
/// queue, M falling with j, of which only the farthest can be the best (remat/select-linear says
/// whose reconstruction). With it U need not grow with j, and the time is O(n log n)
/// (checkpoint_selection_forwards.hpp).
[[nodiscard]] Selection select_near_linear(const SelectionChain& chain);

/// The K that needs at most `peak`, or nothing if none does. O(n), or O(n log n) with
/// `forward_need`.
[[nodiscard]] std::optional<std::vector<std::uint32_t>> select_within(const SelectionChain& chain,
                                                                      std::int64_t peak);

/// The paper's first objective as reconstructed: bytes of all checkpoints + the largest sum of the
/// interior of one segment. For each bound on the interior, from the largest down, the checkpoints
/// with the fewest bytes, O(n); bounds between two different answers are skipped, so O(n^3) at
/// worst. `checkpoints` leaves n-1 out, `value` counts it. Nearest successors among equals.
[[nodiscard]] Selection select_static(std::span<const std::int64_t> sizes);

}  // namespace plimsoll
