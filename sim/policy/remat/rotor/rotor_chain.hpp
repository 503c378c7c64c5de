/// A chain in whole units of memory, and the recursion for its best persistent schedule.
///
/// Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova, "Optimal checkpointing for heterogeneous
/// chains", arXiv:1911.13214; in the strict form, in which both gradients count at a backward's
/// peak. A persistent schedule holds what it stores until the backward that uses it. R(s, t, u) is
/// the least time of forwards that are run again in order to run stages s..t forward and backward,
/// when u units are left beside what is stored for the stages before s (the input of s among it):
///
///   R(s, t, u) = min over
///     keep:          R(s+1, t, u - saved_s)                    if u >= keep_need(s, t)
///     checkpoint k:  f_s+..+f_{k-1} + R(k, t, u - a_{k-1}) + R(s, k-1, u)
///                                          for k = s+1..t,     if u >= bare_need(s, k, t)
///   R(s, s, u) = 0                                             if u >= keep_need(s, s)
///
/// Times are what is added to the sum of all forwards and backwards, which no schedule avoids.
/// Gradients of parameters stay once they are made (`lasting`): those of the stages behind t are
/// part of what (s, t) needs, not of what is stored, so that the left part (s, k-1) has the same u
/// as (s, t) although the stages k..t have left theirs. The loss needs no stage of its own: in
/// t = L nothing is there of stage L+1, and going to the loss once with nothing kept, in order to
/// start again, never helps.
///
/// R does not increase with u, and is 0 from the u at which (s, t) can keep everything.
#pragma once

#include "policy/remat/chain/chain_sequence.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace plimsoll {

/// More than any time that a table holds; what R is where nothing fits.
inline constexpr std::int64_t kNever = std::int64_t{1} << 61;

/// Stages from 0; sizes in units, rounded up, times in ps.
struct RotorChain {
  std::int64_t units = 0;             ///< the budget
  std::vector<std::int64_t> output;   ///< a_i of stage i
  std::vector<std::int64_t> saved;    ///< at least output
  std::vector<std::int64_t> keep;     ///< a kept forward with its workspace
  std::vector<std::int64_t> bare;     ///< a bare forward with its workspace
  std::vector<std::int64_t> back;     ///< backward: saved, both gradients, workspace, all lasting
  std::vector<std::int64_t> behind;   ///< beside forwards before backward i: gradient, lasting
  std::vector<std::int64_t> forward;  ///< sum of the forwards before stage i; L + 1 of them
  Work work;                          ///< where searches in this chain count their steps

  [[nodiscard]] std::size_t stages() const { return saved.size(); }
  [[nodiscard]] std::int64_t keep_need(std::size_t s, std::size_t t) const {
    return std::max(behind[t] + keep[s], back[s]);
  }
  /// What the bare forward of `k` needs in a run of them that starts at s <= k, without `behind`.
  [[nodiscard]] std::int64_t bare_need(std::size_t s, std::size_t k) const {
    return bare[k] + (k > s ? output[k - 1] : 0);
  }
  [[nodiscard]] std::int64_t forward_time(std::size_t begin, std::size_t end) const {
    return forward[end] - forward[begin];
  }
};

/// The greatest common divisor of all sizes of the chain, at least 1.
[[nodiscard]] std::int64_t size_unit(const ChainCosts& costs);

/// `available` bytes (beyond what is resident) cut into at most `slots` equal units, each at least
/// `unit` bytes; with as many slots as there are such units nothing is rounded. A size of x units
/// takes ceil(x slots / available), so that no size grows in slots when `available` does. Throws
/// QuantityOverflow where forwards add up to more than 26 days.
[[nodiscard]] RotorChain rotor_chain(const ChainCosts& costs, std::int64_t unit, Bytes available,
                                     std::int64_t slots);

/// The least `units` with which the chain has a persistent schedule. O(L^3), L^2/2 numbers.
[[nodiscard]] std::int64_t least_units(const RotorChain& chain);

/// A table would hold more than `most` values.
struct TableTooLarge {
  std::int64_t most;
  std::int64_t about = 0;  ///< so many, where smaller tables tell before it is made
};

/// The best persistent schedule of a chain in its units.
struct RotorSchedule {
  ChainSequence sequence;
  std::int64_t recomputed = 0;  ///< ps of forwards that are run again
  std::int64_t values = 0;      ///< held by the table that decided it
  std::size_t table_bytes = 0;  ///< of the largest table
};

/// R of a filled table, kNever where nothing fits (or where the table has left out what a best
/// schedule does not use).
using Recomputed = std::function<std::int64_t(std::size_t s, std::size_t t, std::int64_t units)>;

/// A best schedule, decided again from the values of R: keep before checkpoint, the nearest
/// checkpoint first. Precondition: R(0, L-1, chain.units) < kNever. O(L^2) values.
[[nodiscard]] ChainSequence persistent_sequence(const RotorChain& chain,
                                                const Recomputed& recomputed);

/// The same of stages s..t alone, in `units`. Precondition: R(s, t, units) < kNever.
[[nodiscard]] ChainSequence persistent_sequence(const RotorChain& chain,
                                                const Recomputed& recomputed, std::uint32_t s,
                                                std::uint32_t t, std::int64_t units);

}  // namespace plimsoll
