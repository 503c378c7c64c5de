// graph.txt of PipeDream: what its lines mean, and what is no such line.
#include "workload/given/pipedream_profile.hpp"

#include "workload/chain/chain_view.hpp"
#include "workload/workload_file.hpp"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <catch2/catch.hpp>

using namespace plimsoll;
using Catch::Matchers::Contains;

namespace {

std::string node(const std::string& id, const std::string& what, const std::string& forward,
                 const std::string& backward, const std::string& activations,
                 const std::string& parameters = "0.000") {
  return id + " -- " + what + " -- forward_compute_time=" + forward +
         ", backward_compute_time=" + backward + ", activation_size=" + activations +
         ", parameter_size=" + parameters;
}

std::string edge(const std::string& from, const std::string& to) {
  return "\t" + from + " -- " + to + "\n";
}

/// x -> a -> b -> d, a -> c -> d, and a sink that is left out; nodes in disorder.
std::string diamond() {
  return node("node10", "Add", "0.125", "0.000", "64.000") + "\n" +
         node("node2", "Conv2d(3, 64, kernel_size=(3, 3), x=1)", "2.5", "4.000", "64.000",
              "32.000") +
         " -- stage_id=1\n\n" + edge("node1", "node2") + edge("node2", "node3") +
         node("node4", "__getitem__(1)", "9.000", "9.000", "8.000") + "\n" +
         node("node3", "LSTM(4, 4)", "1.000", "3.000", "[16.0; 8.0]", "8.000") + "\r\n" +
         edge("node2", "node10") + edge("node3", "node10") + edge("node3", "node4") +
         edge("node3", "node10") + node("node1", "Input", "17.970", "1.000", "100.000");
}

std::string pipedream_error(const std::string& text) {
  try {
    (void)parse_pipedream(text, "graph.txt");
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a profile of PipeDream is a graph of its nodes") {
  const GraphSpec graph = parse_pipedream(diamond(), "nets/vgg/graph.txt");
  CHECK(graph.name == "vgg");
  REQUIRE(graph.inputs.size() == 1);
  CHECK(graph.inputs[0].first.value == "node1");
  CHECK(graph.inputs[0].second == Bytes{100});
  REQUIRE(graph.operators.size() == 3);
  // In the order of their numbers.
  const GraphOperatorSpec& conv = graph.operators[0];
  CHECK(conv.name == "node2/Conv2d");
  CHECK(conv.forward == Time{2'500'000'000});
  CHECK(conv.backward == Time{4'000'000'000});
  CHECK(conv.parameters == Bytes{32});
  CHECK(conv.outputs[0].second == Bytes{64});
  CHECK(graph.operators[1].name == "node3/LSTM");
  CHECK(graph.operators[1].outputs[0].second == Bytes{24});
  const GraphOperatorSpec& add = graph.operators[2];
  CHECK(add.name == "node10/Add");
  REQUIRE(add.inputs.size() == 2);

  const Workload workload = build(WorkloadSource{graph});
  REQUIRE(workload.operators.size() == 6);
  Time sum;
  for (const Operator& op : workload.operators) sum += *op.given_time;
  CHECK(sum == Time{10'625'000'000});  // 2.5 + 4 + 1 + 3 + 0.125 ms: no input, no sink left out
  CHECK(workload.parameter_bytes == Bytes{40});
  CHECK(workload.saved_bytes == Bytes{64 + 24 + 64});
}

TEST_CASE("a profile of PipeDream is refused with what is wrong, by line and column") {
  CHECK_THAT(pipedream_error(""), Contains("no node; expected a graph.txt of PipeDream"));
  CHECK_THAT(pipedream_error(node("n1", "Input", "0", "0", "1")), Contains("no node but inputs"));
  const std::string good = node("n1", "Conv2d", "1.0", "2.0", "3", "4") + "\n";
  CHECK(pipedream_error(good).empty());
  CHECK_THAT(pipedream_error("n1\n"),
             Contains("graph.txt:1:3: error: the line ends; expected ` -- `"));
  CHECK_THAT(pipedream_error("n1 -- Conv2d\n"), Contains("graph.txt:1:13: error: the line ends"));
  // "n1", " -- ", "Conv2d", " -- " and "forward_compute_time=" are 2 + 4 + 6 + 4 + 21 characters.
  CHECK_THAT(pipedream_error(node("n1", "Conv2d", "1,0", "2.0", "3")),
             Contains("graph.txt:1:39: error: found `,0, backward_compute_time=2.0, activatio`; "
                      "expected `, backward_compute_time=`"));
  CHECK_THAT(pipedream_error(node("n1", "Conv2d", "fast", "2.0", "3")),
             Contains("graph.txt:1:38: error: found `fast, backward_compute_time=2.0, activat`; "
                      "expected a number of ms"));
  CHECK_THAT(pipedream_error(node("n1", "Conv2d", "1", "2", "[3; 4")), Contains("expected `]`"));
  CHECK_THAT(pipedream_error(node("n1", "Conv2d", "1", "2", "3.5")),
             Contains("expected a number of B"));
  CHECK_THAT(pipedream_error(node("n 1", "Conv2d", "1", "2", "3")),
             Contains("expected a node's name"));
  CHECK_THAT(pipedream_error(node("n1", "Conv2d", "1", "2", "3") + "0x"), Contains("found `x`"));
  CHECK_THAT(pipedream_error(good + good),
             Contains("graph.txt:2:1: error: node `n1` is there in line 1 already"));
  CHECK_THAT(pipedream_error(good + edge("n1", "n2")),
             Contains("graph.txt:2:8: error: there is no node `n2`"));
  CHECK_THAT(pipedream_error(good + edge("n1", "n1")),
             Contains("node `n1` is in a cycle of 1 nodes"));
  CHECK_THAT(
      pipedream_error(node("n1", "A", "1", "2", "[9223372036854775806; 9223372036854775806]")),
      Contains("the sizes add up to more than can be counted"));
  CHECK_THAT(pipedream_error("\x1b[31m"), Contains("found `?[31m`"));
}

TEST_CASE("random profiles of PipeDream have all their nodes, each after what it reads") {
  std::mt19937_64 random(20261122);
  for (int round = 0; round < 200; ++round) {
    const std::size_t nodes = 1 + random() % 12;
    std::vector<std::string> lines;
    std::int64_t microseconds = 0;
    std::set<std::pair<std::size_t, std::size_t>> edges;
    for (std::size_t i = 0; i < nodes; ++i) {
      const std::int64_t forward = static_cast<std::int64_t>(random() % 5'000);
      microseconds += forward;
      const std::string ms =
          std::to_string(forward / 1000) + "." + std::to_string(1000 + forward % 1000).substr(1);
      lines.push_back(node("n" + std::to_string(i), "Op()", ms, "0.000", "5.000") + "\n");
      for (std::size_t before = 0; before < i; ++before)
        if (random() % 3 == 0) {
          edges.emplace(before, i);
          lines.push_back(edge("n" + std::to_string(before), "n" + std::to_string(i)));
        }
    }
    std::ranges::shuffle(lines, random);
    std::string text;
    for (const std::string& line : lines) text += line;
    const Workload workload = build(WorkloadSource{parse_pipedream(text, "r.txt")});
    REQUIRE(workload.forwards == nodes);
    Time sum;
    std::map<std::string, std::size_t> at;
    for (std::size_t i = 0; i < nodes; ++i) {
      sum += *workload.operators[i].given_time;
      at[workload.operators[i].name] = i;
    }
    CHECK(sum == Time{microseconds * 1'000'000});
    for (const auto& [from, to] : edges)
      CHECK(at.at("n" + std::to_string(from) + "/Op.forward") <
            at.at("n" + std::to_string(to) + "/Op.forward"));
    CHECK(chain_view(workload).stages.back().forward_end == nodes);
  }
}
