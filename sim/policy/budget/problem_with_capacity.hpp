/// A planner's problem with more of one memory than there is.
#pragma once

#include "policy/interface/policy.hpp"

namespace plimsoll {

/// A problem like another one, in which one memory has another capacity, or none. Not to be copied:
/// what it hands out refers to it.
class ProblemWithCapacity {
 public:
  ProblemWithCapacity(const Problem& problem, MemoryId memory, Bytes usable = Bytes::unlimited());
  ProblemWithCapacity(const ProblemWithCapacity&) = delete;
  ProblemWithCapacity& operator=(const ProblemWithCapacity&) = delete;

  [[nodiscard]] const Problem& problem() const { return problem_; }

 private:
  Platform platform_;
  Problem problem_;
};

}  // namespace plimsoll
