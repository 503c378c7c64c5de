/// A mesh over which the plan of one rank is spread, and what its ranks do together.
#pragma once

#include "plan/build/rank_groups.hpp"
#include "platform/core/topology.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace plimsoll {

/// Where a rank's state lives.
struct RankHomes {
  std::array<MemoryId, kHomes> memory{};  ///< by Home; of the first none
  std::optional<ProcessorId> updates_on;  ///< where another processor does
};

struct Spreading {
  std::vector<RankAxis> axes;  ///< digits of a rank's number (rank_groups.hpp)
  /// By processor that the plan of one rank uses: it and its likes, by rank. No two share a memory.
  std::vector<std::vector<ProcessorId>> likes;
  /// Of these; empty where all state lives with them.
  std::vector<std::vector<RankHomes>> homes;
  AllReduce algorithm = AllReduce::ring;
  /// Where it is set, `algorithm` and nodes are those that take each collective the least time on these
  /// ways (plan/build/collective_choice.hpp).
  const Topology* chosen_on = nullptr;
  CollectiveKind of_gradients = CollectiveKind::all_reduce;
  bool gathers_parameters = false;  ///< after the updates, over the same ranks as gradients
  Bytes first_bucket, bucket;
  bool overlap = true;
  /// Whether rounds that follow each other on one channel are one step, where one rank is played.
  bool joins_rounds = false;

  [[nodiscard]] std::uint32_t ranks() const;
  /// Whether several groups each hold all state, in parts.
  [[nodiscard]] bool has_copies() const;
};

/// In which they work.
[[nodiscard]] std::vector<MemoryId> memories_of(std::span<const ProcessorId> processors,
                                                const Platform& platform);

}  // namespace plimsoll
