// Orders of least peak: exact ones of small graphs, beams on graphs of up to 30,000 operators.
//
//   bench_order
//
// Random graphs of operators that each read one to three of the last so many outputs (`span`), with
// outputs of 1 to 100 and workspaces of 0 to 20; and training steps of equal blocks of two branches,
// with the gradients of weights and their updates as operators of their own. Seed 1. Prints the peak
// of the given order, of the best that is found, and the bound, in units; how many states the exact
// method holds; and CPU seconds, with the exponent in the operators.
#include "cpu_clock.hpp"
#include "policy/order/beam_order.hpp"
#include "policy/order/exact_order.hpp"
#include "policy/order/order_bound.hpp"
#include "policy/order/order_state.hpp"
#include "power_law.hpp"
#include "workload/core/workload_builder.hpp"

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace plimsoll;

namespace {

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : engine_(seed) {}
  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::mt19937_64 engine_;
};

class Steps {
 public:
  /// An operator that makes one value of `bytes`.
  TensorId add(std::int64_t bytes, std::vector<TensorId> reads, Phase phase = Phase::forward,
               std::int64_t workspace = 0) {
    const TensorId made = builder_.add({.name = "v", .bytes = Bytes{bytes}});
    OperatorSpec spec{.name = "o", .phase = phase, .workspace = Bytes{workspace}};
    spec.reads = std::move(reads);
    spec.kept = spec.bare = {made};
    builder_.add(std::move(spec));
    return made;
  }

  OrderGraph graph() { return order_graph(builder_.freeze()); }

 private:
  WorkloadBuilder builder_{"bench"};
};

OrderGraph random_graph(std::int64_t operators, std::int64_t span, std::uint64_t seed) {
  Draws draw(seed);
  Steps steps;
  std::vector<TensorId> made;
  for (std::int64_t i = 0; i < operators; ++i) {
    std::vector<TensorId> reads;
    for (std::int64_t read = 0, n = draw(1, 3); read < n && !made.empty(); ++read) {
      const auto all = std::ssize(made);
      const TensorId id =
          made[static_cast<std::size_t>(draw(std::max<std::int64_t>(0, all - span), all - 1))];
      if (std::ranges::find(reads, id) == reads.end()) reads.push_back(id);
    }
    made.push_back(steps.add(draw(1, 100), reads, Phase::forward, draw(0, 20)));
  }
  return steps.graph();
}

/// Each block: two branches of two operators and their sum; backwards, each with the gradient of a
/// weight and its update; all updates at the end.
OrderGraph step_of_blocks(std::int64_t blocks) {
  Draws draw(1);
  Steps steps;
  struct Block {
    TensorId in, left, left_out, right, right_out;
  };
  std::vector<Block> made;
  TensorId x = steps.add(8, {});
  for (std::int64_t b = 0; b < blocks; ++b) {
    Block it{.in = x};
    it.left = steps.add(draw(8, 32), {x});
    it.left_out = steps.add(8, {it.left});
    it.right = steps.add(draw(8, 32), {x});
    it.right_out = steps.add(8, {it.right});
    x = steps.add(8, {it.left_out, it.right_out});
    made.push_back(it);
  }
  TensorId gradient = steps.add(8, {x}, Phase::backward);
  std::vector<TensorId> weights;
  for (std::int64_t b = blocks; b-- > 0;) {
    const Block& it = made[static_cast<std::size_t>(b)];
    const auto branch = [&](TensorId inner) {
      const TensorId inner_gradient = steps.add(16, {gradient, inner}, Phase::backward);
      weights.push_back(steps.add(draw(1, 16), {gradient, inner}, Phase::backward));
      weights.push_back(steps.add(draw(1, 16), {inner_gradient, it.in}, Phase::backward));
      return steps.add(8, {inner_gradient}, Phase::backward);
    };
    const TensorId right = branch(it.right), left = branch(it.left);
    gradient = steps.add(8, {left, right}, Phase::backward);
  }
  for (const TensorId weight : weights) steps.add(0, {weight}, Phase::backward);
  return steps.graph();
}

struct Found {
  std::int64_t given = 0, bound = 0, peak = 0;
  double bound_seconds = 0, seconds = 0;
};

Found beam(const OrderGraph& graph) {
  Found found{.given = peak_of(graph, graph.given)};
  double begin = bench::cpu_seconds();
  found.bound = cut_bound(graph, graph.given, Work());
  found.bound_seconds = bench::cpu_seconds() - begin;
  begin = bench::cpu_seconds();
  const auto order = beam_order(graph, found.bound, found.given, {}, Work());
  found.seconds = bench::cpu_seconds() - begin;
  found.peak = order ? peak_of(graph, *order) : found.given;
  return found;
}

void exact(std::int64_t operators) {
  constexpr int kGraphs = 200;
  std::size_t most_states = 0;
  double seconds = 0, most_seconds = 0;
  int met = 0, proven = 0;
  for (std::uint64_t seed = 1; seed <= kGraphs; ++seed) {
    const OrderGraph graph = random_graph(operators, 12, seed);
    const Found found = beam(graph);
    const double begin = bench::cpu_seconds();
    const ExactOrder best = exact_order(graph, found.bound, found.peak, kMostOrderStates, Work());
    const double taken = bench::cpu_seconds() - begin;
    seconds += taken;
    most_seconds = std::max(most_seconds, taken);
    most_states = std::max(most_states, best.states);
    if (best.is_proven) ++proven;
    if (best.is_proven && best.order.empty()) ++met;
  }
  std::printf(
      "exact  %3lld operators  %3d of %d proven, the beam met %3d; %8zu states, %6.3f s; "
      "%6.3f s on average\n",
      static_cast<long long>(operators), proven, kGraphs, met, most_states, most_seconds,
      seconds / kGraphs);
}

void scale(const char* name, const std::vector<std::int64_t>& sizes,
           OrderGraph (*graph_of)(std::int64_t)) {
  std::vector<std::pair<double, double>> points;
  for (const std::int64_t size : sizes) {
    const OrderGraph graph = graph_of(size);
    const Found found = beam(graph);
    std::printf("%-7s %6zu operators  given %7lld  found %7lld  bound %7lld (%5.2f s)  %6.2f s\n",
                name, graph.nodes(), static_cast<long long>(found.given),
                static_cast<long long>(found.peak), static_cast<long long>(found.bound),
                found.bound_seconds, found.seconds);
    std::fflush(stdout);
    points.emplace_back(static_cast<double>(graph.nodes()), found.seconds + found.bound_seconds);
  }
  std::printf("%-7s exponent in the operators: %.2f\n", name, bench::exponent(points));
}

}  // namespace

int main() {
  for (const std::int64_t operators : {15, 20, 25, 30, 40, 60}) exact(operators);
  scale("blocks", {20, 60, 180, 540, 1620}, step_of_blocks);
  scale("narrow", {300, 1000, 3000, 10000, 30000},
        [](std::int64_t n) { return random_graph(n, 30, 1); });
  scale("wide", {300, 1000, 3000, 10000, 30000},
        [](std::int64_t n) { return random_graph(n, n / 10, 1); });
}
