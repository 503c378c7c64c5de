/// Plays a trace on an allocator: where every block went, the counters, and, if a request is
/// refused, why.
#pragma once

#include "memory/fragmentation.hpp"
#include "memory/trace/trace.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

/// What became of a step, and the counters after it.
struct ReplayStep {
  enum class What : std::uint8_t {
    granted,
    refused,
    freed,
    awaited,  ///< freed, but other streams still use it
    noted     ///< changes no block: an event, or a request for nothing that ideal memories keep
  };
  What what = What::noted;
  /// Where the block is or was; absent where there are no addresses, and of 0 bytes.
  std::optional<MemoryPiece> piece;
  AllocatorUse now;
  Bytes inactive_split;
  std::size_t segments = 0;
};

/// A cut segment with the names of the blocks that keep it.
struct NamedCut {
  MemorySegment segment;
  std::vector<std::string> keepers;  ///< at most 5, as CutSegment orders them
  std::size_t others = 0;            ///< keepers beside these
};

/// The moment of the first request that was refused.
struct ReplayRefusal {
  std::size_t step = 0;
  Bytes asked, rounded;
  Bytes free, largest_free;
  AllocatorUse now;
  MemoryGaps gaps;
  std::vector<NamedCut> cut;  ///< at most 10, with the most free bytes first
  std::size_t cut_segments = 0;
};

struct Replayed {
  std::size_t steps = 0;  ///< played: all, or up to and with an allocation that was refused
  Bytes load;             ///< the largest sum of sizes alive at one time: no allocator needs less
  AllocatorCounters counters;
  Bytes largest_free;  ///< free piece; of an ideal memory all that is free
  MemoryGaps gaps;     ///< at the end
  std::vector<NamedCut> cut;
  std::size_t cut_segments = 0;
  std::optional<ReplayRefusal> refusal;

  [[nodiscard]] bool is_ok() const { return !refusal; }
};

/// Is told what happens. Each function does nothing unless overridden.
class ReplayListener {
 public:
  ReplayListener() = default;
  ReplayListener(const ReplayListener&) = delete;
  ReplayListener& operator=(const ReplayListener&) = delete;
  virtual ~ReplayListener() = default;

  virtual void segment_changed(const SegmentEvent& /*event*/) {}
  virtual void granted(const TraceStep& /*step*/, const MemoryBlock& /*block*/,
                       const MemoryPiece& /*piece*/) {}
  virtual void freed(const MemoryBlock& /*block*/, bool /*is_awaited*/) {}
  virtual void completed(const MemoryBlock& /*block*/) {}
  virtual void refused(const TraceStep& /*step*/, Bytes /*rounded*/, Bytes /*left at the device*/) {
  }
  virtual void stepped(std::size_t /*step*/, const ReplayStep& /*what*/) {}
};

/// Plays until the end or the first allocation that is refused; goes on after an attempt that is.
/// `origin` names the trace where sizes leave their range, which throws InputError. O(steps log
/// blocks); with a listener that is told of steps no more than that.
[[nodiscard]] Replayed replay(const Trace& trace, Bytes capacity, const AllocatorSettings& settings,
                              const std::string& origin, ReplayListener* listener = nullptr);

}  // namespace plimsoll
