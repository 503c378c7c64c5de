/// Holds what a plan says of itself against what was measured.
#pragma once

#include "scenario/run/run.hpp"

#include <string>
#include <vector>

namespace plimsoll {

struct ClaimCheck {
  std::vector<std::string> held;       ///< "makespan", "peak of hbm"
  std::vector<std::string> differing;  ///< "makespan: claimed 3 ms, measured 4 ms"
};

/// Every claim of a run that ended well. Of a plan from a file also the bounds that it states,
/// where an execution goes below them: nobody else has proven these.
[[nodiscard]] ClaimCheck check_claims(const RunResult& result);

/// Whether a run ended well and, where a file gave its plan, does what the file claims.
[[nodiscard]] bool is_as_claimed(const RunResult& result);

}  // namespace plimsoll
