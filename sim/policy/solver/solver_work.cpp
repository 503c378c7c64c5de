#include "policy/solver/solver_work.hpp"

namespace plimsoll {

std::mutex& one_solver() {
  static std::mutex solver;
  return solver;
}

int CountedIterations::event(Event which) {
  constexpr int kGoOn = -1, kStop = 0;
  if (which != endOfIteration) return kGoOn;
  try {
    if (!its_.thrown) its_.work.add(its_.steps_an_iteration);
  } catch (...) {
    its_.thrown = std::current_exception();
  }
  return its_.thrown ? kStop : kGoOn;
}

}  // namespace plimsoll
