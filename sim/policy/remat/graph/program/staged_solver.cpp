#include "policy/remat/graph/program/staged_solver.hpp"

#include "policy/solver/solver_work.hpp"

#include <CbcModel.hpp>
#include <CglFlowCover.hpp>
#include <CglGomory.hpp>
#include <CglKnapsackCover.hpp>
#include <CglMixedIntegerRounding2.hpp>
#include <CglProbing.hpp>
#include <CglTwomir.hpp>
#include <CglZeroHalf.hpp>
#include <OsiClpSolverInterface.hpp>
#include <algorithm>
#include <cmath>
#include <numeric>

namespace plimsoll {

namespace {

/// The solver's times count as right to this share of them, and of the longest rerun.
constexpr double kTrust = 1e-6, kTrustAtZero = 1e-7;
/// The root of the tree, and no node but where that helps much.
constexpr int kCutsAtRoot = -98;
/// Of the simplex algorithm, to compare two branches; and variables that are compared.
constexpr int kTrialIterations = 100, kTrials = 5, kTrialsBeforeTrust = 2;
/// Of cuts before the tree, and how often they may leave a smaller program.
constexpr int kCutRounds = 6, kPrograms = 4;

/// Times of reruns as the solver sees them: the longest is one.
class TimeScale {
 public:
  explicit TimeScale(const StagedProgram& program) {
    for (const StagedProgram::Column& column : program.columns()) {
      unit_ = std::max(unit_, column.time);
      grid_ = std::gcd(grid_, column.time);
    }
    grid_ = std::max<std::int64_t>(1, grid_);
  }

  [[nodiscard]] double in_units(std::int64_t time) const {
    return static_cast<double>(time) / static_cast<double>(unit_);
  }
  /// The least time of reruns that the solver's bound leaves.
  [[nodiscard]] std::int64_t trusted(double bound) const {
    const double least = (bound * (1 - kTrust) - kTrustAtZero) * static_cast<double>(unit_);
    if (!(least > 0)) return 0;
    return static_cast<std::int64_t>(std::ceil(least / static_cast<double>(grid_))) * grid_;
  }
  /// By how much a plan has to be faster than one of `time` to be of interest.
  [[nodiscard]] double step_below(double time) const {
    return std::max(in_units(grid_), time * kTrust + kTrustAtZero) / 2;
  }

 private:
  std::int64_t unit_ = 1, grid_ = 0;
};

/// What cuts the relaxation.
struct Cuts {
  Cuts() {
    probing.setUsingObjective(1);
    probing.setMaxPass(1);
    probing.setMaxPassRoot(1);
    probing.setMaxProbe(10);
    probing.setMaxProbeRoot(50);
    probing.setMaxLook(10);
    probing.setMaxLookRoot(50);
    probing.setRowCuts(3);
    gomory.setLimitAtRoot(512);
    gomory.setLimit(50);
  }

  [[nodiscard]] std::vector<CglCutGenerator*> all() {
    return {&knapsack, &gomory, &rounding, &half, &probing, &two_steps, &flow};
  }

  CglKnapsackCover knapsack;
  CglGomory gomory;
  CglMixedIntegerRounding2 rounding;
  CglZeroHalf half;
  CglProbing probing;
  CglTwomir two_steps;
  CglFlowCover flow;
};

/// A program in the hands of the solvers.
class StagedSolver {
 public:
  StagedSolver(const StagedProgram& program, const TimeScale& scale, const Work& work)
      : program_(program), scale_(scale), its_{work}, counted_(its_) {
    solver_.messageHandler()->setLogLevel(0);
    load();
    solver_.getModelPtr()->passInEventHandler(&counted_);
    solver_.setIntParam(OsiMaxNumIterationHotStart, kTrialIterations);
  }

  /// False where there is no solution.
  bool relax() {
    solver_.initialSolve();
    rethrow();
    return !solver_.isProvenPrimalInfeasible();
  }
  [[nodiscard]] double value() const { return solver_.getObjValue(); }
  /// Cuts the relaxation, some rounds long, while it is below `cutoff`. False where no solution is
  /// left.
  bool tighten(double cutoff) {
    Cuts cuts;
    for (int round = 0; round < kCutRounds && value() < cutoff; ++round) {
      OsiCuts found;
      for (CglCutGenerator* cut : cuts.all()) cut->generateCuts(solver_, found);
      if (found.sizeCuts() == 0) break;
      solver_.applyCuts(found);
      solver_.resolve();
      rethrow();
      if (solver_.isProvenPrimalInfeasible()) return false;
    }
    return true;
  }
  [[nodiscard]] std::vector<double> columns() const {
    const double* values = solver_.getColSolution();
    return {values, values + solver_.getNumCols()};
  }

  /// Those that a solution may have that is at most `gap` above the relaxation.
  [[nodiscard]] std::vector<Rerun> reruns_within(double gap) const {
    const double* costs = solver_.getReducedCost();
    std::vector<Rerun> reruns;
    for (const auto& [rerun, column] : program_.rerun_columns())
      if (costs[column] <= gap + kTrustAtZero) reruns.push_back(rerun);
    std::ranges::sort(reruns);
    return reruns;
  }

  /// A solution of less than `cutoff`, if there is one.
  struct Branched {
    bool is_closed = false;
    double bound = 0;  ///< of what is better than the cutoff
    std::optional<std::vector<Rerun>> reruns = {};
  };
  Branched branch(std::optional<double> cutoff, int nodes) {
    Branched root = branch_once(cutoff, 0);
    if (root.is_closed || nodes == 0) return root;
    // Given the reruns, the rest is whole where it is least: no need to branch on it.
    for (std::size_t i = 0; i < program_.columns().size(); ++i)
      if (!program_.columns()[i].is_branched) solver_.setContinuous(static_cast<int>(i));
    Branched tree = branch_once(cutoff, nodes);
    if (tree.is_closed) return tree;
    tree.bound = std::max(tree.bound, root.bound);
    if (!tree.reruns) tree.reruns = root.reruns;
    return tree;
  }

 private:
  Branched branch_once(std::optional<double> cutoff, int nodes) {
    CbcModel model(solver_);
    model.setLogLevel(0);
    model.solver()->messageHandler()->setLogLevel(0);
    model.setNumberThreads(0);
    model.setMaximumNodes(nodes);
    model.setNumberStrong(kTrials);
    model.setNumberBeforeTrust(kTrialsBeforeTrust);
    model.setCutoffIncrement(scale_.step_below(cutoff.value_or(0)));
    if (cutoff) model.setCutoff(*cutoff);
    Cuts cuts;
    for (CglCutGenerator* cut : cuts.all()) model.addCutGenerator(cut, kCutsAtRoot, "cut");
    const StoppedNodes stopped(its_);
    model.passInEventHandler(&stopped);
    model.branchAndBound();
    rethrow();
    Branched it{.is_closed = model.status() == 0};
    if (const double* values = model.bestSolution()) it.reruns = reruns_of(values);
    it.bound = it.is_closed && it.reruns ? model.getObjValue() : model.getBestPossibleObjValue();
    return it;
  }

  void load() {
    std::vector<CoinBigIndex> begins{0};
    std::vector<int> columns;
    std::vector<double> factors, least, most, costs, low, high;
    for (const StagedProgram::Row& row : program_.rows()) {
      const auto unit = static_cast<double>(row.is_of_bytes ? program_.byte_unit() : row.unit);
      for (const auto& [column, factor] : row.terms) {
        columns.push_back(column);
        factors.push_back(static_cast<double>(factor) / unit);
      }
      begins.push_back(static_cast<CoinBigIndex>(columns.size()));
      const double none = solver_.getInfinity();
      least.push_back(row.least ? static_cast<double>(*row.least) / unit : -none);
      most.push_back(row.most ? static_cast<double>(*row.most) / unit : none);
    }
    for (const StagedProgram::Column& column : program_.columns()) {
      low.push_back(0);
      high.push_back(column.most);
      costs.push_back(scale_.in_units(column.time));
    }
    const CoinPackedMatrix matrix(false, static_cast<int>(low.size()),
                                  static_cast<int>(least.size()),
                                  static_cast<CoinBigIndex>(columns.size()), factors.data(),
                                  columns.data(), begins.data(), nullptr);
    solver_.loadProblem(matrix, low.data(), high.data(), costs.data(), least.data(), most.data());
    for (std::size_t i = 0; i < program_.columns().size(); ++i)
      if (program_.columns()[i].is_whole) solver_.setInteger(static_cast<int>(i));
    its_.steps_an_iteration = std::max(1, solver_.getNumElements());
  }

  void rethrow() const {
    if (its_.thrown) std::rethrow_exception(its_.thrown);
  }

  [[nodiscard]] std::vector<Rerun> reruns_of(const double* values) const {
    std::vector<Rerun> reruns;
    for (const auto& [rerun, column] : program_.rerun_columns())
      if (values[column] > 0.5) reruns.push_back(rerun);
    return reruns;
  }

  const StagedProgram& program_;
  const TimeScale& scale_;
  SolverWork its_;
  const CountedIterations counted_;
  OsiClpSolverInterface solver_;
};

}  // namespace

StagedRelaxation relax_staged_program(const StagedProgram& program, const Work& work) {
  if (program.is_impossible()) return {.is_impossible = true};
  const std::scoped_lock lock(one_solver());
  const TimeScale scale(program);
  StagedSolver solver(program, scale, work);
  if (!solver.relax()) return {.is_impossible = true};
  return {.bound = scale.trusted(solver.value()), .columns = solver.columns()};
}

namespace {

/// From a program to smaller ones, and the branch and bound on the last.
class StagedSearch {
 public:
  StagedSearch(const OperatorGraph& graph, const RerunGroups& groups, std::int64_t room,
               std::optional<std::int64_t> known, const Work& work, const StagedCopies* copies)
      : graph_(graph),
        groups_(groups),
        room_(room),
        known_(known),
        work_(work),
        copies_(copies),
        program_(graph, groups, room, {}, copies),
        scale_(program_) {
    if (!known) return;
    const double time = scale_.in_units(*known);
    cutoff_ = time - scale_.step_below(time);
  }

  StagedOptimum run(int nodes) {
    if (program_.is_impossible()) return nothing_better();
    solver_.emplace(program_, scale_, work_);
    if (!solver_->relax()) return {.is_impossible = true};
    least_ = scale_.trusted(solver_->value());
    if (cutoff_ && !shrink()) return nothing_better();
    const StagedSolver::Branched found = solver_->branch(cutoff_, nodes);
    if (found.is_closed && !found.reruns) return nothing_better();
    const double bound = cutoff_ ? std::min(found.bound, *cutoff_) : found.bound;
    return {.is_closed = found.is_closed,
            .bound = std::max(least_, scale_.trusted(bound)),
            .reruns = found.reruns};
  }

 private:
  [[nodiscard]] StagedOptimum nothing_better() const {
    if (!known_) return {.is_impossible = true};
    return {.is_closed = true, .bound = scale_.trusted(scale_.in_units(*known_))};
  }

  /// Leaves out reruns that cost too much, and cuts. False where nothing is left below the cutoff.
  bool shrink() {
    for (int program = 0; program < kPrograms; ++program) {
      if (solver_->value() >= *cutoff_) return false;
      const std::size_t before = program_.rerun_columns().size();
      const std::vector<Rerun> only = solver_->reruns_within(*cutoff_ - solver_->value());
      if (only.size() * 20 > before * 19 && program > 0) break;
      solver_.reset();
      program_ = StagedProgram(graph_, groups_, room_, only, copies_);
      if (program_.is_impossible()) return false;
      solver_.emplace(program_, scale_, work_);
      if (!solver_->relax()) return false;
      if (!solver_->tighten(*cutoff_)) return false;
      least_ = std::max(least_, scale_.trusted(std::min(solver_->value(), *cutoff_)));
    }
    return solver_->value() < *cutoff_;
  }

  const OperatorGraph& graph_;
  const RerunGroups& groups_;
  const std::int64_t room_;
  const std::optional<std::int64_t> known_;
  const Work& work_;
  const StagedCopies* const copies_;
  StagedProgram program_;
  const TimeScale scale_;
  std::optional<double> cutoff_;
  std::optional<StagedSolver> solver_;
  std::int64_t least_ = 0;  ///< ps of reruns
};

}  // namespace

StagedOptimum solve_staged_program(const OperatorGraph& graph, const RerunGroups& groups,
                                   std::int64_t room, std::optional<std::int64_t> known, int nodes,
                                   const Work& work, const StagedCopies* copies) {
  const std::scoped_lock lock(one_solver());
  return StagedSearch(graph, groups, room, known, work, copies).run(nodes);
}

}  // namespace plimsoll
