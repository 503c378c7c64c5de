/// What Coop and DTE share: accesses, classes and costs of what lies in a pool.
///
/// An access stamps a storage with the clock before the operator that reads or makes it. The cost
/// of a storage is that of its own group and, for each absent storage that the group reads or makes,
/// the larger of the sum of that one's class and its own cost.
#pragma once

#include "base/work.hpp"
#include "policy/online/evicted_classes.hpp"
#include "policy/online/piece_selection.hpp"
#include "policy/online/run/online_policy.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

class PoolPolicy : public OnlinePolicy {
 public:
  /// `in_place`: what operators change in place may go, and is made again with all that changes it.
  PoolPolicy(const StorageGraph& graph, bool in_place, const Work& work);

  [[nodiscard]] bool may_release(const StorageGraph& graph, std::uint32_t storage) const override;
  void on_operator(const OnlineView& view, const OperatorRun& run) override;
  void on_release(const OnlineView& view, std::uint32_t storage) override;
  [[nodiscard]] std::int64_t score_evaluations() const override { return evaluations_; }

 protected:
  /// The pieces of the pool, with a score for each candidate, in the order of addresses.
  const std::vector<ScoredPiece>& scored(const OnlineView& view);
  /// The release of what lies in one of them.
  [[nodiscard]] OnlineStep release_of(std::size_t piece) const { return {owners_[piece]}; }

 private:
  [[nodiscard]] std::uint64_t cost(const OnlineView& view, std::uint32_t storage);

  const StorageGraph& graph_;
  const bool in_place_;
  const Work work_;
  std::vector<std::int64_t> last_access_;  ///< by storage
  EvictedClasses classes_;
  std::int64_t evaluations_ = 0;
  // Of the last search:
  std::vector<ScoredPiece> pieces_;
  std::vector<std::uint32_t> owners_;
};

}  // namespace plimsoll
