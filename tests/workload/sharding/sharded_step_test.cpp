// Steps of ranks that hold their state in parts: bytes by class, units, gathers and scatters.
#include "workload/sharding/sharded_step.hpp"

#include "support/played.hpp"
#include "workload/chain/chain_view.hpp"
#include "workload/cost/cost_model.hpp"
#include "workload/cost/gradient_accumulation.hpp"

#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

using namespace plimsoll;
using namespace plimsoll::test;

namespace {

/// Three blocks of two layers each between a first and a last layer outside of blocks. Each weight is
/// 64 x 64 without bias: 4096 parameters.
std::string three_pairs() {
  return "workload: net\ninput: {shape: [64]}\nblocks:\n  pair:\n    layers:\n      - linear: "
         "{features: 64, bias: false}\n      - relu\n      - linear: {features: 64, bias: "
         "false}\nlayers:\n  - linear: {features: 64, bias: false, name: first}\n  - pair: "
         "{repeat: "
         "3}\n  - linear: {features: 64, bias: false, name: last}\n";
}

Workload step_of(const WorkloadOptions& options) {
  return workload_of(three_pairs(), options);
}

/// fp16 with master copies and Adam: 2 + 4 + 12 bytes a parameter.
WorkloadOptions mixed_precision() {
  WorkloadOptions options;
  options.dtype = DType::bf16;
  options.master_weights = true;
  options.optimizer = Optimizer::adam;
  return options;
}

/// What is there for long: resident or accumulated.
std::map<TensorClass, std::int64_t> held_bytes(const Workload& workload) {
  std::map<TensorClass, std::int64_t> bytes;
  for (const Tensor& tensor : workload.tensors)
    if (tensor.lifetime == Lifetime::resident || tensor.lifetime == Lifetime::accumulated)
      bytes[tensor.tensor_class] += tensor.bytes.count();
  return bytes;
}

std::vector<std::string> collectives(const Workload& workload) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < workload.operators.size(); ++i)
    if (workload.operators[i].collective.kind != CollectiveKind::none)
      names.push_back(workload.operators[i].name);
  return names;
}

std::size_t place_of(const Workload& workload, const std::string& name) {
  const auto found = std::ranges::find(workload.operators, name, &Operator::name);
  REQUIRE(found != workload.operators.end());
  return static_cast<std::size_t>(found - workload.operators.begin());
}

}  // namespace

// Psi = 8 x 4096 parameters; n divides all of them. ZeRO's table (section 5.4) with 4-byte gradients.
TEST_CASE("each stage divides one more of the three") {
  const Workload step = step_of(mixed_precision());
  const std::int64_t psi = 8 * 4096;
  REQUIRE(step.parameters == psi);
  for (const std::int64_t n : {2, 4, 8})
    for (const std::int64_t stage : {1, 2, 3}) {
      const Workload sharded = sharded_step(step, {stage, n});
      auto bytes = held_bytes(sharded);
      CAPTURE(n, stage);
      CHECK(bytes[TensorClass::optimizer_state] == 12 * psi / n);
      CHECK(bytes[TensorClass::gradient] == (stage >= 2 ? 4 * psi / n : 4 * psi));
      CHECK(bytes[TensorClass::parameter] == (stage >= 3 ? 2 * psi / n : 2 * psi));
      CHECK(sharded.parameter_bytes.count() == bytes[TensorClass::parameter]);
      CHECK(sharded.macs == step.macs);
      CHECK(sharded.saved_bytes == step.saved_bytes);
    }
}

// Forward and backward are whole on every rank, and an update is 1/n of it.
TEST_CASE("a rank updates its part") {
  const Workload step = step_of(mixed_precision());
  for (const std::int64_t stage : {1, 2, 3}) {
    const Workload sharded = sharded_step(step, {stage, 4});
    const auto sum = [](const Workload& workload, bool updates) {
      std::int64_t flops = 0, traffic = 0;
      for (const Operator& op : workload.operators)
        if ((op.phase == Phase::optimizer) == updates) {
          flops += op.flops.count();
          traffic += op.traffic.count();
        }
      return std::pair(flops, traffic);
    };
    CHECK(sum(sharded, false) == sum(step, false));
    const auto [flops, traffic] = sum(step, true);
    CHECK(sum(sharded, true) == std::pair(flops / 4, traffic / 4));
  }
}

// Parts are rounded up to whole bytes: 4096 parameters of 2 bytes over 3 ranks are 2731 bytes.
TEST_CASE("parts are rounded up") {
  auto bytes = held_bytes(sharded_step(step_of(mixed_precision()), {3, 3}));
  CHECK(bytes[TensorClass::parameter] == 8 * 2731);
  CHECK(bytes[TensorClass::gradient] == 8 * 5462);  // 16384 / 3
}

// The layers outside of blocks are one unit, which is used first and last.
TEST_CASE("units are gathered before they run, and their gradients scattered after") {
  const Workload step = step_of(mixed_precision());
  const Workload late = sharded_step(step, {.stage = 3, .ranks = 2, .prefetch = 0});
  const std::vector<std::string> expected{
      "outside.gather",         "pair_1.gather",           "pair_2.gather",
      "pair_3.gather",          "outside.gather_backward", "pair_3.gather_backward",
      "pair_3.reduce_scatter",  "pair_2.gather_backward",  "pair_2.reduce_scatter",
      "pair_1.gather_backward", "pair_1.reduce_scatter",   "outside.reduce_scatter"};
  CHECK(collectives(late) == expected);
  CHECK(place_of(late, "pair_2.gather") + 1 == place_of(late, "pair_2/linear_1.forward"));
  CHECK(place_of(late, "pair_2.reduce_scatter") == place_of(late, "pair_2/linear_1.backward") + 1);
  // One ahead: that of the second block is issued before the first block begins.
  const Workload ahead = sharded_step(step, {.stage = 3, .ranks = 2, .prefetch = 1});
  CHECK(place_of(ahead, "pair_2.gather") + 1 == place_of(ahead, "pair_1/linear_1.forward"));
  CHECK(place_of(ahead, "pair_1.gather") + 1 == place_of(ahead, "first.forward"));
  // Without overlap all scatters are behind the last backward.
  const Workload apart =
      sharded_step(step, {.stage = 2, .ranks = 2, .prefetch = 1, .overlap = false});
  CHECK(collectives(apart) ==
        std::vector<std::string>{"pair_3.reduce_scatter", "pair_2.reduce_scatter",
                                 "pair_1.reduce_scatter", "outside.reduce_scatter"});
  CHECK(place_of(apart, "pair_3.reduce_scatter") == place_of(apart, "first.backward") + 1);
}

TEST_CASE("parameters that are not divided again after the forward are gathered once") {
  const Workload step = step_of(mixed_precision());
  const Workload kept =
      sharded_step(step, {.stage = 3, .ranks = 2, .prefetch = 0, .reshards = false});
  CHECK(collectives(kept) ==
        std::vector<std::string>{"outside.gather", "pair_1.gather", "pair_2.gather",
                                 "pair_3.gather", "pair_3.reduce_scatter", "pair_2.reduce_scatter",
                                 "pair_1.reduce_scatter", "outside.reduce_scatter"});
  // Both halves of a block read the same whole weight.
  const auto reads = [&](const std::string& op, const std::string& tensor) {
    const auto list = kept.list(kept.operators[place_of(kept, op)].reads);
    return std::ranges::any_of(list, [&](TensorId id) { return kept[id].name == tensor; });
  };
  CHECK(reads("pair_2/linear_1.forward", "pair_2/linear_1.weight.whole"));
  CHECK(reads("pair_2/linear_1.backward", "pair_2/linear_1.weight.whole"));
  CHECK(held_bytes(kept) == held_bytes(sharded_step(step, {.stage = 3, .ranks = 2})));
}

// Whatever the partition, a unit is on one device. What a rank holds is the same as with other units.
TEST_CASE("units of a pipeline are the stages of the chain") {
  const Workload step = step_of(mixed_precision());
  const ChainView whole = chain_view(step);
  for (const std::int64_t stage : {2, 3}) {
    const Workload sharded =
        sharded_step(step, {.stage = stage, .ranks = 4, .prefetch = 0, .by_chain_stage = true});
    CHECK(held_bytes(sharded) == held_bytes(sharded_step(step, {stage, 4})));
    const ChainView view = chain_view(sharded);
    REQUIRE(view.stages.size() == whole.stages.size());
    // Nothing that is whole crosses from one stage to another.
    for (const ChainStage& it : view.stages)
      for (std::uint32_t op = it.forward_begin; op < it.forward_end; ++op)
        for (const TensorId id : sharded.list(sharded.operators[op].reads))
          if (sharded[id].name.ends_with(".whole")) {
            bool is_made_here = false;
            for (std::uint32_t maker = it.forward_begin; maker < op; ++maker) {
              const auto made = sharded.list(sharded.operators[maker].kept);
              is_made_here |= std::ranges::find(made, id) != made.end();
            }
            CHECK(is_made_here);
          }
  }
}

// A rank adds its part of 4 bytes to the sum of 4: three times 1/n.
TEST_CASE("a rank adds the parts of later microbatches to the parts that it has") {
  const Workload step = step_of(mixed_precision());
  const auto traffic = [](const Workload& of) {
    Bytes sum;
    for (const Operator& op : of.operators) sum += op.traffic;
    return sum;
  };
  for (const std::int64_t stage : {0, 1, 2, 3})
    for (const std::int64_t n : {2, 4, 8}) {
      const Workload sharded = stage == 0 ? step : sharded_step(step, {stage, n});
      Workload adding = sharded;
      add_gradients(adding, MadeGradients::as_values);
      CAPTURE(stage, n);
      CHECK(traffic(adding) - traffic(sharded) ==
            Bytes{stage < 2 ? 4 * step.parameters : 3 * 4 * step.parameters / n});
      // With the backward that makes it.
      const auto added = [&](const std::string& name) {
        const std::size_t op = place_of(sharded, name);
        return (adding.operators[op].traffic - sharded.operators[op].traffic).count();
      };
      for (const char* layer : {"pair_2/linear_1.backward", "pair_2/linear_2.backward"})
        CHECK(added(layer) == (stage < 2 ? 4 * 4096 : 3 * 4 * 4096 / n));
    }
}

// A gather for a backward is no half of it.
TEST_CASE("split backwards take as long, whatever is gathered for them") {
  WorkloadOptions options = mixed_precision();
  options.split_backward = true;
  const Workload step = step_of(options);
  const Platform platform = platform_of(
      "platform: p\nmemories: {hbm: {capacity: unlimited, bandwidth: 1 GB/s}}\nprocessors: {gpu: "
      "{memory: hbm, compute: {fp32: 1 GFLOP/s, bf16: 2 GFLOP/s}}}\n");
  const auto backwards = [&](const Workload& of) {
    Time sum;
    const std::vector<Time> times = durations(of, platform, ProcessorId{0});
    for (std::uint32_t op = of.forwards; op < of.optimizer_begin; ++op) sum += times[op];
    return sum;
  };
  for (const bool by_chain_stage : {false, true})
    for (const std::int64_t prefetch : {0, 1})
      CHECK(backwards(sharded_step(step, {.stage = 3,
                                          .ranks = 2,
                                          .prefetch = by_chain_stage ? 0 : prefetch,
                                          .by_chain_stage = by_chain_stage})) == backwards(step));
}

// PyTorch's FSDP holds 4 + 4 + 8 bytes a parameter; what is gathered is as large as before.
TEST_CASE("a rank that casts from its master copy holds no part of 2 bytes") {
  const Workload step = step_of(mixed_precision());
  StateSharding sharding{3, 4};
  const Workload parts = sharded_step(step, sharding);
  sharding.from_master = true;
  const Workload cast = sharded_step(step, sharding);
  auto bytes = held_bytes(cast);
  CHECK(bytes[TensorClass::parameter] == 0);
  CHECK(bytes[TensorClass::gradient] + bytes[TensorClass::optimizer_state] ==
        16 * step.parameters / 4);
  CHECK(collectives(cast) == collectives(parts));
  const auto whole = [](const Workload& of) {
    std::int64_t sum = 0;
    for (const Tensor& tensor : of.tensors)
      if (tensor.name.ends_with(".whole")) sum += tensor.bytes.count();
    return sum;
  };
  CHECK(whole(cast) == whole(parts));
}

// Of 8 x 4096 parameters one layer is frozen, and three quarters of another's: none of these has a master
// copy, and ranks divide their 2 bytes; of the trained ones they have 16.
TEST_CASE("frozen weights are held in parts, also where others are cast from master copies") {
  const Workload step = workload_of(
      "workload: net\ninput: {shape: [64]}\nlayers:\n  - linear: {features: 64, bias: false, "
      "trained: "
      "none}\n  - linear: {features: 64, bias: false, trained: 25 %}\n"
      "  - linear: {features: 64, bias: false}\n",
      mixed_precision());
  const std::int64_t frozen = 4096 + 4096 * 3 / 4, trained = 3 * 4096 - frozen;
  for (const std::int64_t n : {2, 4, 8}) {
    StateSharding sharding{3, n};
    sharding.from_master = true;
    auto bytes = held_bytes(sharded_step(step, sharding));
    CAPTURE(n);
    CHECK(bytes[TensorClass::parameter] == 2 * frozen / n);
    CHECK(bytes[TensorClass::gradient] + bytes[TensorClass::optimizer_state] == 16 * trained / n);
  }
}
