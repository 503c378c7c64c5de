#include "policy/solver/whole_program.hpp"

#include "policy/solver/solver_work.hpp"

#include <CbcHeuristic.hpp>
#include <CbcModel.hpp>
#include <CbcStrategy.hpp>
#include <OsiClpSolverInterface.hpp>
#include <algorithm>
#include <cmath>

namespace plimsoll {

namespace {

constexpr double kSumOfCosts = 1e5;
/// The solver's bounds are trusted to this share of them.
constexpr double kTrusted = 1 - 1e-6;
/// How far from a whole number what counts as one may be.
constexpr double kWholeTolerance = 1e-4;

class WholeSolver {
 public:
  WholeSolver(const WholeProgram& program, const Work& work)
      : program_(program), its_{work}, counted_(its_) {
    double sum = 0;
    for (const WholeProgram::Column& column : program.columns)
      sum = std::max(sum, static_cast<double>(column.cost));
    if (sum > 0) scale_ = kSumOfCosts / sum;
    solver_.messageHandler()->setLogLevel(0);
    load();
    solver_.getModelPtr()->passInEventHandler(&counted_);
  }

  WholeSolution run(int nodes, Presolve presolve) {
    CbcModel model(solver_);
    model.setLogLevel(0);
    model.solver()->messageHandler()->setLogLevel(0);
    model.setNumberThreads(0);
    model.setMaximumNodes(nodes);
    CbcStrategyDefault strategy(1, 5, 5);
    strategy.setupPreProcessing(presolve == Presolve::yes ? 1 : 0);
    model.setStrategy(strategy);
    const StoppedNodes stopped(its_);
    model.passInEventHandler(&stopped);
    model.initialSolve();
    rethrow();
    if (model.isInitialSolveProvenPrimalInfeasible()) return {.is_impossible = true};
    model.branchAndBound();
    rethrow();
    return solution_of(model);
  }

 private:
  WholeSolution solution_of(const CbcModel& model) const {
    WholeSolution it{.is_closed = model.status() == 0};
    const double* values = model.bestSolution();
    if (values != nullptr)
      it.columns = std::vector<double>(values, values + program_.columns.size());
    it.is_impossible = it.is_closed && values == nullptr;
    if (it.is_impossible) return it;
    const double bound = it.is_closed ? model.getObjValue() : model.getBestPossibleObjValue();
    it.bound = static_cast<std::int64_t>(std::max(0.0, std::floor(bound * kTrusted / scale_)));
    return it;
  }

  void load() {
    std::vector<CoinBigIndex> begins{0};
    std::vector<int> columns;
    std::vector<double> factors, least, most, costs, high;
    const double none = solver_.getInfinity();
    for (const WholeProgram::Row& row : program_.rows) {
      const auto unit = static_cast<double>(row.unit);
      for (const auto& [column, factor] : row.terms) {
        columns.push_back(column);
        factors.push_back(static_cast<double>(factor) / unit);
      }
      begins.push_back(static_cast<CoinBigIndex>(columns.size()));
      least.push_back(row.least ? static_cast<double>(*row.least) / unit : -none);
      most.push_back(row.most ? static_cast<double>(*row.most) / unit : none);
    }
    for (const WholeProgram::Column& column : program_.columns) {
      high.push_back(column.most);
      costs.push_back(static_cast<double>(column.cost) * scale_);
    }
    const std::vector<double> low(high.size(), 0);
    const CoinPackedMatrix matrix(false, static_cast<int>(high.size()),
                                  static_cast<int>(least.size()),
                                  static_cast<CoinBigIndex>(columns.size()), factors.data(),
                                  columns.data(), begins.data(), nullptr);
    solver_.loadProblem(matrix, low.data(), high.data(), costs.data(), least.data(), most.data());
    for (std::size_t i = 0; i < program_.columns.size(); ++i)
      if (program_.columns[i].is_whole) solver_.setInteger(static_cast<int>(i));
    its_.steps_an_iteration = std::max(1, solver_.getNumElements());
  }

  void rethrow() const {
    if (its_.thrown) std::rethrow_exception(its_.thrown);
  }

  const WholeProgram& program_;
  SolverWork its_;
  const CountedIterations counted_;
  double scale_ = 1;
  OsiClpSolverInterface solver_;
};

/// CBC 2.10 takes some whole columns for implied ones before it solves, and hands back halves.
bool has_whole_columns(const WholeProgram& program, const std::vector<double>& columns) {
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (program.columns[i].is_whole &&
        std::abs(columns[i] - std::round(columns[i])) > kWholeTolerance)
      return false;
  return true;
}

}  // namespace

WholeSolution solve(const WholeProgram& program, int nodes, const Work& work, Presolve presolve) {
  const std::scoped_lock lock(one_solver());
  WholeSolution found = WholeSolver(program, work).run(nodes, presolve);
  if (!found.columns || has_whole_columns(program, *found.columns)) return found;
  if (presolve == Presolve::yes) found = WholeSolver(program, work).run(nodes, Presolve::no);
  if (found.columns && !has_whole_columns(program, *found.columns)) found = {.bound = found.bound};
  return found;
}

}  // namespace plimsoll
