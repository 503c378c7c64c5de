/// Which runs of random operators need a state of the generator that was kept.
///
/// Every processor's stream draws from a generator of its own, and what runs again puts it back
/// afterwards: first runs draw one after the other, whatever runs again in between. An operator that
/// runs again has to find the generator as it was at its first run. It does without a kept state
/// where the operators run again one after the other, as in a part of `torch.utils.checkpoint`: if
/// between it and whoever drew before it at the first run there are only runs of operators that do
/// not draw, all of them again.
#pragma once

#include "plan/core/plan.hpp"

#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace plimsoll {

enum class GeneratorNeed : std::uint8_t {
  none,       ///< it does not draw
  first,      ///< the first run: the state may be kept
  continued,  ///< a later run that goes on where another has ended
  kept        ///< a later run that needs the state
};

class GeneratorRuns {
 public:
  explicit GeneratorRuns(const Workload& workload) : workload_(workload) {}

  /// Of the next computation in issue order; `is_alone`: it is no part of a pair. O(log draws).
  GeneratorNeed next(LaneId lane, OperatorId op, std::uint32_t microbatch, bool is_alone);

 private:
  using Draw = std::pair<OperatorId, std::uint32_t>;  ///< with its microbatch
  struct Stream {
    std::optional<Draw> first;  ///< the latest first run
    std::optional<Draw> again;  ///< the latest of the stretch that runs again
  };

  const Workload& workload_;
  std::vector<Stream> streams_;                 ///< by lane
  std::vector<bool> has_run_;                   ///< by microbatch and operator
  std::map<Draw, std::optional<Draw>> before_;  ///< who drew before the first run
};

}  // namespace plimsoll
