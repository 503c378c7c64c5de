/// Dynamic Tensor Rematerialization: which candidate goes when an allocation finds no room.
///
/// Kirisame et al. 2021, "Dynamic Tensor Rematerialization", ICLR, arXiv:2006.09616. With c the cost
/// of making a storage again, b its bytes, s its staleness (the clock less its last access), E- and
/// E+ the costs of the absent storages that it can be reached from, and that it reaches, through
/// absent ones alone:
///
///   dtr      (c + E- + E+) / (b s)
///   dtr-eq   (c + the sums of the distinct classes of its absent neighbours) / (b s)
///   local    c / (b s)
///   msps     (c + E-) / b
///   e-star   (c + E- + E+) / b
///   lru      last access
///   size     1 / b
///   random   drawn
///
/// The least goes, of equal ones the last in the order in which they became candidates; a score of
/// 0 ends the scan. An access is a request of what reads it; what is made for the first time is
/// accessed then, too.
#pragma once

#include "base/work.hpp"
#include "policy/online/evicted_classes.hpp"
#include "policy/online/run/online_policy.hpp"
#include "policy/online/score.hpp"

#include <cstdint>
#include <random>
#include <vector>

namespace plimsoll {

enum class DtrScore : std::uint8_t { dtr, dtr_eq, local, msps, e_star, lru, size, random };

/// Which candidates are scored.
enum class DtrCandidates : std::uint8_t {
  all,
  /// Of those that have at least 1 % of the mean bytes, as many as the root of their number, drawn.
  sqrt
};

class DtrPolicy final : public OnlinePolicy {
 public:
  DtrPolicy(const StorageGraph& graph, DtrScore score, DtrCandidates candidates, std::uint64_t seed,
            const Work& work);

  void on_request(const OnlineView& view, std::uint32_t node) override;
  void on_operator(const OnlineView& view, const OperatorRun& run) override;
  void on_release(const OnlineView& view, std::uint32_t storage) override;
  [[nodiscard]] std::vector<OnlineStep> on_pressure(const OnlineView& view) override;
  [[nodiscard]] std::int64_t score_evaluations() const override { return evaluations_; }

 private:
  [[nodiscard]] Score score(const OnlineView& view, std::uint32_t storage);
  [[nodiscard]] std::int64_t reached(const OnlineView& view, std::uint32_t storage, bool is_up);
  [[nodiscard]] std::int64_t class_sums(const OnlineView& view, std::uint32_t storage);
  [[nodiscard]] std::vector<std::uint32_t> chosen(const OnlineView& view);

  const StorageGraph& graph_;
  const DtrScore score_;
  const DtrCandidates candidates_;
  const Work work_;
  std::mt19937_64 random_;
  std::vector<std::int64_t> last_access_;  ///< by storage
  EvictedClasses classes_;                 ///< for dtr-eq
  std::int64_t evaluations_ = 0;
  // For one score:
  std::vector<std::uint32_t> open_, roots_;
  std::vector<std::int64_t> seen_;  ///< by storage: the last search that came there
  std::int64_t search_ = 0;
};

}  // namespace plimsoll
