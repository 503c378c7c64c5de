// Which operators of a workload have a state of a random generator to keep.
#include "workload/cost/generator_states.hpp"

#include "support/played.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {

TEST_CASE("only random forwards that may run again have a state of a generator") {
  Processor cpu, other;
  cpu.generator_state = Bytes{5056};
  const std::vector<Processor> both{other, cpu};
  Workload workload = test::workload_of(R"(
workload: g
graph:
  - {name: a, time: 1 s, outputs: {x: 1 B}, random: true, recompute: false}
  - {name: b, inputs: [x], time: 1 s, outputs: {y: 1 B}, random: true}
  - {name: c, inputs: [y], time: 1 s}
)");
  const std::size_t tensors = workload.tensors.size();
  add_generator_states(workload, {&other, 1});
  CHECK(workload.tensors.size() == tensors);
  add_generator_states(workload, both);
  REQUIRE(workload.tensors.size() == tensors + 1);
  CHECK(workload.operators[0].generator == kNoTensor);
  CHECK(workload[workload.operators[1].generator].name == "generator of b");
  CHECK(workload[workload.operators[1].generator].bytes == Bytes{5056});
  CHECK(workload.operators[2].generator == kNoTensor);
  CHECK(generator_key(both) != generator_key({&other, 1}));
}

}  // namespace plimsoll
