#include "workload/given/graph_workload.hpp"

#include "workload/workload_text.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;
using Catch::Matchers::Contains;

namespace {

// x -> fork -> (left, right) -> join, and a second end that nothing reads.
const std::string kDiamond = R"(
workload: diamond
inputs: {x: 1 B}
graph:
  - {name: join, inputs: [l, r], outputs: {y: 16 B}, forward: 4 s, backward: 4 s, saved: 20 B}
  - {name: fork, inputs: [x], outputs: {a: 2 B}, forward: 1 s, backward: 1 s, parameters: 64 B}
  - {name: left, inputs: [a], outputs: {l: 4 B, tail: 32 B}, forward: 2 s, backward: 2 s}
  - {name: right, inputs: [a], outputs: {r: 8 B}, forward: 3 s, backward: 3 s}
)";

std::string graph_error(const std::string& operators) {
  return error_of("workload: g\ninputs: {x: 1 B}\ngraph:\n" + operators);
}

}  // namespace

TEST_CASE("a graph runs in an order that its values allow, backwards in reverse") {
  const Workload graph = build_text(kDiamond);
  std::string order;
  for (const Operator& op : graph.operators) order += op.name + " ";
  CHECK(order ==
        "fork.forward left.forward right.forward join.forward "
        "join.backward right.backward left.backward fork.backward ");
  CHECK_FALSE(graph.is_chain);
  // 20 as given; the others keep the sum of their outputs: 2 + (4 + 32) + 8.
  CHECK(graph.saved_bytes == Bytes{66});
}

TEST_CASE("backwards make the gradients of their inputs, sinks also their own") {
  const Workload graph = build_text(kDiamond);
  const Operator& join = find_operator(graph, "join.backward");
  CHECK(names(graph, join.reads) == "join.saved l r");
  CHECK(names(graph, join.kept) == "y.gradient l.gradient r.gradient");
  const Operator& right = find_operator(graph, "right.backward");
  CHECK(names(graph, right.reads) == "r.gradient right.saved a");
  CHECK(names(graph, right.kept) == "a.gradient");
  // `tail` is read by nobody; a.gradient is there already and added to.
  const Operator& left = find_operator(graph, "left.backward");
  CHECK(names(graph, left.reads) == "l.gradient left.saved a");
  CHECK(names(graph, left.kept) == "tail.gradient a.gradient");
  const Operator& fork = find_operator(graph, "fork.backward");
  CHECK(names(graph, fork.kept) == "x.gradient fork.parameters.gradient");
  CHECK(graph[graph.list(fork.kept)[0]].lifetime == Lifetime::stays);
}

TEST_CASE("a graph may stand under `operators`") {
  CHECK(build_text("workload: g\ngraph:\n  operators:\n"
                   "    - {name: o, outputs: {y: 1 B}, forward: 1 s, backward: 1 s}\n")
            .forwards == 1);
}

TEST_CASE("graphs that cannot be are refused with their place") {
  CHECK_THAT(
      graph_error("  - {name: f, inputs: [b], outputs: {aa: 1 B}, forward: 1 s, backward: 1 s}\n"
                  "  - {name: g, inputs: [aa], outputs: {b: 1 B}, forward: 1 s, backward: 1 s}\n"),
      Contains("test.yaml:4:5") && Contains("`f` needs `g` needs `f`"));
  CHECK_THAT(
      graph_error("  - {name: f, inputs: [x], outputs: {mean: 1 B}, forward: 1 s, backward: 1 s}\n"
                  "  - {name: g, inputs: [maen], forward: 1 s, backward: 1 s}\n"),
      Contains("test.yaml:5:24") && Contains("unknown value `maen`") &&
          Contains("did you mean `mean`?"));
  CHECK_THAT(graph_error("  - {name: f, outputs: {x: 1 B}, forward: 1 s, backward: 1 s}\n"),
             Contains("test.yaml:4:25") && Contains("`x` is made twice"));
  CHECK_THAT(
      graph_error("  - {name: f, outputs: {y: 2 B}, saved: 1 B, forward: 1 s, backward: 1 s}\n"),
      Contains("less than the outputs"));
  CHECK_THAT(graph_error("  - {name: f, inputs: [x, x], forward: 1 s, backward: 1 s}\n"),
             Contains("`x` is named twice"));
  CHECK_THAT(graph_error("  - {name: f, forward: 1 s, backward: 1 s}\n"
                         "  - {name: f, forward: 1 s}\n"),
             Contains("another operator") && Contains("no backward"));
}
