/// What it takes to write the state of a training to a storage, and to read it back: the engine plays
/// one copy of it, with nothing beside it.
#pragma once

#include "plan/core/plan.hpp"

namespace plimsoll {

/// One way. `energy` is that of all components, where the platform states any.
struct PlayedCopy {
  Time time;
  std::optional<Energy> energy;
  Bytes written;    ///< to the storage, in whole blocks
  double wear = 0;  ///< share of the storage's endurance
};

struct CheckpointCopies {
  PlayedCopy write, read;
};

/// A copy of so many bytes from the memory of `processor` to `to`, alone. Throws std::invalid_argument
/// where no links lead there. Precondition: bytes > 0.
[[nodiscard]] PlayedCopy play_copy_out(Bytes bytes, const Platform& platform, ProcessorId processor,
                                       MemoryId to);

/// What a checkpoint holds of `workload`: what its optimizer updates, besides gradients; without an
/// optimizer all parameters.
[[nodiscard]] Bytes checkpoint_bytes(const Workload& workload);

/// Throws std::invalid_argument where the state cannot be copied both ways. Precondition: bytes > 0.
[[nodiscard]] CheckpointCopies play_checkpoint(Bytes bytes, const Platform& platform,
                                               ProcessorId processor, MemoryId storage);

}  // namespace plimsoll
