/// Optimal schedules of a chain in a class that contains all persistent ones: a kept saved_k may
/// lose its input and wait for it (a "relay").
///
/// [derived] The persistent recursion (Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova, "Optimal
/// checkpointing for heterogeneous chains", arXiv:1911.13214) runs backward k only beside an input
/// that was stored since saved_k was made. But a_{k-1} is made again anyway when stage k - 1 runs
/// for its own backward; until then saved_k may wait alone. So beside
///
///   C(s,t,m)  least time to run stages s..t forward and backward, and
///   D(s,t,m)  the same where saved_t is there already (counted in m) and backward t waits for
///             a_{t-1},
///
/// both with a_{s-1} stored outside m and delta_t within it, the moves from a_{s-1} are, for X = C
/// or D:
///
///   store k:  bare s..k-1, store a_{k-1}:    f_s+..+f_{k-1} + X(k,t, m - a_{k-1}) + C(s,k-1, m)
///   relay k:  bare s..k-1, keep k, drop a_{k-1}:
///                                            f_s+..+f_k + X(k+1,t, m - saved_k) + D(s,k, m)
///   base:     D(s,s,m) = b_s;  relay t of C is followed by D(s,t,m) at once.
///
/// "Store" and "relay s" alone are the persistent recursion in its strict form (delta_k and
/// delta_{k-1} both beside saved_k), so that the result is never worse than the persistent optimum
/// on the same slots. Against storing a_{k-1}, a relay takes no forward more and leaves its bytes
/// to stages k+1..t. The class is not everything: a schedule may also drop a stored a_{k-1} that no
/// saved_k waits for, before backward k.
///
/// Why this is not the table of remat/rotor (rotor_table.hpp) with D beside it: no value of the
/// persistent R appears in C or D, whose parts may all relay, so that there is none to share. And
/// the two round differently: rotor rounds each size to slots by itself, as the published program
/// does, in slots of any fraction of bytes; here what is there at one moment is added up in bytes
/// and rounded once, in slots of whole bytes. The class `persistent` is what relays are measured
/// against; where nothing is rounded it has the values of rotor's table.
///
/// Memory is cut into `slots` equal slots of the budget (sizes rounded up), or into units of the
/// greatest common divisor of all sizes where the budget has no more than `slots` of them: then
/// nothing is rounded. What a row needs at least is known in bytes (the same recursion for the
/// least memory), so a plan is found whenever the class has one.
///
/// O(stages^3 slots) time and O(stages^2 slots) memory, less where rows saturate.
#pragma once

#include "policy/remat/chain/chain_model.hpp"
#include "policy/remat/chain/chain_sequence.hpp"

#include <optional>

namespace plimsoll {

enum class ChainClass : std::uint8_t { persistent, relay };

struct ClassOptimum {
  ChainSequence sequence;
  bool rounded = false;  ///< sizes were rounded to slots, or the leanest schedule was all that fits
};

/// The best schedule of the class within `budget` bytes, up to rounding; nothing where the class
/// has none. Throws std::length_error where the table would pass 1 GiB.
[[nodiscard]] std::optional<ClassOptimum> class_optimum(const ChainModel& model,
                                                        std::int64_t budget, std::int64_t slots,
                                                        ChainClass of);

/// The least budget under which the class has a schedule. O(stages^3).
[[nodiscard]] std::int64_t least_budget(const ChainModel& model, ChainClass of);

/// class_optimum() of all relay schedules, tried `retries` times more with as much more room as the
/// true peak of the one before left free, since rounding to slots hides it; the fastest whose true
/// peak is within the budget.
[[nodiscard]] std::optional<ClassOptimum> relay_schedule(const ChainModel& model,
                                                         const ChainCosts& costs,
                                                         std::int64_t budget, std::int64_t slots,
                                                         int retries);

}  // namespace plimsoll
