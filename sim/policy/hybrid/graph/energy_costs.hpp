/// What a run of an operator and a copy cost in energy, as execution measures it.
///
/// What lasts longer costs the idle power of everything; an operator, besides, what its processor and
/// that one's memory draw at work and its own energy; a copy, that of the links and memories on its
/// way.
#pragma once

#include "platform/core/regulator.hpp"
#include "policy/graph/operator_graph.hpp"
#include "policy/offload/copies/storage.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

/// Whole picojoules, rounded down, and back.
[[nodiscard]] std::int64_t in_pj(Energy energy);
[[nodiscard]] Energy of_pj(std::int64_t count);

/// By node: what a run adds to a step of which it is a part. O(operators).
[[nodiscard]] std::vector<Energy> run_energies(const Problem& problem, ProcessorId processor,
                                               const OperatorGraph& graph);

class CopyEnergy {
 public:
  CopyEnergy(const Problem& problem, const OffloadMemories& memories)
      : problem_(problem), memories_(memories) {}

  /// Beyond what idles, where nothing else happens at the same time. Throws QuantityOverflow.
  [[nodiscard]] Energy out(Bytes bytes) const;
  [[nodiscard]] Energy back(Bytes bytes) const;
  [[nodiscard]] Energy both_ways(Bytes bytes) const { return out(bytes) + back(bytes); }

  /// Out, or back, in company: energy for each byte, and what links and storage draw at work; half of
  /// that where a copy the other way may share it.
  [[nodiscard]] Energy least_out(Bytes bytes) const;
  [[nodiscard]] Energy least_back(Bytes bytes) const;

 private:
  [[nodiscard]] Energy one_way(MemoryId from, MemoryId to, Bytes bytes) const;
  [[nodiscard]] bool is_one_at_a_time() const;
  [[nodiscard]] Energy of_bytes(MemoryId from, MemoryId to, Bytes bytes) const;
  [[nodiscard]] Energy least(MemoryId from, MemoryId to, Bytes bytes) const;

  const Problem& problem_;
  const OffloadMemories& memories_;
};

}  // namespace plimsoll
