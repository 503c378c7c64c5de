// What is read off a plan about who runs which part of a network.
#include "execution/held_stages.hpp"

#include "support/policies.hpp"

using namespace plimsoll;
using namespace plimsoll::test;

namespace {

const std::string kFour =
    "workload: w\ninput: 4 B\nchain:\n"
    "  - {name: a, forward: 1 s, backward: 1 s, output: 4 B, saved: 4 B}\n"
    "  - {name: b, forward: 1 s, backward: 1 s, output: 4 B, saved: 4 B}\n"
    "  - {name: c, forward: 1 s, backward: 1 s, output: 4 B, saved: 4 B}\n"
    "  - {name: d, forward: 1 s, backward: 1 s, output: 4 B, saved: 4 B}\n";

std::vector<std::string> held(const std::string& policy, int devices) {
  const Workload workload = workload_of(kFour);
  const Platform platform = platform_of(fmt::format(
      "platform: c\nmemories: {{m: {{capacity: unlimited}}}}\nprocessors: {{p: {{memory: m}}}}\n"
      "cluster: {{count: {}, topology: mesh, link: {{name: l}}}}\n",
      devices));
  std::vector<std::string> lines;
  for (const HeldStages& stages : held_stages(planned(policy, workload, platform), workload)) {
    std::string line = to_text(stages) + " on";
    for (const ProcessorId processor : stages.processors)
      line += fmt::format(" {}", static_cast<std::size_t>(processor));
    lines.push_back(line);
  }
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("the stages that processors hold are read off the plan") {
  CHECK(held("{name: pipeline/1f1b, microbatches: 2, partition: [3]}", 2) ==
        Lines{"1 to 3, a to c on 0", "4, d on 1"});
  CHECK(held("{name: pipeline/interleaved-1f1b, microbatches: 2, virtual_stages: 2}", 2) ==
        Lines{"1, a on 0", "2, b on 1", "3, c on 0", "4, d on 1"});
  CHECK(held("{name: pipeline/chimera, microbatches: 2}", 2) == Lines{"1 to 4, a to d on 0 1"});
}

TEST_CASE("replicas hold what they run, played or not") {
  for (const char* how : {"data_parallel", "replicas"})
    CHECK(held(fmt::format("{{name: pipeline/gpipe, microbatches: 4, {}: 2}}", how), 4) ==
          Lines{"1 to 2, a to b on 0 1", "3 to 4, c to d on 2 3"});
}

TEST_CASE("a network on one processor is not cut") {
  CHECK(held("none", 1).empty());
}
