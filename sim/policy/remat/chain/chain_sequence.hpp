/// A schedule of a chain on one processor as a sequence of whole stages: what every planner of
/// recomputation answers with, and the one way from there to a plan.
///
/// A forward keeps (leaves saved_i) or is bare (leaves a_i). Nothing is released explicitly: a
/// value goes after the last use of this stay of it, so that "drop" is a bare forward whose input
/// nobody reads again, and saved_i made twice is dropped in between.
///
/// The input of a stage (a_0 among them) may be written to a storage and read back. The written
/// copy stays there until it is read last; a read makes a new stay in the processor's memory, which
/// goes after its last use, as if the stage before had run bare.
#pragma once

#include "plan/core/plan.hpp"
#include "policy/interface/policy.hpp"
#include "workload/chain/chain_costs.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plimsoll {

struct ChainAction {
  enum class Kind : std::uint8_t {
    keep,
    bare,
    backward,
    write,  ///< copies the input of `stage` to the storage; the original stays
    read    ///< brings the input of `stage` back; the storage keeps it
  };
  Kind kind = Kind::keep;
  std::uint32_t stage = 0;  ///< from 0
  bool operator==(const ChainAction&) const = default;
};

using ChainSequence = std::vector<ChainAction>;

/// The longest sequence that planners hand on; planning and executing takes
/// some 400 B for each action of an abstract chain.
inline constexpr std::size_t kMostActions = 4'000'000;

/// Where `write` and `read` copy to and from.
struct ChainStorage {
  MemoryId memory{};
  /// Otherwise a copy starts after the actions before it and the next action after the copy. With
  /// overlap a write runs beside what follows, and a read starts with the computation before it.
  bool overlap = false;
};

/// The plan that runs `sequence` and then the optimizer, with the claims that follow from it.
/// Throws PlanError where a stage runs without its input. O(operators in the sequence).
/// Precondition: `storage` is given, and linked both ways, where the sequence writes or reads.
[[nodiscard]] Plan plan_of(const Problem& problem, ProcessorId processor,
                           std::span<const ChainAction> sequence, const std::string& policy,
                           std::optional<ChainStorage> storage = std::nullopt);

/// What a plan of one sequence without copies needs of the processor's memory, however much there
/// is of it. O(steps log steps).
[[nodiscard]] Bytes needs_of(const Plan& plan, const Problem& problem, ProcessorId processor);

/// How long copying the input of every stage takes, by stage.
struct ChainCopies {
  std::vector<Time> write, read;
};
/// O(stages + tensors). Precondition: the storage is linked both ways.
[[nodiscard]] ChainCopies chain_copies(const Problem& problem, ProcessorId processor,
                                       MemoryId storage);

/// What a sequence needs and how long it takes by the costs alone: the peak of its resident values
/// by the rules of the chain (DESIGN of the machine: docs/semantics.md, "Chains"), and the sum of
/// its times, copies that block among them. Equal to the measurement on abstract chains, an upper
/// bound of the peak on networks.
struct SequenceCost {
  Bytes peak;
  Time time;
};
/// Precondition: every action finds its input; `copies` is given where the sequence writes or
/// reads. O(sequence).
[[nodiscard]] SequenceCost cost_of(std::span<const ChainAction> sequence, const ChainCosts& costs,
                                   const ChainCopies& copies = {});

/// The chain's costs on `processor`, for planners. O(operators).
[[nodiscard]] ChainCosts chain_costs(const Problem& problem, ProcessorId processor);

}  // namespace plimsoll
