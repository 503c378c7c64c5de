/// Memories that are placed ahead of time (allocator `static`): from what a run keeps there, and how
/// long, to an address for each block.
///
/// The run is played once with exact accounting. Of that come the lifetimes: they begin and end with
/// events, counted in the order in which the engine handles them, so that what is freed before
/// something else starts at the same instant does not overlap it. Then the run is played again with
/// the addresses. As these are granted by bytes, as before, nothing happens at another time.
/// Internal to this floor.
#pragma once

#include "execution/observer.hpp"
#include "execution/program.hpp"
#include "memory/placed.hpp"
#include "memory/placement/place.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll {

/// Of one memory: a rule takes O(n^2), a second or two for as many.
inline constexpr std::size_t kMostPlacedBlocks = 16'384;
/// Of an exact search: about a second.
inline constexpr std::int64_t kRunPlacementSteps = 300'000'000;

/// Whether any memory of the program is placed ahead of time.
[[nodiscard]] bool places_ahead(const Program& program);

/// Notes the lifetimes of blocks of more than 0 bytes in such memories, in units of their alignment.
class BlockLifetimes final : public Observer {
 public:
  /// `program` has to outlive it.
  explicit BlockLifetimes(const Program& program);

  void buffer_allocated(BufferId buffer, StepId by, Time now) override;
  void buffer_freed(BufferId buffer, Time now) override;
  void workspace_allocated(StepId of, Bytes bytes, Time now) override;
  void workspace_freed(StepId of, Time now) override;

  struct Blocks {
    std::vector<TimedBuffer> lifetimes;  ///< in the order in which they are asked for
    std::vector<Bytes> requested;
  };
  /// By memory; those that outlive the run end with it. To be called once.
  [[nodiscard]] std::vector<Blocks> finish();

 private:
  static constexpr std::uint32_t kNotPlaced = UINT32_MAX;

  std::uint32_t begin(std::uint32_t memory, Bytes bytes);
  void end(std::uint32_t memory, std::uint32_t& block);

  const Program& program_;
  std::vector<Bytes> unit_;                          ///< by memory; 0 B where nothing is placed
  std::vector<Blocks> blocks_;                       ///< by memory
  std::vector<std::uint32_t> buffers_, workspaces_;  ///< the block: by buffer, by lane
  std::int64_t now_ = 0;
};

struct Placements {
  /// By memory, in the order in which blocks are asked for; none where others allocate.
  std::vector<std::optional<std::vector<PlacedBlock>>> blocks;
  std::optional<OutOfMemory> misfit;  ///< of the first memory that the placement exceeds
};

/// Throws InputError where a memory holds more than kMostPlacedBlocks, or than kMostPlacedBytes units of
/// alignment in all. `counted` is the run that
/// the lifetimes are of.
[[nodiscard]] Placements placements_of(const Program& program,
                                       std::vector<BlockLifetimes::Blocks> all,
                                       const Execution& counted);

/// Whether all of them end within what the plan may use: as placements_of() would say, in less time
/// where a rule fits already.
[[nodiscard]] bool placements_fit(const Program& program,
                                  const std::vector<BlockLifetimes::Blocks>& all);

}  // namespace plimsoll
