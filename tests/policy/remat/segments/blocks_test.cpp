// remat/blocks: which layers a name is for, what runs again, and what it refuses.
#include "policy/remat/segments/named_blocks.hpp"
#include "support/chains.hpp"
#include "support/policies.hpp"
#include "workload/core/workload_builder.hpp"
#include "workload/cost/cost_model.hpp"
#include "workload/network/layer_name.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using Catch::Matchers::Contains;
using test::Played;

const char* const kNetwork = R"(
workload: net
input: {shape: [8, 16]}
blocks:
  inner:
    layers:
      - linear: in
      - gelu
  outer:
    layers:
      - inner
      - inner
      - add: {skip: input}
layers:
  - linear: in
  - relu
  - outer: {repeat: 3}
  - linear: 4
)";

const Platform& machine() {
  static const Platform platform = test::platform_of(
      "platform: p\nmemories:\n  ram: {capacity: unlimited, bandwidth: 1 GB/s}\n"
      "processors:\n  cpu: {memory: ram, compute: {fp32: 1 GFLOP/s, fp16: 1 GFLOP/s, "
      "bf16: 1 GFLOP/s, fp8: 2 GFLOP/s}}\n");
  return platform;
}

Played played(const std::string& policy, const Workload& workload) {
  Played it = test::play_policy(policy, workload, machine());
  REQUIRE(it.execution.status == RunStatus::ok);
  REQUIRE(it.plan.claims.makespan);
  test::require_claims_hold(it);
  return it;
}

std::string blocks(const std::string& names) {
  return "{name: remat/blocks, blocks: " + names + "}";
}

/// The layers that run again, in order.
std::string again(const std::string& names, const Workload& workload) {
  std::string layers;
  for (const Step& step : played(names, workload).plan.steps)
    if (step.instance > 0) layers += std::string(layer_of(workload[step.op])) + " ";
  return layers;
}

std::string error_of(const std::string& names, const Workload& workload) {
  try {
    (void)test::planned(blocks(names), workload, machine());
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string ranges(const std::vector<ForwardRange>& all) {
  std::string text;
  for (const ForwardRange& it : all) text += fmt::format("{} [{}, {}) ", it.name, it.begin, it.end);
  return text;
}

}  // namespace

TEST_CASE("a pattern names the shortest part of a path that it matches") {
  const Workload net = test::workload_of(kNetwork, {.batch = 2});
  const auto named = [&](const std::string& pattern) {
    const BlockNames names{{pattern, {}}, std::nullopt};
    return ranges(named_blocks(net, {&names, 1}));
  };
  CHECK(named("outer_*") == "outer_1 [2, 7) outer_2 [7, 12) outer_3 [12, 17) ");
  CHECK(named("outer_2") == "outer_2 [7, 12) ");
  CHECK(named("*/inner_2") ==
        "outer_1/inner_2 [4, 6) outer_2/inner_2 [9, 11) outer_3/inner_2 [14, 16) ");
  CHECK(named("outer_3/*") ==
        "outer_3/inner_1 [12, 14) outer_3/inner_2 [14, 16) outer_3/add_1 [16, 17) ");
  CHECK(named("relu_1") == "relu_1 [1, 2) ");
  const BlockNames run{{"outer_*", {}}, Located<std::string>{"*/inner_1/gelu_1", {}}};
  CHECK(ranges(named_blocks(net, {&run, 1})) == "outer_1 [2, 4) outer_2 [7, 9) outer_3 [12, 14) ");
  // What begins behind the last end is not meant.
  const BlockNames two{{"outer_*", {}}, Located<std::string>{"outer_2", {}}};
  CHECK(ranges(named_blocks(net, {&two, 1})) == "outer_1 [2, 12) ");
  CHECK(ranges(outermost_blocks(net)) == named("outer_*"));
  // The modules of a profile have dots: 0 to 3, the blocks 4 to 11, pooling, and the head.
  const Workload recorded =
      build(read_workload(read_document(std::string(PLIMSOLL_SOURCE_DIR) +
                                        "/tests/oracles/resnet18_profile.yaml")),
            {});
  CHECK(outermost_blocks(recorded).size() == 8);
  CHECK(outermost_blocks(recorded).front().name == "4");
  const Workload flat = test::workload_of(
      "workload: flat\ninput: {shape: [4]}\nlayers:\n  - linear: 8\n  - tanh\n", {.batch = 2});
  CHECK(ranges(outermost_blocks(flat)) ==
        "linear_1 [0, 1) tanh_1 [1, 2) log_softmax [2, 3) nll_loss [3, 4) ");
}

TEST_CASE("as many patterns as layers are found in a moment") {
  // 100,000 blocks of two layers, each named by a pattern of its own, with a `*` at its end, at its
  // beginning or nowhere: 2 * 10^10 comparisons if each pattern were held against each layer.
  constexpr std::uint32_t kBlocks = 100'000;
  WorkloadBuilder making("long");
  std::vector<BlockNames> names;
  for (std::uint32_t i = 0; i < kBlocks; ++i) {
    for (const char* layer : {"in", "out"})
      making.add(OperatorSpec{.name = fmt::format("block_{}/{}.forward", i, layer)});
    names.push_back({{i % 3 == 0   ? fmt::format("block_{}", i)
                      : i % 3 == 1 ? fmt::format("block_{}/*n", i)
                                   : fmt::format("*_{}", i),
                      {}},
                     std::nullopt});
  }
  const Workload net = making.freeze();
  const auto found = named_blocks(net, names);
  REQUIRE(found.size() == kBlocks);
  CHECK(found[0].end - found[0].begin == 2);
  CHECK(found[1].name == "block_1/in");
  CHECK(found[1].end - found[1].begin == 1);
  CHECK(found[2].name == "block_2");
  CHECK(found[2].end - found[2].begin == 2);
  // Where neither end tells anything, each layer is looked at, and counts.
  const BlockNames inner{{"*_7777*", {}}, std::nullopt};
  WorkMeter meter;
  CHECK(named_blocks(net, {&inner, 1}, Work(&meter)).size() == 11);
  CHECK(meter.steps() >= 2 * kBlocks);
  WorkMeter scarce(kBlocks);
  CHECK_THROWS_AS(named_blocks(net, {&inner, 1}, Work(&scarce)), WorkLimitReached);
}

TEST_CASE("a block runs again what its backwards read, once, before the first of them") {
  const Workload net = test::workload_of(kNetwork, {.batch = 2});
  // The last layers of a block are not among them: nothing reads the sum, nor the last GELU.
  CHECK(again(blocks("[outer_2]"), net) ==
        "outer_2/inner_1/linear_1 outer_2/inner_1/gelu_1 outer_2/inner_2/linear_1 ");
  CHECK(again(blocks("[{from: outer_1/inner_2, to: outer_1}, outer_3/inner_1]"), net) ==
        "outer_3/inner_1/linear_1 outer_1/inner_2/linear_1 ");
  // In place, the ReLU of the second layer is on what the first has made: both run again.
  CHECK(again(blocks("[{from: linear_1, to: outer_1/inner_1}]"), net) ==
        "linear_1 relu_1 outer_1/inner_1/linear_1 ");
  // What has been changed in place before the block, or by its first layer, is there.
  CHECK(again(blocks("[{from: relu_1, to: outer_1/inner_1}]"), net) == "outer_1/inner_1/linear_1 ");
  // Every stage of a chain, the last one too.
  CHECK(again("remat/blocks", test::chain_workload(test::equal_chain(3, {}))) == "s3 s2 s1 ");
}

TEST_CASE("a block that runs again casts again, and casts make no block of a layer") {
  const Workload net = test::workload_of(kNetwork, {.batch = 2, .autocast = DType::fp16});
  // Each product is three operators: casts of weight and bias, and itself.
  const std::string first = "outer_2/inner_1/linear_1 ", second = "outer_2/inner_2/linear_1 ";
  CHECK(again(blocks("[outer_2]"), net) ==
        first + first + first + "outer_2/inner_1/gelu_1 " + second + second + second);
  CHECK(outermost_blocks(net).size() == 3);
}

TEST_CASE("what goes into a block stays until its backwards have ended") {
  // The skip of its sum, which nothing reads again, is an argument of the block.
  const Workload net = test::workload_of(
      "workload: skip\ninput: {shape: [8, 16]}\nlayers:\n  - linear: {features: in, name: x}\n"
      "  - tanh\n  - linear: in\n  - gelu\n  - linear: in\n  - add: {skip: x, name: sum}\n"
      "  - scale\n  - linear: 4\n",
      {.batch = 2});
  const Played it = played(blocks("[{from: linear_2, to: sum}]"), net);
  for (const Release& release : it.plan.releases) {
    const Buffer& buffer = it.plan.buffers[index(release.buffer)];
    if (net[buffer.tensor].name != "x") continue;
    REQUIRE(it.plan.after(release).size() == 1);
    const Step& last = it.plan[it.plan.after(release).front()];
    CHECK(net[last.op].name == "linear_2.backward");
  }
}

TEST_CASE("running blocks again takes as long as what runs again, and holds less") {
  const Workload net = test::workload_of(kNetwork, {.batch = 64});
  const Played none = played("none", net), all = played("remat/blocks", net);
  const std::vector<Time> times = durations(net, machine(), ProcessorId{0});
  Time sum = none.execution.makespan;
  std::size_t runs = 0;
  for (const Step& step : all.plan.steps)
    if (step.instance > 0) {
      sum += times[static_cast<std::size_t>(step.op)];
      ++runs;
    }
  CHECK(runs == 9);
  CHECK(all.execution.makespan == sum);
  CHECK(all.peak(MemoryId{0}) < none.peak(MemoryId{0}));
  // Selective: of a transformer the core of attention, whose tensors grow as the sequence's square.
  const Workload gpt = test::workload_of(
      "workload: gpt\ninput: {shape: [256, 32]}\nblocks:\n  block:\n    layers:\n"
      "      - layer_norm\n      - attention: {heads: 4, causal: true}\n      - add: {skip: "
      "input}\n"
      "layers:\n  - block: {repeat: 2}\n",
      {.batch = 2});
  const std::string core = blocks("[{from: '*/attention_scores_1', to: '*/attention_context_1'}]");
  CHECK(3 * played(core, gpt).peak(MemoryId{0}) < 2 * played("none", gpt).peak(MemoryId{0}));
  CHECK(again(core, gpt) ==
        "block_2/attention_1/attention_scores_1 block_2/attention_1/scale_1 "
        "block_2/attention_1/causal_mask_1 block_2/attention_1/softmax_1 "
        "block_2/attention_1/dropout_1 "
        "block_1/attention_1/attention_scores_1 block_1/attention_1/scale_1 "
        "block_1/attention_1/causal_mask_1 block_1/attention_1/softmax_1 "
        "block_1/attention_1/dropout_1 ");
}

TEST_CASE("a copy in fp8 that blocks share stays until the last of their backwards") {
  // Two blocks multiply the same value, as those of a decoder do what the encoder made. Its copy is
  // made in the first; columns, which only backwards read, are 16 rows of 32 in 1 byte and a scale.
  const Workload net = test::workload_of(
      "workload: net\ninput: {shape: [8, 16]}\nblocks:\n  reader:\n    reads: [source]\n"
      "    layers:\n      - gelu\n      - linear: {from: source, features: 32, name: key}\n"
      "      - relu\n      - add: {skip: input}\n"
      "layers:\n  - linear: {features: 32, name: encoded}\n  - tanh: {from: encoded}\n"
      "  - reader: {repeat: 2, reads: {source: encoded}}\n",
      {.batch = 2, .dtype = DType::bf16, .fp8 = Located<Fp8>{Fp8{}, {}}});
  for (const char* names : {"[reader_1, reader_2]", "[reader_1]", "[reader_2]"}) {
    CAPTURE(names);
    const Played it = played(blocks(names), net);
    const auto shared = [&](const Buffer& buffer) {
      return net[buffer.tensor].name == "reader_1/key.quantize.columns" &&
             net[buffer.tensor].bytes == Bytes{16 * 32 + 4};
    };
    // Once for what is not of its block; again where its own block runs again.
    const bool runs_again = std::string_view(names).find("reader_1") != std::string_view::npos;
    CHECK(std::ranges::count_if(it.plan.buffers, shared) == (runs_again ? 2 : 1));
  }
}

TEST_CASE("remat/blocks refuses what has no meaning, in words") {
  const Workload net = test::workload_of(kNetwork, {.batch = 2});
  CHECK_THAT(error_of("[outter_1]", net),
             Contains("workload `net` has no block or layer `outter_1`; did you mean `outer_1`?"));
  CHECK_THAT(error_of("[{from: outer_2, to: outer_1}]", net),
             Contains("no `outer_1` comes after `outer_2` in workload `net`"));
  CHECK_THAT(error_of("[{from: outer_2, to: otter_3}]", net), Contains("did you mean `outer_3`?"));
  CHECK_THAT(error_of("[relu_1, '*/gelu_1']", net),
             Contains("nothing of these blocks would run again"));
  CHECK_THAT(error_of("[outer_2, '*/inner_2']", net),
             Contains("layer `outer_2/inner_2/linear_1` is in two of the blocks, `outer_2` and "
                      "`outer_2/inner_2`"));
  CHECK_THAT(error_of("[]", net), Contains("at least 1"));
  // A tanh beside an in-place ReLU of the same input: once more it would read the ReLU's.
  const Workload spoiled = test::workload_of(
      "workload: spoiled\ninput: {shape: [4]}\nlayers:\n  - linear: {features: 8, name: x}\n"
      "  - tanh: {name: t}\n  - relu: {from: x, name: r}\n  - add: {skip: t}\n  - linear: 2\n",
      {.batch = 2});
  CHECK_THAT(error_of("[t]", spoiled),
             Contains("block `t` cannot run again: `t.forward` reads what is from before the block "
                      "and is changed in place afterwards"));
  // Nobody asked for it by name: it is left as it is.
  CHECK_THAT(again("remat/blocks", spoiled), !Contains("t "));
}

}  // namespace plimsoll
