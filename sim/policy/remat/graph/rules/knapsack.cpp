#include "policy/remat/graph/rules/knapsack.hpp"

#include "policy/solver/solver_work.hpp"

#include <CbcModel.hpp>
#include <ClpSimplex.hpp>
#include <CoinPackedMatrix.hpp>
#include <OsiClpSolverInterface.hpp>
#include <algorithm>
#include <cmath>
#include <numeric>

namespace plimsoll {

namespace {

constexpr int kMostKnapsackNodes = 2000;

/// The dynamic program, in the memory of two rows.
class HalvedKnapsack {
 public:
  HalvedKnapsack(std::span<const WeighedItem> items, const Work& work)
      : items_(items), work_(work), is_taken_(items.size(), false) {
    for (const WeighedItem& item : items) quanta_.push_back(quanta_of(item.weight));
  }

  std::vector<bool> solve(std::int64_t capacity) {
    if (!items_.empty()) choose(0, items_.size(), capacity);
    return std::move(is_taken_);
  }

 private:
  void choose(std::size_t begin, std::size_t end, std::int64_t capacity) {
    if (end - begin == 1) {
      is_taken_[begin] = quanta_[begin] <= capacity;
      return;
    }
    const std::size_t middle = begin + (end - begin) / 2;
    const std::int64_t left = best_split(row(begin, middle, capacity), row(middle, end, capacity));
    choose(begin, middle, left);
    choose(middle, end, capacity - left);
  }

  /// The greatest value of these items within each capacity.
  [[nodiscard]] std::vector<std::int64_t> row(std::size_t begin, std::size_t end,
                                              std::int64_t capacity) const {
    std::vector<std::int64_t> best(static_cast<std::size_t>(capacity) + 1, 0);
    work_.add((end - begin) * best.size());
    for (std::size_t i = begin; i < end; ++i) {
      const auto weight = static_cast<std::size_t>(quanta_[i]);
      for (std::size_t c = best.size(); c-- > weight;)
        best[c] = std::max(best[c], best[c - weight] + items_[i].value);
    }
    return best;
  }

  /// What the first of two rows gets of the capacity, so that both together are worth most.
  static std::int64_t best_split(const std::vector<std::int64_t>& first,
                                 const std::vector<std::int64_t>& second) {
    std::size_t best = 0;
    const std::size_t capacity = first.size() - 1;
    const auto value = [&](std::size_t c) { return first[c] + second[capacity - c]; };
    for (std::size_t c = 1; c <= capacity; ++c)
      if (value(c) > value(best)) best = c;
    return static_cast<std::int64_t>(best);
  }

  const std::span<const WeighedItem> items_;
  const Work& work_;
  std::vector<std::int64_t> quanta_;
  std::vector<bool> is_taken_;
};

std::vector<bool> greedy_knapsack(std::span<const WeighedItem> items, double capacity) {
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto is_worth_more = [&](std::size_t a, std::size_t b) {
    return static_cast<double>(items[a].value) * items[b].weight >
           static_cast<double>(items[b].value) * items[a].weight;
  };
  std::ranges::stable_sort(order, is_worth_more);
  std::vector<bool> is_taken(items.size(), false);
  for (const std::size_t i : order) {
    if (items[i].weight > capacity) continue;
    is_taken[i] = true;
    capacity -= items[i].weight;
  }
  return is_taken;
}

/// Nothing where the solver has no answer.
std::vector<bool> solved_by_branching(std::span<const WeighedItem> items, double capacity,
                                      const Work& work) {
  const std::scoped_lock lock(one_solver());
  const auto count = static_cast<int>(items.size());
  const auto most = static_cast<double>(std::ranges::max(items, {}, &WeighedItem::value).value);
  CoinPackedMatrix rows(false, 0, 0);
  rows.setDimensions(0, count);
  std::vector<int> columns(items.size());
  std::iota(columns.begin(), columns.end(), 0);
  std::vector<double> weights, objective, low(items.size(), 0), high(items.size(), 1);
  for (const WeighedItem& item : items) {
    weights.push_back(item.weight);
    objective.push_back(-static_cast<double>(item.value) / most);
  }
  rows.appendRow(count, columns.data(), weights.data());
  const double least = -COIN_DBL_MAX;
  OsiClpSolverInterface relaxed;
  relaxed.messageHandler()->setLogLevel(0);
  relaxed.loadProblem(rows, low.data(), high.data(), objective.data(), &least, &capacity);
  for (int i = 0; i < count; ++i) relaxed.setInteger(i);
  SolverWork its{work, count};
  const CountedIterations counted(its);
  const StoppedNodes stopped(its);
  relaxed.getModelPtr()->passInEventHandler(&counted);
  CbcModel model(relaxed);
  model.setLogLevel(0);
  model.setNumberThreads(0);
  model.setMaximumNodes(kMostKnapsackNodes);
  model.passInEventHandler(&stopped);
  model.branchAndBound();
  if (its.thrown) std::rethrow_exception(its.thrown);
  std::vector<bool> is_taken;
  if (const double* best = model.bestSolution())
    for (int i = 0; i < count; ++i) is_taken.push_back(best[i] > 0.5);
  return is_taken;
}

std::pair<double, std::int64_t> sums_of(std::span<const WeighedItem> items,
                                        const std::vector<bool>& is_taken) {
  double weight = 0;
  std::int64_t value = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (!is_taken[i]) continue;
    weight += items[i].weight;
    value += items[i].value;
  }
  return {weight, value};
}

/// The better of what the solver finds, whose numbers are not exact, and the greedy choice.
std::vector<bool> knapsack_by_ilp(std::span<const WeighedItem> items, double capacity,
                                  const Work& work) {
  std::vector<bool> greedy = greedy_knapsack(items, capacity);
  if (items.empty()) return greedy;
  std::vector<bool> solved = solved_by_branching(items, capacity, work);
  if (solved.empty()) return greedy;
  const auto [weight, value] = sums_of(items, solved);
  return weight <= capacity && value >= sums_of(items, greedy).second ? solved : greedy;
}

}  // namespace

std::int64_t quanta_of(double weight) {
  return std::llround(weight * static_cast<double>(kKnapsackQuanta));
}

std::vector<bool> knapsack(std::span<const WeighedItem> items, double capacity,
                           KnapsackSolver solver, const Work& work) {
  switch (solver) {
    case KnapsackSolver::dp:
      return HalvedKnapsack(items, work).solve(quanta_of(capacity));
    case KnapsackSolver::greedy:
      return greedy_knapsack(items, capacity);
    case KnapsackSolver::ilp:
      return knapsack_by_ilp(items, capacity, work);
  }
  return {};
}

}  // namespace plimsoll
