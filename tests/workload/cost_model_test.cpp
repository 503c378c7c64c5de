#include "workload/cost_model.hpp"

#include "workload/workload_text.hpp"

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
