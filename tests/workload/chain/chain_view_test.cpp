#include "workload/chain/chain_view.hpp"

#include "support/library.hpp"
#include "workload/workload_text.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

/// Where stages end, and what is carried there.
std::string ends_of(const Workload& workload, const ChainView& view) {
  std::string text;
  for (const ChainStage& stage : view.stages) {
    text += (text.empty() ? "" : " ") + std::to_string(stage.forward_end);
    for (const TensorId id : stage.carried) text += "+" + workload[id].name;
  }
  return text;
}

/// Whether nothing is carried, and a pipeline sees the network as others do.
bool is_seen_alike(const Workload& workload) {
  const ChainView alone = chain_view(workload), carrying = pipeline_view(workload);
  return std::ranges::equal(
      alone.stages, carrying.stages, [](const ChainStage& a, const ChainStage& b) {
        return a.forward_end == b.forward_end && a.output == b.output && b.carried.empty() &&
               a.output_bytes == b.output_bytes && a.gradient_bytes == b.gradient_bytes;
      });
}

/// Two layers, and a second stream from the same input, to whose layers what the first makes is added.
std::string two_streams(int additions) {
  std::string layers =
      "  - embedding: {entries: 8, features: 4}\n"
      "  - linear: {features: 4, name: encoded}\n"
      "  - embedding: {from: input, entries: 8, features: 4}\n";
  for (int i = 0; i < additions; ++i)
    layers += "  - linear: {features: 4}\n  - add: {skip: encoded}\n";
  return network("{shape: [2], type: indices}", layers);
}

}  // namespace

TEST_CASE("an abstract chain is seen as itself") {
  const Workload chain = build_text(
      "workload: w\ninput: 1 B\nchain:\n"
      "  - {name: p, forward: 1 s, backward: 1 s, output: 2 B, saved: 5 B, gradient: 3 B}\n"
      "  - {name: q, forward: 1 s, backward: 1 s, output: 4 B, saved: 6 B, gradient: 7 B, "
      "parameters: 8 B}\n");
  const ChainView view = chain_view(chain);
  REQUIRE(view.stages.size() == 2);
  CHECK(chain[view.stages[0].output].name == "p.output");
  CHECK(view.stages[0].output_bytes == Bytes{2});
  CHECK(view.stages[0].gradient_bytes == Bytes{3});
  CHECK(view.stages[0].saved_bytes == Bytes{5});
  CHECK(view.stages[1].output == kNoTensor);
  CHECK(view.stages[1].output_bytes == Bytes{4});
  CHECK(view.stages[1].gradient_bytes == Bytes{7});
  CHECK(view.stages[1].parameter_bytes == Bytes{8});
  REQUIRE(view.backward(1).size() == 1);
  CHECK(chain[view.backward(1)[0]].name == "q.backward");
  REQUIRE(view.saved(0).size() == 1);
  CHECK(chain[view.saved(0)[0]].name == "p.saved");
}

TEST_CASE("a network is cut where one value separates before from after") {
  const Workload net = build_text(network(
      "[2, 4, 4]",
      "  - conv2d: {channels: 2, kernel: 1}\n"           // changed in place by the ReLU: no cut
      "  - relu\n"                                       // cut
      "  - conv2d: {channels: 2, kernel: 1, name: a}\n"  // read twice: cut, one value crosses
      "  - conv2d: {channels: 3, kernel: 1, name: b}\n"  // a and b cross: no cut
      "  - conv2d: {channels: 2, kernel: 1}\n"           // a crosses, too: no cut
      "  - add: {skip: a}\n"                             // cut
      "  - global_avg_pool\n",
      "mse"));
  const ChainView view = chain_view(net);
  REQUIRE(view.stages.size() == 5);
  const std::uint32_t ends[] = {2, 3, 6, 7, 8};
  for (std::size_t s = 0; s < 5; ++s) CHECK(view.stages[s].forward_end == ends[s]);
  CHECK(net[view.stages[0].output].name == "conv2d_1");
  CHECK(net[view.stages[1].output].name == "a");
  CHECK(net[view.stages[2].output].name == "add_1");
  // Stage 2: a (read by two convolutions) is stage 1's; b and the sum are its own.
  CHECK(view.stages[1].saved_bytes == Bytes{2 * 16 * 4});
  CHECK(view.stages[2].saved_bytes == Bytes{3 * 16 * 4 + 2 * 16 * 4});
  CHECK(view.stages[2].gradient_bytes == Bytes{2 * 16 * 4});
  // The addition has no backward of its own.
  REQUIRE(view.backward(2).size() == 2);
  CHECK(net[view.backward(2)[0]].name == "conv2d_4.backward");
  CHECK(view.stages[4].output == kNoTensor);
}

TEST_CASE("what has no backward goes with the stage after it") {
  // A concatenation of one value separates before from after, but hands its gradient on.
  const Workload net = build_text(network("[4, 2, 2]",
                                          "  - conv2d: {channels: 4, kernel: 1, name: a}\n"
                                          "  - concat: {parts: [a]}\n"
                                          "  - conv2d: {channels: 4, kernel: 1}\n",
                                          "none"));
  const ChainView view = chain_view(net);
  REQUIRE(view.stages.size() == 2);
  CHECK(view.stages[0].forward_end == 1);
  CHECK(view.stages[1].forward_end == 3);
  for (std::size_t s = 0; s < 2; ++s) CHECK_FALSE(view.backward(s).empty());
}

TEST_CASE("residual networks are cut at their blocks") {
  // stem: conv, BN with ReLU, pooling; 8 blocks; pooling, dense layer, log-softmax, loss.
  const Workload net = build(read_workload(read_document(shipped("resnet18"))));
  CHECK(chain_view(net).stages.size() == 3 + 8 + 4);
}

TEST_CASE("what three parts of a second stream read is carried through a pipeline") {
  const Workload net = build_text(two_streams(3));
  // Operators 0 and 1 are the first stream, 2 is the second embedding, then layers (3, 5, 7) and
  // additions (4, 6, 8) take turns. Two values cross behind each of these.
  CHECK(ends_of(net, pipeline_view(net)) ==
        "1 2 3+encoded 4+encoded 5+encoded 6+encoded 7+encoded 8+encoded 9");
  // The token ids and `encoded` reach past all of it.
  CHECK(ends_of(net, chain_view(net)) == "9");
  // Only two parts read it.
  const Workload few = build_text(two_streams(2));
  CHECK(ends_of(few, pipeline_view(few)) == "1 2 7");
}

TEST_CASE("what crosses a cut with a carried value counts both, forwards and backwards") {
  const Workload net = build_text(two_streams(3));
  const ChainView view = pipeline_view(net);
  // 2 positions of 4 features of 4 bytes. `encoded` crosses alone, then with the second stream. The
  // gradient of the last addition is that of the layer before it and the first of `encoded`, too:
  // one tensor crosses there. The addition before makes the sum of that and its own.
  const std::int64_t one = 2 * 4 * 4;
  const std::size_t values[] = {1, 1, 2, 2, 2, 2, 2, 2, 0},
                    gradients[] = {1, 1, 2, 2, 2, 2, 2, 1, 0};
  REQUIRE(view.stages.size() == 9);
  for (std::size_t s = 0; s < 9; ++s) {
    INFO(s);
    CHECK(view.stages[s].output_bytes == Bytes{one} * static_cast<std::int64_t>(values[s]));
    CHECK(view.stages[s].gradients.size() == gradients[s]);
    CHECK(view.stages[s].gradient_bytes == Bytes{one} * static_cast<std::int64_t>(gradients[s]));
  }
}

TEST_CASE("a value is not carried where all that follows comes from it") {
  // A block after its input: query, key and value, and an addition, are three parts that read it.
  const std::string layers =
      "  - linear: {features: 4, name: x}\n"
      "  - linear: {features: 4, name: q}\n"
      "  - linear: {from: x, features: 4}\n"
      "  - multiply: {by: q}\n"
      "  - linear: {features: 4}\n"
      "  - add: {skip: x}\n"
      "  - linear: {features: 4}\n"
      "  - add: {skip: x}\n"
      "  - linear: {features: 4}\n";
  CHECK(is_seen_alike(build_text(network("[2, 4]", layers))));
}

TEST_CASE(
    "an input that is changed, or whose gradient is made, reaches past the stages of a pipeline") {
  const auto stages_of = [](const char* late) {
    const Workload graph = build_text(
        std::string("workload: g\ninputs: {x: 1 B, y: 1 B}\ngraph:\n"
                    "  - {name: a, inputs: [x], outputs: {u: 1 B}, forward: 1 s, backward: 1 s}\n"
                    "  - {name: b, inputs: [u], outputs: {v: 1 B}, forward: 1 s, backward: 1 s}\n"
                    "  - {name: c, inputs: [v, ") +
        late + "], outputs: {w: 1 B}, forward: 1 s, backward: 1 s}\n");
    return pipeline_view(graph).stages.size();
  };
  // Of x, both a and c make the gradient, which adds up in one place; y is there where c runs.
  CHECK(stages_of("x") == 1);
  CHECK(stages_of("y") == 3);
}

TEST_CASE("of the library, only T5 is cut where a value is carried") {
  WorkloadOptions options;
  options.batch = 2;
  for (const std::string& name : test::library()) {
    INFO(name);
    CHECK(is_seen_alike(build(test::library_network(name), options)));
  }
  for (const auto& [name, numbers] : test::kLargeNetworks) {
    INFO(name);
    CHECK(is_seen_alike(test::large_network(name, 4, options)) == (name != "t5-large"));
  }
}

TEST_CASE("T5 is cut as Megatron-LM cuts it, in every type and on ranks of a tensor axis") {
  WorkloadOptions fp8, tensor, sequence;
  fp8.dtype = DType::bf16;
  fp8.fp8.emplace();
  tensor.tensor = TensorAxis{.where = {}, .ranks = 2};
  sequence.tensor = TensorAxis{.where = {}, .ranks = 2, .sequence = Location{}};
  WorkloadOptions autocast, split;
  autocast.autocast = DType::bf16;
  split.split_backward = true;
  for (WorkloadOptions options : {WorkloadOptions(), fp8, tensor, sequence, autocast, split}) {
    options.batch = 8;
    const Workload net = test::large_network("t5-large", 4, options);
    const ChainView view = pipeline_view(net);
    // Behind every block of the decoder but the last, which alone reads no more of it.
    std::size_t encoder = 0, carrying = 0;
    for (const ChainStage& stage : view.stages) {
      const std::string& last = net.operators[stage.forward_end - 1].name;
      if (!last.ends_with("mlp_1/add_1.forward")) continue;
      if (stage.carried.empty())
        ++encoder;
      else
        ++carrying;
      CHECK(stage.gradients.size() >= 1 + std::min<std::size_t>(1, stage.carried.size()));
    }
    CHECK(encoder == 4 + 1);
    CHECK(carrying == 3);
  }
}
