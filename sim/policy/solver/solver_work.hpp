/// Runs of the linear and integer programming libraries Clp and CBC: their work is counted, and one
/// runs at a time.
#pragma once

#include "base/work.hpp"

#include <CbcEventHandler.hpp>
#include <ClpEventHandler.hpp>
#include <cstdint>
#include <exception>
#include <mutex>

namespace plimsoll {

/// CoinUtils and Clp count in variables of the whole process: hold this during a solve.
[[nodiscard]] std::mutex& one_solver();

/// The work of a solver: counted in every iteration of its simplex algorithm, of all its copies.
struct SolverWork {
  Work work;
  std::int64_t steps_an_iteration = 1;
  std::exception_ptr thrown = {};  ///< by the meter or its watcher: it must not cross the solver
};

/// Counts, and stops a linear program where counting throws. Rethrow SolverWork::thrown after it.
class CountedIterations : public ClpEventHandler {
 public:
  explicit CountedIterations(SolverWork& its) : its_(its) {}

  [[nodiscard]] ClpEventHandler* clone() const override { return new CountedIterations(*this); }
  int event(Event which) override;

 private:
  SolverWork& its_;
};

/// Ends a branch and bound where its linear programs were stopped.
class StoppedNodes : public CbcEventHandler {
 public:
  explicit StoppedNodes(const SolverWork& its) : its_(its) {}

  [[nodiscard]] CbcEventHandler* clone() const override { return new StoppedNodes(*this); }
  CbcAction event(CbcEvent) override { return its_.thrown ? stop : noAction; }

 private:
  const SolverWork& its_;
};

}  // namespace plimsoll
