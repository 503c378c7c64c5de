/// A planner's problem with more of one memory than there is.
#pragma once

#include "policy/interface/policy.hpp"

namespace plimsoll {

/// A problem like another one, in which one memory has another capacity, or none. Not to be copied:
/// what it hands out refers to it.
class RoomyProblem {
 public:
  RoomyProblem(const Problem& problem, MemoryId memory, Bytes usable = Bytes::unlimited());
  RoomyProblem(const RoomyProblem&) = delete;
  RoomyProblem& operator=(const RoomyProblem&) = delete;

  [[nodiscard]] const Problem& problem() const { return problem_; }

 private:
  Platform platform_;
  Problem problem_;
};

}  // namespace plimsoll
