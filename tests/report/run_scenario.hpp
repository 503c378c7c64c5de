/// Runs a scenario that is written in a test.
#pragma once

#include "base/document.hpp"
#include "scenario/run/run.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace plimsoll {

inline constexpr std::int64_t kMiB = 1 << 20;

struct RanScenario {
  Scenario scenario;
  std::vector<RunResult> results;
};

inline RanScenario run_scenario(const std::string& text) {
  const Node document = parse_document(text, "test.yaml");
  RanScenario ran{read_scenario(document, "."), {}};
  ran.results = run(ran.scenario);
  return ran;
}

/// Two stages on one processor; `memory` completes the mapping of its memory.
inline std::string two_stages(const std::string& capacity, const std::string& policy,
                              const std::string& power = "") {
  return "scenario: two-stages\n"
         "platform:\n"
         "  platform: bench\n"
         "  memories:\n"
         "    sram: {capacity: " +
         capacity +
         "}\n"
         "    sd: {capacity: unlimited}\n"
         "  processors:\n"
         "    cpu: {memory: sram" +
         power +
         "}\n"
         "  links:\n"
         "    spi: {between: [sram, sd], bandwidth: 400 MiB/s}\n"
         "workload:\n"
         "  workload: pair\n"
         "  input: 1 MiB\n"
         "  batch: 4\n"
         "  chain:\n"
         "    - {name: s1, forward: 10 ms, backward: 20 ms, output: 1 MiB, saved: 4 MiB}\n"
         "    - {name: s2, forward: 5 ms, backward: 10 ms, output: 2 MiB, saved: 3 MiB}\n"
         "policy: " +
         policy + "\n";
}

}  // namespace plimsoll
