/// Makes a snapshot out of what happens in one memory: segments that come and go, blocks that are
/// handed out and freed.
///
/// Segments get increasing addresses. An arena is one segment that is there from the start, as large
/// as the memory, or, of an unlimited one, up to the end of the highest block.
#pragma once

#include "memory/allocator.hpp"
#include "memory/held_ranges.hpp"
#include "memory/snapshot/snapshot.hpp"
#include "memory/trace/replay.hpp"

#include <map>
#include <optional>
#include <string>

namespace plimsoll {

class SnapshotRecorder {
 public:
  /// What an event says beside sizes and addresses.
  struct Note {
    std::string name, category;
    std::optional<std::int64_t> time_us;
  };

  /// `origin` names what is recorded where addresses leave their range, which throws InputError.
  /// Not for an ideal memory.
  SnapshotRecorder(Bytes capacity, const AllocatorSettings& settings, std::string origin);

  void segment_changed(const SegmentEvent& event, const Note& note);
  void taken(const MemoryBlock& block, const MemoryPiece& piece, const Note& note);
  void freed(const MemoryBlock& block, bool is_awaited, const Note& note);
  void completed(const MemoryBlock& block, const Note& note);
  void refused(std::uint32_t stream, Bytes rounded, Bytes left, const Note& note);

  /// The events, and the segments that they end in. Categories are completed: where any event has
  /// one, those that have none are `unknown`. To be called once, at the end.
  [[nodiscard]] SnapshotDevice finish();

 private:
  struct Held {
    std::int64_t address = 0, size = 0, requested = 0, stream = 0;
    bool is_awaited = false;
    std::string name, category;
  };
  struct Base {
    std::int64_t address = 0;
    std::int64_t stream = 0;
  };
  struct Mapped {
    std::int64_t stream = 0;
    bool is_small = false, is_expandable = false;
  };

  const Base& base_of(const SegmentEvent& event);
  void add(SnapshotEvent event, const Note& note);
  [[nodiscard]] std::vector<SnapshotSegment> segments() const;
  [[nodiscard]] std::vector<SnapshotBlock> blocks() const;

  std::int64_t space_;  ///< addresses that an expandable segment may grow into
  bool is_arena_;
  Bytes arena_;
  std::string origin_;
  std::int64_t next_address_;
  std::map<std::uint64_t, Base> bases_;  ///< by segment
  HeldRanges<Mapped> mapped_;            ///< by address
  std::map<std::uint32_t, Held> held_;   ///< by handle
  std::vector<SnapshotEvent> events_;
};

/// Plays a trace and records it; its end is what replay() gives.
[[nodiscard]] SnapshotDevice record_replay(const Trace& trace, Bytes capacity,
                                           const AllocatorSettings& settings,
                                           const std::string& origin);

}  // namespace plimsoll
