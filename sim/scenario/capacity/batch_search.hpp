/// Finds which mini-batches of one configuration fit, and measures them.
#pragma once

#include "scenario/capacity/capacity.hpp"

#include <string>
#include <vector>

namespace plimsoll {

/// One batch that was tried.
struct TriedBatch {
  std::int64_t batch = 1;
  std::optional<UnitFigures> figures;  ///< absent where it does not hold
  std::int64_t processors = 0;         ///< that did any work
  std::string why;                     ///< it does not hold
  bool is_refused = false;             ///< the policy does not apply, at any batch
};

struct BatchSearch {
  std::vector<TriedBatch> tried;  ///< by batch
  std::string parameters;         ///< of the policy, as written; empty where it always refuses
  bool is_limited_by_plan = false;
  bool is_cut_short = false;  ///< as LastFound::is_cut_short

  /// nullptr where no batch holds.
  [[nodiscard]] const TriedBatch* largest() const;
};

/// Tries the batches that the workload allows with one policy of the scenario, whose planning may
/// take `limit_work` steps of work for each. Throws InputError
/// where a range of batches is given for a workload whose sizes are those of one batch.
/// Preconditions: `policy` is one of the scenario's; the scenario's keys distinguish its platform
/// and its workload, apart from the batch, from all others of `memo`.
[[nodiscard]] BatchSearch search_batches(const Scenario& scenario, const Node& policy,
                                         const CapacityWorkload& workload, ScenarioMemo& memo,
                                         std::int64_t limit_work);

}  // namespace plimsoll
