#include "policy/pipeline/periodic/modular_ilp.hpp"

#include "policy/solver/solver_work.hpp"

#include <CbcModel.hpp>
#include <ClpSimplex.hpp>
#include <CoinPackedMatrix.hpp>
#include <OsiClpSolverInterface.hpp>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace plimsoll {

namespace {

/// The solver's numbers count as right to one part in so many.
constexpr std::int64_t kTrust = 1'000'000;
/// Bytes in units of which what is free holds about so many.
constexpr std::int64_t kRoomUnits = 1'000'000;
constexpr double kNoLimit = std::numeric_limits<double>::max();

/// Columns: the starts, then q, then the counts.
class Program {
 public:
  Program(const ModularTasks& tasks, Time bound)
      : tasks_(tasks), unit_(static_cast<double>(bound.count())), tasks_count_(size(tasks.lasts)) {
    const double horizon = 2.0 * tasks_count_;
    for (int task = 0; task < tasks_count_; ++task) add_column(0, task == 0 ? 0 : horizon);
    add_column(0, 1);
    for (const auto& [first, second] : tasks.apart) add_column(0, 2.0 * (second - first));
    for (const auto& [first, second] : tasks.spans) add_column(1, 2.0 * (second - first) + 2);
    add_chain();
    add_windows();
    add_triangles();
    for (const ModularTasks::Room& room : tasks.rooms) add_room(room);
  }

  struct Outcome {
    std::optional<PeriodCounts> counts;
    double most_q = 1;
  };

  Outcome solve(const PeriodCounts& first, Time period, int nodes) const {
    const std::scoped_lock lock(one_solver());
    OsiClpSolverInterface relaxed;
    relaxed.messageHandler()->setLogLevel(0);
    std::vector<double> objective(low_.size());
    objective[static_cast<std::size_t>(q())] = -1;
    relaxed.loadProblem(rows_, low_.data(), high_.data(), objective.data(), least_.data(),
                        most_.data());
    relaxed.setDblParam(OsiPrimalTolerance, 1e-9);
    for (std::size_t i = 0; i < tasks_.counts(); ++i) relaxed.setInteger(count(i));
    SolverWork its{tasks_.work, relaxed.getNumElements()};
    const CountedIterations counted(its);
    const StoppedNodes stopped(its);
    relaxed.getModelPtr()->passInEventHandler(&counted);
    CbcModel model(relaxed);
    model.setLogLevel(0);
    model.setNumberThreads(0);
    model.setMaximumNodes(nodes);
    model.setCutoffIncrement(1e-9);
    model.setIntegerTolerance(1e-7);
    const std::vector<double> known = columns_of(first, period);
    model.setBestSolution(known.data(), size(known), -known[static_cast<std::size_t>(q())], true);
    model.passInEventHandler(&stopped);
    model.branchAndBound();
    if (its.thrown) std::rethrow_exception(its.thrown);
    return outcome(model);
  }

 private:
  template <class T>
  static int size(const std::vector<T>& list) {
    return static_cast<int>(list.size());
  }
  int q() const { return tasks_count_; }
  int count(std::size_t i) const { return tasks_count_ + 1 + static_cast<int>(i); }
  double lasts(std::uint32_t task) const {
    return static_cast<double>(tasks_.lasts[task].count()) / unit_;
  }

  void add_column(double low, double high) {
    low_.push_back(low);
    high_.push_back(high);
  }

  void add_row(const std::map<int, double>& row, double least, double most) {
    std::vector<int> columns;
    std::vector<double> values;
    for (const auto& [column, value] : row) {
      columns.push_back(column);
      values.push_back(value);
    }
    rows_.setDimensions(-1, std::max(rows_.getNumCols(), size(low_)));
    rows_.appendRow(size(columns), columns.data(), values.data());
    least_.push_back(least);
    most_.push_back(most);
  }

  static int start(std::uint32_t task) { return static_cast<int>(task); }

  void add_chain() {
    for (std::uint32_t task = 1; task < tasks_.lasts.size(); ++task)
      add_row({{start(task), 1}, {start(task - 1), -1}, {q(), -lasts(task - 1)}}, 0, 1);
  }

  void add_windows() {
    for (std::size_t i = 0; i < tasks_.apart.size(); ++i) {
      const auto [a, b] = tasks_.apart[i];
      add_row({{start(b), 1}, {start(a), -1}, {count(i), -1}, {q(), -lasts(a)}}, 0, kNoLimit);
      add_row({{start(b), 1}, {start(a), -1}, {count(i), -1}, {q(), lasts(b)}}, -kNoLimit, 1);
    }
    for (std::size_t i = 0; i < tasks_.spans.size(); ++i) {
      const auto [a, b] = tasks_.spans[i];
      add_row(
          {{start(b), 1}, {start(a), -1}, {count(tasks_.apart.size() + i), -1}, {q(), lasts(b)}},
          -kNoLimit, 0);
    }
  }

  void add_triangles() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> of_pair;
    for (std::size_t i = 0; i < tasks_.apart.size(); ++i)
      of_pair[{tasks_.apart[i].first, tasks_.apart[i].second}] = count(i);
    for (const auto& [ab, first] : of_pair)
      for (auto bc = of_pair.lower_bound({ab.second, 0});
           bc != of_pair.end() && bc->first.first == ab.second; ++bc)
        if (const auto ac = of_pair.find({ab.first, bc->first.second}); ac != of_pair.end())
          add_row({{ac->second, 1}, {first, -1}, {bc->second, -1}}, 0, 1);
  }

  /// Whole units, rounded so that whatever fits does so here.
  void add_room(const ModularTasks::Room& room) {
    if (room.limit.is_unlimited()) return;
    const std::int64_t free = (room.limit - room.fixed).count();
    const std::int64_t unit = std::max<std::int64_t>(1, free / kRoomUnits);
    std::int64_t most = free / unit;
    std::map<int, double> row;
    for (const ModularTasks::Kept& kept : room.kept) {
      const std::int64_t each = kept.each.count() / unit;
      most -= each * kept.alive;
      for (const std::uint32_t i : kept.plus) row[count(i)] += static_cast<double>(each);
      for (const std::uint32_t i : kept.minus) row[count(i)] -= static_cast<double>(each);
    }
    add_row(row, -kNoLimit, static_cast<double>(most));
  }

  std::vector<double> columns_of(const PeriodCounts& counts, Time period) const {
    const auto starts = *earliest_starts(tasks_, counts, period);
    const auto of_period = static_cast<double>(period.count());
    std::vector<double> columns;
    for (const Time at : starts) columns.push_back(static_cast<double>(at.count()) / of_period);
    columns.push_back(unit_ / of_period);
    for (const std::int64_t n : counts) columns.push_back(static_cast<double>(n));
    return columns;
  }

  Outcome outcome(const CbcModel& model) const {
    Outcome it;
    it.most_q = std::min(1.0, -model.getBestPossibleObjValue());
    const double* best = model.bestSolution();
    if (best == nullptr) return it;
    it.counts.emplace();
    for (std::size_t i = 0; i < tasks_.counts(); ++i)
      it.counts->push_back(std::llround(best[count(i)]));
    return it;
  }

  const ModularTasks& tasks_;
  const double unit_;
  const int tasks_count_;
  CoinPackedMatrix rows_{false, 0, 0};
  std::vector<double> low_, high_;    ///< of columns
  std::vector<double> least_, most_;  ///< of rows
};

/// Whether no period lies in [least, period - 1 ps]. Every period is a sum of times over a count:
/// of a circle, which passes every task once, and no pair of tasks is two periods a task apart.
bool alone(const ModularTasks& tasks, Time least, Time period) {
  std::int64_t divisor = 0;
  for (const Time last : tasks.lasts) divisor = std::gcd(divisor, last.count());
  const auto most = static_cast<std::int64_t>(2 * tasks.lasts.size() * tasks.lasts.size());
  if (period.count() > std::numeric_limits<std::int64_t>::max() / most) return false;
  for (std::int64_t count = 1; count <= most; ++count)
    if ((period.count() - 1) * count / divisor * divisor >= least.count() * count) return false;
  return true;
}

/// The least whole period that the solver's bound leaves when it is trusted no further than that.
Time trusted(double most_q, Time bound) {
  const auto parts = static_cast<std::int64_t>(std::ceil(most_q * static_cast<double>(kTrust)));
  const std::int64_t share = std::max<std::int64_t>(1, parts + 1);
  const std::int64_t whole = bound.count() / share, rest = bound.count() % share;
  return Time{whole * kTrust + (rest * kTrust + share - 1) / share};
}

}  // namespace

LeastPeriod least_period_by_ilp(const ModularTasks& tasks, const PeriodCounts& first, Time bound,
                                int nodes) {
  LeastPeriod answer{first, *least_period(tasks, first, bound), bound};
  if (answer.period == bound) return answer;
  const Program::Outcome outcome = Program(tasks, bound).solve(first, answer.period, nodes);
  if (outcome.counts && fits(tasks, *outcome.counts))
    if (const auto period = least_period(tasks, *outcome.counts, bound);
        period && *period < answer.period)
      answer = {*outcome.counts, *period, bound};
  answer.bound = std::clamp(trusted(outcome.most_q, bound), bound, answer.period);
  if (alone(tasks, answer.bound, answer.period)) answer.bound = answer.period;
  return answer;
}

}  // namespace plimsoll
