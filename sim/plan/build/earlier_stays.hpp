/// Copies back wait until the copy out of the same value has freed the source.
#pragma once

#include "plan/core/readers.hpp"

#include <vector>

namespace plimsoll {

/// `stay` is where the value of the copy was in the copy's destination before: the stay of the same
/// tensor, microbatch and run that the latest earlier-issued copy took away.
struct EarlierStay {
  StepId copy{};
  BufferId stay{};
};

/// For the copies that have one, in issue order. O(copies log copies).
[[nodiscard]] std::vector<EarlierStay> earlier_stays(const Plan& plan, const Readers& readers);

}  // namespace plimsoll
