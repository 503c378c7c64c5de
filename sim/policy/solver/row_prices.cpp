#include "policy/solver/row_prices.hpp"

#include "policy/solver/solver_work.hpp"

namespace plimsoll {

std::vector<double> row_prices(const std::function<void(OsiClpSolverInterface&)>& load,
                               const Work& work) {
  const std::scoped_lock lock(one_solver());
  OsiClpSolverInterface program;
  program.messageHandler()->setLogLevel(0);
  load(program);
  SolverWork its{work, static_cast<std::int64_t>(program.getNumElements())};
  const CountedIterations counted(its);
  program.getModelPtr()->passInEventHandler(&counted);
  program.initialSolve();
  if (its.thrown) std::rethrow_exception(its.thrown);
  const double* prices = program.getRowPrice();
  return {prices, prices + program.getNumRows()};
}

}  // namespace plimsoll
