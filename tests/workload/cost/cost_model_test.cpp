#include "workload/cost/cost_model.hpp"

#include "workload/workload_text.hpp"

#include <map>
#include <random>

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

/// 1 TFLOP/s, 100 GB/s, half of either for matrix products, 5 us for each operator.
Platform platform() {
  Platform platform;
  Memory memory;
  memory.name = "ram";
  memory.read.bandwidth = memory.write.bandwidth = ByteRate{100'000'000'000};
  platform.memories.push_back(memory);
  Processor processor;
  processor.name = "cpu";
  processor.compute[static_cast<std::size_t>(DType::fp32)] = FlopRate{1'000'000'000'000};
  processor.efficiency.fill(kWhole);
  processor.efficiency[static_cast<std::size_t>(OperatorClass::matmul)] = Ratio{500'000'000};
  processor.launch_overhead = Time{5'000'000};
  platform.processors.push_back(processor);
  return platform;
}

Workload one(Operator op) {
  Workload workload;
  workload.operators.push_back(std::move(op));
  workload.forwards = workload.optimizer_begin = 1;
  return workload;
}

Time duration(Operator op, const Platform& on) {
  return durations(one(std::move(op)), on, ProcessorId{0}).at(0);
}

}  // namespace

TEST_CASE("an operator takes the longer of arithmetic and traffic, and its launch") {
  Operator op;
  op.operator_class = OperatorClass::matmul;
  op.flops = Flops{1'000'000};
  op.traffic = Bytes{10'000};
  // 1e6 FLOP at 0.5e12 /s: 2 us; 1e4 B at 50e9 B/s: 0.2 us; launch 5 us.
  CHECK(duration(op, platform()) == Time{7'000'000});
  op.traffic = Bytes{1'000'000};  // 20 us
  CHECK(duration(op, platform()) == Time{25'000'000});
  op.operator_class = OperatorClass::elementwise;  // at the full 100 GB/s: 10 us
  CHECK(duration(op, platform()) == Time{15'000'000});
  // The slower direction of a memory bounds the traffic: 40 us.
  Platform slow = platform();
  slow.memories[0].write.bandwidth = ByteRate{25'000'000'000};
  CHECK(duration(op, slow) == Time{45'000'000});
}

TEST_CASE("with its shares apart an operator takes its arithmetic and its traffic in turn") {
  Operator op;
  op.operator_class = OperatorClass::matmul;
  op.flops = Flops{1'000'000};
  op.traffic = Bytes{10'000};
  Platform on = platform();
  Efficiency& reached =
      on.processors[0].efficiency[static_cast<std::size_t>(OperatorClass::matmul)];
  reached = Efficiency(Ratio{500'000'000}, Ratio{250'000'000});
  // 1e6 FLOP at 0.5e12 /s: 2 us; 1e4 B at 25e9 B/s: 0.4 us; launch 5 us.
  CHECK(duration(op, on) == Time{7'400'000});
  // A library that multiplies half as often as is counted: 1e6 FLOP at 2e12 /s are 0.5 us.
  reached = Efficiency(Ratio{2'000'000'000}, Ratio{250'000'000});
  CHECK(duration(op, on) == Time{5'900'000});
  // Another class is as it was: 1e4 B at 100 GB/s are 0.1 us, 1e6 FLOP at 1e12 /s 1 us.
  op.operator_class = OperatorClass::elementwise;
  CHECK(duration(op, on) == Time{6'000'000});
}

TEST_CASE("halves of a backward share the time of the whole by their FLOPs") {
  // 1e6 and 3e6 FLOP are 8 us at 0.5e12 /s, both traffics 3e4 B 0.6 us; launch 5 us. Of 13 us
  // three quarters go to the weight half: 9.75 us.
  Operator first;
  first.phase = Phase::backward_input;
  first.operator_class = OperatorClass::matmul;
  first.forward = OperatorId{0};
  first.flops = Flops{1'000'000};
  first.traffic = Bytes{20'000};
  Operator second = first;
  second.phase = Phase::backward_weight;
  second.flops = Flops{3'000'000};
  second.traffic = Bytes{10'000};
  Workload workload;
  workload.operators = {first, second};
  CHECK(durations(workload, platform(), ProcessorId{0}) ==
        std::vector{Time{3'250'000}, Time{9'750'000}});
  // Of another forward they are operators of their own: 2 us and 6 us, and a launch each.
  workload.operators[1].forward = OperatorId{1};
  CHECK(durations(workload, platform(), ProcessorId{0}) ==
        std::vector{Time{7'000'000}, Time{11'000'000}});
}

TEST_CASE("every kernel of an update is a launch") {
  Operator op;
  op.traffic = Bytes{100'000};  // 1 us
  op.launches = 9;
  CHECK(duration(op, platform()) == Time{46'000'000});
}

TEST_CASE("an operator waits for what the host has not issued yet") {
  const auto taking = [](std::int64_t microseconds) {
    Operator op;
    op.traffic = Bytes{(microseconds - 5) * 100'000};  // at 100 GB/s, after 5 us of launch
    return op;
  };
  Platform on = platform();
  on.processors[0].host_overhead = Time{10'000'000};
  // Issues end at 10, 20, ... us. The first starts at 10 and ends at 17, the second at 20 and 45;
  // the next four, of 6 us, wait for nothing and end at 69; the seventh, issued at 70, waits 1 us
  // and ends at 76, the eighth, issued at 80, waits 4 us.
  Workload workload;
  for (const std::int64_t time : {7, 25, 6, 6, 6, 6, 6, 6})
    workload.operators.push_back(taking(time));
  CHECK(durations(workload, on, ProcessorId{0}) ==
        std::vector{Time{17'000'000}, Time{28'000'000}, Time{6'000'000}, Time{6'000'000},
                    Time{6'000'000}, Time{6'000'000}, Time{7'000'000}, Time{10'000'000}});
  // Of any operators the sum is that of the longest way: so many issues, then all that is left.
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    Workload any;
    std::vector<std::int64_t> times;
    for (int i = 0; i < 30; ++i) {
      times.push_back(std::uniform_int_distribution<std::int64_t>(5, 18)(random));
      any.operators.push_back(taking(times.back()));
    }
    std::int64_t longest = 0, left = 0;
    for (std::size_t i = times.size(); i-- > 0;) {
      left += times[i];
      longest = std::max(longest, 10 * static_cast<std::int64_t>(i + 1) + left);
    }
    Time sum;
    for (const Time time : durations(any, on, ProcessorId{0})) sum += time;
    CHECK(sum == Time{longest * 1'000'000});
  }
}

TEST_CASE("of a step's microbatches an operator waits the mean, and the optimizer after the last") {
  const auto taking = [](std::int64_t microseconds) {
    Operator op;
    op.traffic = Bytes{microseconds * 100'000};
    return op;
  };
  Platform on = platform();
  on.processors[0].launch_overhead = Time{};
  on.processors[0].host_overhead = Time{10'000'000};
  Workload workload;
  workload.operators = {taking(3), taking(27), taking(1), taking(1),
                        taking(1), taking(1),  taking(1)};
  workload.forwards = workload.optimizer_begin = 2;
  workload.microbatches = 2;
  // Issues end at 10, 20 | 30, 40 | 50, 60, ...: 10 to 13, 20 to 47 | 47 to 50, 50 to 77 | 77 to
  // 78, 78 to 79, 79 to 80, 80 to 81, 90 to 91. The first waited 10 and 0, the second 7 and 0.
  CHECK(durations(workload, on, ProcessorId{0}) ==
        std::vector{Time{8'000'000}, Time{30'500'000}, Time{1'000'000}, Time{1'000'000},
                    Time{1'000'000}, Time{1'000'000}, Time{10'000'000}});
}

TEST_CASE("the halves of a backward are issued as one, and given times for nothing") {
  Operator first;
  first.phase = Phase::backward_input;
  first.forward = OperatorId{0};
  first.flops = Flops{1'000'000};  // both halves: 4 us, and 5 us of launch
  Operator second = first;
  second.phase = Phase::backward_weight;
  second.flops = Flops{3'000'000};
  Operator given;
  given.given_time = Time{1'000'000};
  Platform on = platform();
  on.processors[0].host_overhead = Time{7'000'000};
  Workload workload;
  workload.operators = {first, second, given};
  CHECK(durations(workload, on, ProcessorId{0}) ==
        std::vector{Time{4'000'000}, Time{12'000'000}, Time{1'000'000}});
}

TEST_CASE("given times pass unchanged") {
  Operator op;
  op.given_time = Time{17};
  op.flops = Flops{1'000'000};
  CHECK(duration(op, platform()) == Time{17});
}

TEST_CASE("a missing peak rate is an error only where it is needed") {
  Platform none = platform();
  none.processors[0].compute = {};
  Operator op;
  op.name = "product";
  op.traffic = Bytes{100'000};  // 1 us
  CHECK(duration(op, none) == Time{6'000'000});
  op.flops = Flops{1};
  CHECK_THROWS_WITH(duration(op, none),
                    "processor `cpu` states no peak rate for fp32, which operator "
                    "`product` needs");
}

TEST_CASE("energy is given or by FLOP") {
  Operator op;
  op.flops = Flops{1000};
  Platform on = platform();
  CHECK(operator_energies(one(op), on, ProcessorId{0}).at(0) == Energy{});
  on.processors[0].energy_per_flop = EnergyPerFlop{2'000'000};  // 2 pJ each: 2 nJ = 2e12 zJ
  CHECK(operator_energies(one(op), on, ProcessorId{0}).at(0) == Energy{2'000'000'000'000});
  op.given_energy = Energy{42};
  CHECK(operator_energies(one(op), on, ProcessorId{0}).at(0) == Energy{42});
}

TEST_CASE("an operator beyond the range of time is named, with its processor") {
  Operator op;
  op.name = "product";
  // At less than 1 TFLOP/s, 9e18 FLOP take more than 9e6 s; Time ends at 9.22e6 s (106 days).
  op.flops = Flops{9'000'000'000'000'000'000};
  Platform slow = platform();
  slow.processors[0].compute[static_cast<std::size_t>(DType::fp32)] = FlopRate{1'000'000'000};
  CHECK_THROWS_AS(duration(op, slow), CostOverflow);
  CHECK_THROWS_WITH(duration(op, slow), Catch::Contains("operator `product` (9 EFLOP, ") &&
                                            Catch::Contains("on processor `cpu`"));
}

TEST_CASE("a convolution that no transform is for may reach shares of its own") {
  Operator op;
  op.operator_class = OperatorClass::convolution;
  op.flops = Flops{1'000'000};
  op.traffic = Bytes{10'000};
  Platform on = platform();
  auto& reached = on.processors[0].efficiency;
  reached[static_cast<std::size_t>(OperatorClass::convolution)] =
      Efficiency(Ratio{2'000'000'000}, Ratio{200'000'000});
  reached[static_cast<std::size_t>(KernelKind::direct_convolution)] =
      Efficiency(Ratio{500'000'000}, kWhole);
  // 1e6 FLOP at 2e12 /s: 0.5 us; 1e4 B at 20e9 B/s: 0.5 us; launch 5 us.
  CHECK(kind_of(op) == kind_of(OperatorClass::convolution));
  CHECK(duration(op, on) == Time{6'000'000});
  // At 0.5e12 /s: 2 us; at 100e9 B/s: 0.1 us.
  op.kernel.convolution = ConvolutionShape::direct;
  CHECK(kind_of(op) == KernelKind::direct_convolution);
  CHECK(duration(op, on) == Time{7'100'000});
  op.kernel.convolution = ConvolutionShape::pointwise;
  CHECK(kind_of(op) == KernelKind::pointwise_convolution);
  op.phase = Phase::backward_weight;
  CHECK(kind_of(op) == KernelKind::pointwise_convolution_backward);
  op.kernel.convolution = ConvolutionShape::depthwise;
  CHECK(kind_of(op) == KernelKind::depthwise_convolution_backward);
  op.kernel.convolution = ConvolutionShape::transformable;
  CHECK(kind_of(op) == KernelKind::convolution_backward);
  // A matrix product is never one.
  op.operator_class = OperatorClass::matmul;
  CHECK(kind_of(op) == kind_of(OperatorClass::matmul));
  op.operator_class = OperatorClass::attention;
  op.kernel.fuses_attention = true;
  op.phase = Phase::forward;
  CHECK(kind_of(op) == KernelKind::fused_attention);
  op.phase = Phase::backward;
  CHECK(kind_of(op) == KernelKind::fused_attention_backward);
}

TEST_CASE("the backward of a pooling may reach shares of its own") {
  Operator op;
  op.operator_class = OperatorClass::pooling;
  op.traffic = Bytes{10'000};
  Platform on = platform();
  on.processors[0].efficiency[static_cast<std::size_t>(KernelKind::pooling_backward)] =
      Ratio{500'000'000};
  // 1e4 B at 100 GB/s are 0.1 us, at 50 GB/s 0.2 us; launch 5 us.
  CHECK(duration(op, on) == Time{5'100'000});
  op.phase = Phase::backward;
  CHECK(duration(op, on) == Time{5'200'000});
}

TEST_CASE("in TF32 products are computed in TF32, and all else in fp32") {
  Operator op;
  op.operator_class = OperatorClass::matmul;
  op.flops = Flops{1'000'000};
  Workload product = one(op);
  product.dtype = DType::tf32;
  op.operator_class = OperatorClass::normalization;
  Workload norm = one(op);
  norm.dtype = DType::tf32;
  Platform on = platform();
  CHECK_THROWS_WITH(durations(product, on, ProcessorId{0}),
                    Catch::Contains("states no peak rate for tf32"));
  on.processors[0].compute[static_cast<std::size_t>(DType::tf32)] = FlopRate{8'000'000'000'000};
  // 1e6 FLOP at half of 8 TFLOP/s are 0.25 us, at 1 TFLOP/s 1 us; launch 5 us.
  CHECK(durations(product, on, ProcessorId{0}).at(0) == Time{5'250'000});
  CHECK(durations(norm, on, ProcessorId{0}).at(0) == Time{6'000'000});
  CHECK(arithmetic_of(DType::tf32, KernelKind::depthwise_convolution_backward) == DType::tf32);
  CHECK(arithmetic_of(DType::tf32, KernelKind::convolution_bias) == DType::fp32);
  CHECK(arithmetic_of(DType::tf32, KernelKind::fused_attention_backward) == DType::tf32);
  CHECK(arithmetic_of(DType::fp16, kind_of(OperatorClass::pooling)) == DType::fp16);
}

TEST_CASE("an operator computes in the type that it says, else in the workload's") {
  Operator op;
  op.operator_class = OperatorClass::matmul;
  op.flops = Flops{1'000'000};
  op.dtype = DType::fp16;
  Platform on = platform();
  CHECK_THROWS_WITH(durations(one(op), on, ProcessorId{0}),
                    Catch::Contains("states no peak rate for fp16"));
  on.processors[0].compute[static_cast<std::size_t>(DType::fp16)] = FlopRate{8'000'000'000'000};
  // 1e6 FLOP at half of 8 TFLOP/s are 0.25 us; launch 5 us.
  CHECK(durations(one(op), on, ProcessorId{0}).at(0) == Time{5'250'000});
}

TEST_CASE("kernels of its own add a convolution's bias and sum its gradient") {
  const std::string text =
      "workload: net\ninput: [4, 5, 5]\nloss: none\nbatch: 100\nlayers:\n"
      "  - conv2d: {channels: 10, kernel: 1, name: a}\n"
      "  - conv2d: {channels: 10, kernel: 1, bias: false, name: b}\n"
      "  - conv2d: {channels: 10, kernel: 1, name: c, trained: none}\n"
      "  - conv2d: {channels: 10, kernel: 1, name: d, trained: bias}\n"
      "  - conv2d: {channels: 10, kernel: 1, name: e}\n";
  const Workload net = build_text(text);
  Platform on = platform();
  const auto times = [&] {
    std::map<std::string, Time> by_name;
    const std::vector<Time> all = durations(net, on, ProcessorId{0});
    for (std::size_t i = 0; i < all.size(); ++i) by_name[net.operators[i].name] = all[i];
    return by_name;
  };
  auto before = times();
  on.processors[0].kernels.bias = true;
  on.processors[0].efficiency[static_cast<std::size_t>(KernelKind::convolution_bias_backward)] =
      Ratio{250'000'000};
  auto after = times();
  // An output is 100 x 10 x 25 x 4 B = 1e5 B: read and written 2 us at 100 GB/s; its gradient read
  // at a fourth of that 4 us. Each is a launch of 5 us.
  CHECK(after["a.forward"] - before["a.forward"] == Time{7'000'000});
  CHECK(after["a.backward"] - before["a.backward"] == Time{9'000'000});
  CHECK(after["b.forward"] == before["b.forward"]);
  CHECK(after["b.backward"] == before["b.backward"]);
  CHECK(after["c.forward"] - before["c.forward"] == Time{7'000'000});
  CHECK(after["c.backward"] == before["c.backward"]);
  CHECK(after["d.backward"] - before["d.backward"] == Time{9'000'000});
  // Halves take as much together.
  const Workload split = build_text(text, {.split_backward = true});
  Time halves;
  const std::vector<Time> of_split = durations(split, on, ProcessorId{0});
  for (std::size_t i = 0; i < of_split.size(); ++i)
    if (split.operators[i].name.starts_with("e.backward")) halves += of_split[i];
  CHECK(halves == after["e.backward"]);
}

TEST_CASE("a kernel of its own adds a gradient to one that is there") {
  // Of the two readers of `a` the later one's backward comes first; the other adds to what it made.
  const Workload net = build_text(
      "workload: net\ninput: [4, 5, 5]\nloss: none\nbatch: 100\nlayers:\n"
      "  - conv2d: {channels: 10, kernel: 1, name: a}\n  - conv2d: {channels: 10, kernel: 1, name: "
      "b}\n"
      "  - conv2d: {channels: 10, kernel: 1, name: c, from: a}\n  - add: {skip: b}\n",
      {});
  Platform on = platform();
  const auto before = durations(net, on, ProcessorId{0});
  for (const Time none : addition_times(net, on, ProcessorId{0})) CHECK(none == Time{});
  on.processors[0].kernels.additions = true;
  const auto after = durations(net, on, ProcessorId{0});
  const auto additions = addition_times(net, on, ProcessorId{0});
  for (std::size_t i = 0; i < before.size(); ++i) {
    // 100 x 10 x 25 x 4 B = 1e5 B are not read by the convolution, 1 us at 100 GB/s, but by the
    // addition, which moves three times as much, 3 us, and is a launch of 5 us.
    const bool adds = net.operators[i].name == "b.backward";
    CHECK(additions[i] == (adds ? Time{8'000'000} : Time{}));
    CHECK(after[i] - before[i] == (adds ? Time{7'000'000} : Time{}));
  }
}

TEST_CASE("products of convolutions are of whole tiles") {
  Operator op;
  op.operator_class = OperatorClass::convolution;
  op.kernel = {48, 16, 1, ConvolutionShape::direct};
  op.flops = Flops{3'000'000};
  Platform on = platform();
  on.processors[0].kernels.tile = 32;
  // 48 output channels are 64: 4e6 FLOP at 1e12 /s are 4 us; launch 5 us.
  CHECK(duration(op, on) == Time{9'000'000});
  CHECK(duration(op, platform()) == Time{8'000'000});
  // Gradient of the input: 16 channels are 32, 6 us.
  op.phase = Phase::backward;
  op.kernel.of_input = true;
  CHECK(duration(op, on) == Time{11'000'000});
  // Of the weight: 48 are 64, and 16 inputs are 32, 8 us; with a window of 9, 144 are 160 and
  // 3e6 x 64 / 48 x 160 / 144 = 4,444,444.4 FLOP, rounded up.
  op.kernel.of_input = false;
  op.kernel.of_weight = true;
  CHECK(duration(op, on) == Time{13'000'000});
  op.kernel.window = 9;
  CHECK(duration(op, on) == Time{9'444'445});
  // Both, 3e6 FLOP each: 6 us and 8 us.
  op.kernel.window = 1;
  op.kernel.of_input = true;
  op.flops = Flops{6'000'000};
  CHECK(duration(op, on) == Time{19'000'000});
  // Sizes that are multiples, and shapes that are not known, cost nothing.
  on.processors[0].kernels.tile = 16;
  CHECK(duration(op, on) == Time{11'000'000});
  on.processors[0].kernels.tile = 32;
  op.kernel = {};
  CHECK(duration(op, on) == Time{11'000'000});
}

TEST_CASE("halves of a backward take the time of both in whole tiles") {
  Workload workload;
  workload.tensors.push_back({"y", Bytes{100'000}});
  workload.tensor_lists.push_back(TensorId{0});
  Operator op;
  op.operator_class = OperatorClass::convolution;
  op.flops = Flops{3'000'000};
  op.kernel = {48, 16, 1, ConvolutionShape::direct};
  op.kept = op.bare = {0, 1};
  workload.operators.push_back(op);
  op.kept = op.bare = {};
  op.forward = OperatorId{0};
  op.phase = Phase::backward_input;
  op.kernel.of_input = true;
  workload.operators.push_back(op);
  op.phase = Phase::backward_weight;
  op.kernel.of_input = false;
  op.kernel.of_weight = true;
  workload.operators.push_back(op);
  Platform on = platform();
  on.processors[0].efficiency[static_cast<std::size_t>(KernelKind::direct_convolution_backward)] =
      Efficiency(kWhole, kWhole);
  on.processors[0].kernels.tile = 32;
  // 6 us and 8 us as above; the gradient of y is read a second time, 1e5 B at 100 GB/s or 1 us; one
  // launch of 5 us. As many FLOPs are counted of either half.
  const auto times = durations(workload, on, ProcessorId{0});
  CHECK(times[1] == Time{10'000'000});
  CHECK(times[2] == Time{10'000'000});
  // As one operator it takes the same.
  workload.operators.pop_back();
  Operator& whole = workload.operators.back();
  whole.phase = Phase::backward;
  whole.flops = Flops{6'000'000};
  whole.kernel.of_weight = true;
  CHECK(durations(workload, on, ProcessorId{0})[1] == Time{20'000'000});
  // Of one product, and where nothing is known of tiles, it is read once.
  whole.kernel.of_weight = false;
  CHECK(durations(workload, on, ProcessorId{0})[1] == Time{17'000'000});
  whole.kernel.of_weight = true;
  on.processors[0].kernels.tile = 1;
  CHECK(durations(workload, on, ProcessorId{0})[1] == Time{11'000'000});
}
