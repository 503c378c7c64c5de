/// Chen's segments on a graph: forwards between checkpoints run again in front of the first backward
/// that reads one of them.
///
/// Chen, Xu, Zhang, Guestrin 2016, "Training Deep Nets with Sublinear Memory Cost",
/// arXiv:1604.06174, on graphs as Jain et al. 2020 ("Checkmate", MLSys, arXiv:1910.02653) have it:
/// checkpoints are chosen among candidates in the order of the graph. Operators count and run again
/// in groups (rerun_groups.hpp).
#pragma once

#include "policy/graph/staged_schedule.hpp"
#include "policy/interface/entry.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

enum class SegmentCandidates : std::uint8_t {
  stages,        ///< of the chain that a network is cut into
  articulation,  ///< operators without which the forwards fall apart
  all            ///< all forwards: "linearized"
};

class GraphSegments {
 public:
  /// The arguments must outlive it. O(nodes + reads).
  GraphSegments(const Problem& problem, const OperatorGraph& graph, const RerunGroups& groups,
                SegmentCandidates candidates);

  /// Every k-th candidate for k the root of their number, rounded down.
  [[nodiscard]] std::vector<std::uint32_t> root_checkpoints() const;
  /// A candidate where the forwards since the last one have made more than a threshold.
  [[nodiscard]] std::vector<std::uint32_t> greedy_checkpoints(Bytes threshold) const;
  /// At which the greedy checkpoints change: what the forwards have made so far, ascending; where
  /// those are more than `most`, so many of them, evenly spaced.
  [[nodiscard]] std::vector<Bytes> thresholds(std::size_t most) const;

  /// The plan. What no backward needs does not run again, nor what follows the last checkpoint.
  /// O(nodes + reads).
  [[nodiscard]] std::vector<std::uint32_t> sequence(
      std::span<const std::uint32_t> checkpoints) const;

 private:
  void find_articulation();
  [[nodiscard]] Bytes made_by(std::uint32_t group) const;
  [[nodiscard]] std::vector<std::uint32_t> first_readers() const;
  void add_segment(std::uint32_t begin, std::uint32_t end,
                   const std::vector<std::uint32_t>& first_readers,
                   std::vector<Rerun>& reruns) const;

  const OperatorGraph& graph_;
  const RerunGroups& groups_;
  const std::uint32_t forwards_;      ///< operators
  std::uint32_t forward_groups_ = 0;  ///< the first groups
  std::vector<bool> is_candidate_;    ///< by group
};

/// Refuses a workload that does not say what is a forward.
void refuse_without_backwards(const Problem& problem, const SingleProcessorParameters& parameters);

}  // namespace plimsoll
