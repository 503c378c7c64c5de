// How long pipeline/search takes and how near its bound it comes, on rows of devices.
//
//   bench_pipeline_search [percent of p microbatches that a device may keep]
//
// One and two chain stages a device, whose halves take 6 to 12 ms, messages 1 ms, each microbatch 2
// bytes a stage, of which 1 is for the weight half. Prints for each number of devices and
// microbatches the CPU seconds, the makespan over the bound, and whose schedule it is.
#include "cpu_clock.hpp"
#include "scenario/run/run.hpp"
#include "support/split_pipelines.hpp"

#include <random>
#include <string>

namespace plimsoll {
namespace {

std::string stages_yaml(long stages) {
  std::mt19937_64 random(1);
  const auto draw = [&](std::uint64_t low) { return low + random() % (13 - low); };
  std::string text = "  workload: random\n  chain:\n";
  for (long i = 0; i < stages; ++i)
    text += fmt::format(
        "    - {{name: s{}, forward: {} ms, backward_input: {} ms, backward_weight: {} ms, saved: "
        "2 B, held_for_weight_gradient: 1 B}}\n",
        i, draw(8), draw(8), draw(6));
  return text;
}

std::string indented(const std::string& text) {
  std::string out = "  ";
  for (std::size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) out += "  ";
  }
  return out;
}

void tell(long devices, long microbatches, long chunks, long percent) {
  const long limit = 2 * chunks * devices * percent / 100;
  const std::string text = fmt::format(
      "scenario: bench\nplatform:\n{}workload:\n{}policy: {{name: pipeline/search, microbatches: "
      "{}, virtual_stages: {}, memory_limit: {} B}}\n",
      indented(test::row_yaml(devices, "1 ms")), stages_yaml(devices * chunks), microbatches,
      chunks, limit);
  const Scenario scenario = read_scenario(parse_document(text, "bench.yaml"), ".");
  const double before = bench::cpu_seconds();
  const RunResult result = run(scenario).front();
  const double seconds = bench::cpu_seconds() - before;
  const Plan& plan = result.plan;
  if (!plan.claims.makespan || !plan.bounds.makespan) {
    fmt::print("{:3} devices {:3} microbatches {} stages: no plan\n", devices, microbatches,
               chunks);
    return;
  }
  fmt::print("{:3} devices {:3} microbatches {} stages: {:.2f} s, {:.4f} of the bound, {}\n",
             devices, microbatches, chunks, seconds,
             in_seconds(*plan.claims.makespan) / in_seconds(*plan.bounds.makespan),
             plan.claims.chosen);
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  const long percent = bench::argument(argc, argv, 1, 100);
  for (const long devices : {4, 8, 16})
    for (const long microbatches : {16, 32, 64})
      for (const long chunks : {1, 2}) plimsoll::tell(devices, microbatches, chunks, percent);
}
