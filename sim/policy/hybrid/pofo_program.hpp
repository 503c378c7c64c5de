/// The dynamic program of POFO: which stages of a chain keep what they save, which segments run
/// again, and which inputs of these blocks leave for storage and come back.
///
/// Beaumont, Eyraud-Dubois, Shilova, "Efficient Combination of Rematerialization and Offloading for
/// Training DNNs", NeurIPS 2021. The recursion is that of a public solver; that it is the paper's
/// is a reconstruction.
///
/// A chain is cut into blocks: one stage that keeps (saved_i), or a segment i..j of bare forwards
/// that leaves a_j only and runs again, by its best persistent schedule (rotor_chain.hpp), when its
/// backward comes. The input of a block (saved_{i-1} or a_{i-1}) stays or moves. Before block i the
/// state is what stays of the inputs of the blocks before (kept), what of them has still to leave
/// (out), what of them must be back before backward i runs (in, the mirror image of out), and
/// whether the block before kept. With `input` for the size of the input of block i and
/// room = M - kept - input:
///
///   keep i:       wait_out = max(0, out + need of forward i - room), wait_in the same
///                 costs f_i + b_i + wait_out / rate out + wait_in / rate in; the backlogs shrink
///                 by what moves in f_i, in b_i and in the waits
///   segment i..j: wait_out as above, of the bare forwards, each less what has left before it
///                 costs f_i+..+f_j + wait_out / rate out + T; `in` is gone after T
///
/// and then the input joins `kept`, or `out` (before it shrinks) and `in` (after). At the loss the
/// backlogs are cleared one after the other.
///
/// T is the time to run i..j forward again and backward while `in` comes back. With C(u) the least
/// time of that alone in u bytes and D = in / rate in, it is the lesser of
///   (max(C, D) + C + D) / 2 with C = C(room): the estimate of the public solver, and
///   max(C(room - in), D): the segment leaves room for all that comes back (ours).
///
/// Unlike in the public solver, the bare forwards that must fit are those of i..j alone, and the
/// input is counted once. A segment that ends at the loss is no choice: to keep right away what its
/// schedule would begin with costs less. The input of the chain stays, and so does that of the last
/// stage, which is needed back at once.
///
/// A model of time, not of an execution: memory is free byte by byte, copies have no latency, T is
/// an estimate. Waits are rounded up to 1 ps; what moves in a time, down to 1 B. What takes longer
/// than 6 days is no choice.
#pragma once

#include "policy/hybrid/pofo_inner.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

struct PofoBlock {
  std::uint32_t first = 0, last = 0;  ///< stages, from 0
  bool runs_again = false;            ///< a segment; otherwise one stage, which keeps
  bool moves_input = false;
  std::int64_t units = 0;  ///< of a segment: what its schedule has, in units of the inner table
  bool operator==(const PofoBlock&) const = default;
};

/// The chain as blocks, and its time in the model, the optimizer included.
struct PofoCut {
  std::vector<PofoBlock> blocks;
  Time makespan;
};

struct PofoLink {
  ByteRate out, in;
};

/// States before a block that are held, of chains of at most 128 stages; of longer ones so many
/// fewer that there are no more transitions.
inline constexpr std::size_t kPofoStates = 256;
inline constexpr std::int64_t kMostPofoSlots = 1'000'000;

/// The `count` best cuts found for the budget of `inner`, the best first; empty where none fits.
/// Cuts whose forwards take `most_again` or more beyond the first run of each are left out.
///
/// Sizes are not rounded. Of the states that lie in one cell of a grid of `slots` parts of the
/// budget a side, over (kept, out, in), the fastest is held; and of these none that another one
/// matches in every number. Where too many are left (kPofoStates) the cells are doubled. Where no
/// two states share a cell and none is left over, the best cut is the best of the model.
/// Precondition: 1 <= slots <= kMostPofoSlots.
///
/// O(L^2 S) transitions of S states, each O(S / 8) comparisons; space O(L S).
[[nodiscard]] std::vector<PofoCut> best_cuts(const ChainCosts& costs, const PofoLink& link,
                                             const PofoInner& inner, std::int64_t slots,
                                             std::size_t count,
                                             Time most_again = Time::unlimited());

}  // namespace plimsoll
