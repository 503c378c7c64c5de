/// What a collective takes of each of its members before it is on the links, where their processors
/// state it (Processor::collectives): a start, and the way of what the member puts in and gets out
/// through its memory,
///
///   start + p ceil(B / n) / memory
///
/// with B bytes in n parts, of which p are read and written there (Reduction::opens). Of an
/// all-reduce these are 2n, of a reduce-scatter or an all-gather n + 1, of an all-to-all 2n.
/// Example: an all-reduce of 8 MB starts in 36 us at 1 TB/s: 52 us pass before its first round.
///
/// It is part of the member's first round: links whose latency holds them are held from then on, so
/// that of two collectives on them one begins when the other has ended.
#pragma once

#include "plan/core/plan.hpp"

#include <vector>

namespace plimsoll {

class CollectiveOpenings {
 public:
  /// O(processors + memories). `platform` must outlive it.
  explicit CollectiveOpenings(const Platform& platform);

  /// How much longer a copy or reduction takes. O(its buffers).
  [[nodiscard]] Time of(const Plan& plan, const Step& step, const Workload& workload) const;
  /// For a rank with that memory: so many parts of so many bytes.
  [[nodiscard]] Time of(MemoryId member, Bytes part, std::uint32_t parts) const;

 private:
  /// By memory; empty where no processor states anything.
  std::vector<const Processor*> processor_in_;
};

}  // namespace plimsoll
