#include "workload/given/compute_graph.hpp"

#include "workload/workload_text.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;
using Catch::Matchers::Contains;

namespace {

const std::string kStep = R"(
workload: step
inputs: {x: 1 B}
graph:
  unread: UNREAD
  operators:
    - {name: a, inputs: [x], time: 5 s, outputs: {p: 2 B}, workspace: 3 B, energy: 7 pJ}
    - {name: b, inputs: [p], time: 3 s, outputs: {q: 4 B}, recompute: false}
    - {name: c, inputs: [p, q], time: 2 s, outputs: {r: 8 B, tail: 16 B}}
    - {name: d, inputs: [r], time: 1 s}
)";

std::string step(const std::string& unread) {
  std::string text = kStep;
  return text.replace(text.find("UNREAD"), 6, unread);
}

std::string compute_graph_error(const std::string& operators, const WorkloadOptions& options = {}) {
  return error_of("workload: g\ninputs: {x: 1 B}\ngraph:\n" + operators, options);
}

}  // namespace

TEST_CASE("a compute graph is what runs, in the order of the file") {
  const Workload graph = build_text(step("free"));
  std::string order;
  for (const Operator& op : graph.operators) order += op.name + " ";
  CHECK(order == "a b c d ");
  CHECK(graph.forwards == 4);
  CHECK(graph.optimizer_begin == 4);
  CHECK_FALSE(graph.is_chain);
  const Operator& a = find_operator(graph, "a");
  CHECK(names(graph, a.reads) == "x");
  CHECK(names(graph, a.kept) == "p");
  CHECK(names(graph, a.bare) == "p");
  CHECK(a.given_time == Time{5'000'000'000'000});
  CHECK(a.given_energy == Energy{7'000'000'000});
  CHECK(a.workspace == Bytes{3});
  CHECK_FALSE(a.runs_once);
  CHECK(find_operator(graph, "b").runs_once);
  CHECK(names(graph, find_operator(graph, "c").kept) == "r tail");
}

TEST_CASE("outputs that nobody reads are freed, or there to the end") {
  const auto lifetime = [](const std::string& unread, const std::string& value) {
    const Workload graph = build_text(step(unread));
    return std::ranges::find(graph.tensors, value, &Tensor::name)->lifetime;
  };
  CHECK(lifetime("free", "tail") == Lifetime::step);
  CHECK(lifetime("retain", "tail") == Lifetime::stays);
  CHECK(lifetime("retain", "r") == Lifetime::step);
  CHECK(lifetime("retain", "x") == Lifetime::input);
}

TEST_CASE("a compute graph comes in an order in which it can run") {
  CHECK_THAT(compute_graph_error("  - {name: b, inputs: [p], time: 1 s}\n"
                                 "  - {name: a, inputs: [x], time: 1 s, outputs: {p: 1 B}}\n"),
             Contains("test.yaml:4:24: error: `b` reads `p`, which `a` makes further down") &&
                 Contains("in an order in which they can run"));
  CHECK_THAT(compute_graph_error("  - {name: a, inputs: [q], time: 1 s, outputs: {p: 1 B}}\n"
                                 "  - {name: b, inputs: [p], time: 1 s, outputs: {q: 1 B}}\n"),
             Contains("form a cycle: `a` needs `b` needs `a`"));
}

TEST_CASE("a compute graph refuses what it cannot mean") {
  CHECK_THAT(compute_graph_error("  - {name: a, inputs: [y], time: 1 s}\n"),
             Contains("4:24: error: unknown value `y`"));
  CHECK_THAT(compute_graph_error("  - {name: a, time: 1 s, outputs: {p: 1 B}}\n"
                                 "  - {name: b, time: 1 s, outputs: {p: 1 B}}\n"),
             Contains("the value `p` is made twice"));
  CHECK_THAT(
      compute_graph_error("  - {name: a, time: 1 s}\n  - {name: b, forward: 1 s, backward: 1 s}\n"),
      Contains("unknown key `forward` in the operator") && Contains("`time`"));
  CHECK_THAT(
      compute_graph_error("  - {name: a, forward: 1 s, backward: 1 s}\n  - {name: b, time: 1 s}\n"),
      Contains("unknown key `time` in the operator"));
  CHECK_THAT(compute_graph_error("  - {name: a, time: 1 s}\n  - {name: b}\n"),
             Contains("an operator without `time`") && Contains("expected `time` or `flops`"));
  CHECK_THAT(compute_graph_error("  - {name: a, time: 1 s, flops: 1 FLOP}\n"),
             Contains("`flops` beside `time`"));
  CHECK(compute_graph_error("  - {name: a, flops: 1 FLOP}\n").empty());
  const std::string one = "  - {name: a, time: 1 s}\n";
  CHECK(compute_graph_error(one).empty());
  CHECK_THAT(compute_graph_error(one, {.optimizer = Optimizer::adam}),
             Contains("a compute graph takes no `optimizer`: its operators are all that runs"));
  WorkloadOptions split;
  split.split_backward = true;
  CHECK_THAT(compute_graph_error(one, split),
             Contains("a compute graph cannot split its backward"));
}
