/// Memory snapshots as `torch.cuda.memory._snapshot` makes them and PyTorch's page memory_viz shows
/// them: the segments of an allocator, and the events that led to them.
///
/// Facts of the format: sizes of `alloc`, `free_requested` and `free_completed` are what was
/// requested, that of `oom` is rounded; blocks tile their segment; the viewer rebuilds the history
/// backwards from the final segments, so that these must agree with the events; addresses stay below
/// 2^53; where any event has a category, one must have `unknown`. Of expandable segments each range
/// that is mapped without a gap is one segment.
///
/// Written are the keys that the viewer and PyTorch's own tools read. The name of a block stands as
/// its only frame, whose file name is `plimsoll`. Read are files of PyTorch, too; keys that are not
/// needed are not looked at.
#pragma once

#include "memory/trace/trace.hpp"

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

/// Addresses are below; the viewer's numbers are doubles.
inline constexpr std::int64_t kEndOfAddresses = std::int64_t{1} << 53;

struct SnapshotBlock {
  enum class State : std::uint8_t { active_allocated, active_pending_free, inactive };
  std::int64_t address = 0;
  std::int64_t size = 0, requested = 0;
  State state = State::inactive;
  std::string name;  ///< empty where nobody gave one

  friend bool operator==(const SnapshotBlock&, const SnapshotBlock&) = default;
};

struct SnapshotSegment {
  std::int64_t address = 0, size = 0;
  std::int64_t stream = 0;
  bool is_small = false, is_expandable = false;
  std::vector<SnapshotBlock> blocks;  ///< tile it

  friend bool operator==(const SnapshotSegment&, const SnapshotSegment&) = default;
};

struct SnapshotEvent {
  enum class Action : std::uint8_t {
    alloc,
    free_requested,
    free_completed,
    segment_alloc,
    segment_free,
    segment_map,
    segment_unmap,
    oom,
    other  ///< `snapshot`, `user_defined`: no change of memory
  };
  Action action = Action::other;
  std::int64_t address = 0, size = 0, stream = 0;
  std::optional<std::int64_t> time_us;
  std::int64_t device_free = 0;  ///< of oom
  std::string category, name;    ///< empty: none

  friend bool operator==(const SnapshotEvent&, const SnapshotEvent&) = default;
};

/// Of one device.
struct SnapshotDevice {
  std::vector<SnapshotSegment> segments;  ///< in the order of addresses
  std::vector<SnapshotEvent> events;

  friend bool operator==(const SnapshotDevice&, const SnapshotDevice&) = default;
};

struct Snapshot {
  std::vector<SnapshotDevice> devices;
};

/// As a pickle of protocol 2. O(events + blocks).
[[nodiscard]] std::string to_pickle(const Snapshot& snapshot);

/// Throws InputError at `origin` with the byte at which something else than expected was found:
/// missing keys, other kinds, sizes and addresses out of range, blocks that do not tile.
[[nodiscard]] Snapshot parse_snapshot(std::string bytes, const std::string& origin);
[[nodiscard]] Snapshot load_snapshot(const std::filesystem::path& path);

/// What the program asked of the allocator of one device, as a trace. Blocks that were there before
/// the first event are allocated first, in the order of addresses. A request that was refused is an
/// attempt; the capacity is then what was held and free at the device. Where an allocator waited for
/// other streams because it had no room, the trace has the end of that wait before the request, which
/// then may find the room at once. Throws InputError at `origin`
/// where events and segments disagree. O(events log blocks).
[[nodiscard]] Trace trace_of(const SnapshotDevice& device, const std::string& origin);

}  // namespace plimsoll
