/// A schedule of a chain with copies to storage and back, as a sequence of whole stages: what every
/// planner of offload answers with, and the one way from there to a plan.
///
/// The model: one stream runs forwards and backwards; saved_i leaves over one channel and comes
/// back over another, each serving in the order of the sequence. What allocates in the processor's
/// memory (operators, copies back) does so in the order of the sequence, each at the first moment
/// at which its bytes are free. A copy out starts as soon as its forward has ended and its channel
/// is free, so it belongs right behind that forward, or behind the copy out that goes before it,
/// or, where the storage had no room for it, behind the copy back that makes some.
///
/// Forwards may run again, and be bare: then a_i is what leaves and comes back. A value goes after
/// the last use of this stay of it, as in remat/chain_sequence.hpp.
///
/// In a network a stage is several operators and saves several tensors. The copies of a stage go
/// one after the other; the copies out wait for the stage's last forward operator. So that a later
/// operator does not wait until all copies back issued before it have started, those of one stage
/// are spread: each is issued before the first operator that could not start earlier (as far as a
/// clock without stalls can tell), all of them before the first backward that needs them.
#pragma once

#include "plan/core/plan.hpp"
#include "policy/offload/copies/storage.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace plimsoll {

struct OffloadAction {
  enum class Kind : std::uint8_t {
    forward,  ///< keeps saved_i
    backward,
    out,  ///< of what the stage's forward before it has left: saved_i or a_i
    in,   ///< of the same
    bare  ///< a forward that leaves a_i only
  };
  Kind kind = Kind::forward;
  std::uint32_t stage = 0;  ///< from 0
  bool operator==(const OffloadAction&) const = default;
};

using OffloadSequence = std::vector<OffloadAction>;

struct OffloadOptions {
  SourceRelease release = SourceRelease::whole;  ///< of copies out: whole or progressive
  Bytes limit = Bytes::unlimited();              ///< what the plan may use of the memory
  /// Memories grant in the order of the sequence. Otherwise any step that fits is served, and
  /// claims are made only if no step has to wait for memory.
  bool ordered = true;
};

/// The plan that runs `sequence` and then the optimizer, with the claims that follow from it; they
/// are absent where they are not certain, and so where the sequence cannot end.
/// Preconditions: forwards in order, then backwards, with forwards that run again between them;
/// what is read is there: a stage comes back (after it has gone out) before the stage behind it
/// runs backward, or forward again. O(steps log steps).
[[nodiscard]] Plan plan_of(const Problem& problem, const OffloadMemories& memories,
                           std::span<const OffloadAction> sequence, const OffloadOptions& options,
                           const std::string& policy);

}  // namespace plimsoll
