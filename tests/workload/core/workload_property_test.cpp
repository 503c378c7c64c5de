/// Invariants of random chains, graphs and networks.
#include "workload/chain/chain_view.hpp"
#include "workload/workload_text.hpp"

#include <random>
#include <set>

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::int64_t up_to(std::int64_t most) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(most + 1));
  }

 private:
  std::mt19937_64 engine_;
};

/// Every value that an operator reads is there before it; forwards, backwards, optimizer in this
/// order.
bool is_in_order(const Workload& workload) {
  std::set<TensorId> there;
  for (std::uint32_t t = 0; t < workload.tensors.size(); ++t)
    if (workload.tensors[t].lifetime == Lifetime::resident ||
        workload.tensors[t].lifetime == Lifetime::input)
      there.insert(TensorId{t});
  for (std::uint32_t i = 0; i < workload.operators.size(); ++i) {
    const Operator& op = workload.operators[i];
    if ((op.phase == Phase::forward) != (i < workload.forwards)) return false;
    if ((op.phase == Phase::optimizer) != (i >= workload.optimizer_begin)) return false;
    for (const TensorId id : workload.list(op.reads))
      if (!there.contains(id) && !there.contains(workload[id].inside)) return false;
    for (const TensorId id : workload.list(op.kept)) there.insert(id);
  }
  return true;
}

/// Stages are contiguous, cover all forwards and backwards once, and keep all that is saved.
bool covers(const ChainView& view, const Workload& workload) {
  std::uint32_t next = 0;
  std::set<OperatorId> backwards;
  Bytes saved;
  for (std::size_t s = 0; s < view.stages.size(); ++s) {
    if (view.stages[s].forward_begin != next || view.stages[s].forward_end <= next) return false;
    next = view.stages[s].forward_end;
    for (const OperatorId b : view.backward(s)) {
      const auto forward = static_cast<std::uint32_t>(workload[b].forward);
      if (forward < view.stages[s].forward_begin || forward >= next) return false;
      if (!backwards.insert(b).second) return false;
    }
    saved += view.stages[s].saved_bytes;
  }
  return next == workload.forwards && saved == workload.saved_bytes &&
         backwards.size() == workload.optimizer_begin - workload.forwards;
}

}  // namespace

TEST_CASE("random chains keep the sum of saved, in order") {
  Random random(20240611);
  for (int round = 0; round < 1000; ++round) {
    std::string text = "workload: w\ninput: " + std::to_string(random.up_to(9)) + " B\nchain:\n";
    std::int64_t saved = 0;
    const std::int64_t stages = 1 + random.up_to(11);
    for (std::int64_t i = 0; i < stages; ++i) {
      const std::int64_t output = random.up_to(9), keep = output + random.up_to(9);
      const std::int64_t held = random.up_to(keep);
      saved += keep;
      text += "  - {name: s" + std::to_string(i) +
              ", forward: 1 s, backward_input: 1 s, backward_weight: 1 s";
      text += ", output: " + std::to_string(output) + " B, saved: " + std::to_string(keep) +
              " B, held_for_weight_gradient: " + std::to_string(held) +
              " B, parameters: " + std::to_string(random.up_to(5)) + " B}\n";
    }
    for (const bool split : {false, true}) {
      const Workload chain = build_text(text, {.split_backward = split});
      CAPTURE(text, split);
      REQUIRE(chain.saved_bytes.count() == saved);
      REQUIRE(is_in_order(chain));
      const ChainView view = chain_view(chain);
      REQUIRE(view.stages.size() == static_cast<std::size_t>(stages));
      REQUIRE(covers(view, chain));
    }
  }
}

TEST_CASE("random graphs run in order whatever the order of the file") {
  Random random(77);
  for (int round = 0; round < 1000; ++round) {
    const std::int64_t count = 1 + random.up_to(11);
    std::vector<std::string> lines;
    for (std::int64_t i = 0; i < count; ++i) {
      std::string inputs = random.up_to(1) == 0 ? "x" : "";
      for (std::int64_t j = 0; j < i; ++j)
        if (random.up_to(2) == 0)
          inputs += (inputs.empty() ? "" : ", ") + ("v" + std::to_string(j));
      lines.push_back(
          "  - {name: o" + std::to_string(i) + ", inputs: [" + inputs + "], outputs: {v" +
          std::to_string(i) + ": " + std::to_string(random.up_to(9)) +
          " B}, forward: 1 s, backward: 1 s, parameters: " + std::to_string(random.up_to(3)) +
          " B}\n");
    }
    std::string text = "workload: w\ninputs: {x: 3 B}\ngraph:\n";
    while (!lines.empty()) {
      const auto i = random.up_to(static_cast<std::int64_t>(lines.size()) - 1);
      text += lines[static_cast<std::size_t>(i)];
      lines.erase(lines.begin() + i);
    }
    CAPTURE(text);
    const Workload graph = build_text(text);
    REQUIRE(graph.forwards == count);
    REQUIRE(graph.optimizer_begin == 2 * count);
    REQUIRE(is_in_order(graph));
    REQUIRE(covers(chain_view(graph), graph));
  }
}

TEST_CASE("random networks run in order, and every trained parameter gets a gradient") {
  const char* kinds[] = {"relu: {in_place: false}",
                         "gelu",
                         "layer_norm",
                         "linear: in",
                         "dropout",
                         "softmax",
                         "position_embedding: 9",
                         "fused_attention: 1"};
  Random random(4242);
  for (int round = 0; round < 500; ++round) {
    std::string text = "workload: w\ninput: [3, 6]\nlayers:\n  - linear: {features: 6, name: n0}\n";
    const std::int64_t count = 1 + random.up_to(9);
    for (std::int64_t i = 1; i <= count; ++i) {
      // Named values are added again later.
      text += "  - " + std::string(kinds[random.up_to(7)]) + "\n  - scale: {name: n" +
              std::to_string(i) + "}\n";
      if (random.up_to(1) == 0)
        text += "  - add: {skip: n" + std::to_string(1 + random.up_to(i - 1)) + "}\n";
    }
    CAPTURE(text);
    const Workload net = build_text(text, {.batch = 2, .optimizer = Optimizer::adam});
    REQUIRE(is_in_order(net));
    REQUIRE(covers(chain_view(net), net));
    std::set<TensorId> made;
    for (const Operator& op : net.operators)
      for (const TensorId id : net.list(op.kept)) made.insert(id);
    for (std::uint32_t t = 0; t < net.tensors.size(); ++t)
      if (net.tensors[t].lifetime == Lifetime::accumulated) REQUIRE(made.contains(TensorId{t}));
  }
}
