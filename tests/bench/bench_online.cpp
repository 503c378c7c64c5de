// How long policies that decide while the program runs take, at half of the memory: GPT-2 with 20, 80
// and 320 blocks and a chain of 1,500 stages. Prints operators, evictions, candidates scored and CPU
// seconds of the run that becomes a plan, its claims included, with the exponent in the operators.
//
//   bench_online
#include "cpu_clock.hpp"
#include "power_law.hpp"
#include "scenario/run/run.hpp"

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace plimsoll;

const char* const kPolicies[] = {"{name: online/dtr}", "{name: online/dtr, score: dtr}",
                                 "{name: online/dte}", "{name: online/coop}",
                                 "{name: online/coop, groups: 4}"};

BoundPolicy bound(const std::string& policy) {
  Diagnostics diagnostics;
  return *bind_policy(parse_document(policy, "bench"), diagnostics);
}

/// A workload on a platform whose memory has no end.
class Here {
 public:
  explicit Here(const std::string& workload)
      : scenario_(read_scenario(
            parse_document("{scenario: bench, platform: h200-sxm-141gb, set: "
                           "{memories.hbm.capacity: unlimited}, policy: none, workload: " +
                               workload + "}",
                           "bench"),
            ".")),
        workload_(build(scenario_.workload, scenario_.workload_options)),
        chain_(chain_view(workload_)),
        topology_(scenario_.platform) {}

  [[nodiscard]] double operators() const { return static_cast<double>(workload_.operators.size()); }
  [[nodiscard]] Plan plan(const std::string& policy) const {
    return std::get<Plan>(
        bound(policy).plan(Problem{workload_, chain_, scenario_.platform, topology_}));
  }
  [[nodiscard]] std::string half_of_the_peak() const {
    const Plan none = plan("{name: none}");
    return std::to_string(none.claims.peak.front().second.count() / 2) + " B";
  }

 private:
  Scenario scenario_;
  Workload workload_;
  ChainView chain_;
  Topology topology_;
};

/// CPU seconds.
double measure(const std::string& what, const Here& here, const std::string& policy) {
  const std::string half = ", budget: " + here.half_of_the_peak() + "}";
  const std::string within = policy.substr(0, policy.size() - 1) + half;
  const double start = bench::cpu_seconds();
  const Plan plan = here.plan(within);
  const double seconds = bench::cpu_seconds() - start;
  const EvictionClaims& counted = *plan.claims.eviction;
  std::printf("%-18s %-32s %7.0f operators  %6lld evictions  %10lld scores  %8.3f s%s\n",
              what.c_str(), policy.c_str(), here.operators(),
              static_cast<long long>(counted.evictions),
              static_cast<long long>(counted.score_evaluations), seconds,
              plan.claims.makespan ? "" : "  out of memory");
  return seconds;
}

}  // namespace

int main() {
  for (const char* policy : kPolicies) {
    std::vector<std::pair<double, double>> points;
    for (const int blocks : {20, 80, 320}) {
      const Here here("{model: gpt2-small, batch: 2, optimizer: adam, with: {blocks: " +
                      std::to_string(blocks) + "}}");
      points.emplace_back(here.operators(),
                          measure("GPT-2, blocks: " + std::to_string(blocks), here, policy));
    }
    std::printf("%-18s %-32s exponent %.2f\n", "", policy, bench::exponent(points));
    const Here chain(
        "{workload: chain, input: 1 MiB, chain: [{repeat: 1500, items: [{name: \"s{i}\", forward: "
        "1 "
        "ms, backward: 2 ms, output: 1 MiB, saved: 2 MiB}]}]}");
    (void)measure("1,500 stages", chain, policy);
  }
}
