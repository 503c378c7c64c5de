// Planning by remat/rotor against the length of the chain, in slots and without rounding.
//
//   bench_rotor [percent of what keeping everything needs]
//
// Random chains: forwards of 1 to 20 ms in whole ps, backwards twice that, outputs of 1 to 10 MB in
// whole bytes, up to 30 MB more saved. Prints for each length and number of slots the CPU seconds,
// the MiB of the largest table, its values, and what is run again as a share of the forwards; for
// 500 slots the exponent of the seconds in the length, fitted by least squares. Then the networks
// of the library that have the most stages, batch 32.
#include "cpu_clock.hpp"
#include "policy/remat/rotor/rotor_frontier.hpp"
#include "power_law.hpp"
#include "scenario/run/run.hpp"

#include <cstdio>
#include <random>
#include <string>
#include <utility>
#include <vector>

using namespace plimsoll;

namespace {

constexpr std::int64_t kMostValues = std::int64_t{1} << 27;

ChainCosts random_costs(std::size_t stages) {
  std::mt19937_64 random(1);
  const auto draw = [&](std::uint64_t low, std::uint64_t high) {
    return static_cast<std::int64_t>(low + random() % (high - low + 1));
  };
  ChainCosts costs;
  costs.stages.resize(stages);
  for (StageCosts& stage : costs.stages) {
    stage.forward = Time{draw(1'000'000'000, 20'000'000'000)};
    stage.backward = stage.forward * 2;
    stage.output = Bytes{draw(1'000'000, 10'000'000)};
    stage.saved = stage.output + Bytes{draw(0, 30'000'000)};
    stage.gradient = stage.output;
  }
  return costs;
}

ChainCosts network_costs(const std::string& name) {
  const std::string text = "scenario: bench\nplatform: v100-sxm2-host\nworkload: {model: " + name +
                           ", batch: 32, optimizer: sgd-momentum}\npolicy: none\n";
  const Scenario scenario = read_scenario(parse_document(text, "bench"), ".");
  const Workload workload = build(scenario.workload, scenario.workload_options);
  const Topology topology(scenario.platform);
  const ChainView view = chain_view(workload);
  return chain_costs(Problem{workload, view, scenario.platform, topology}, ProcessorId{0});
}

/// Bytes that all stages save, a share of them, and what gradients of parameters need.
Bytes available(const ChainCosts& costs, std::int64_t percent) {
  Bytes saved, lasting;
  for (const StageCosts& stage : costs.stages) {
    saved += stage.saved;
    lasting += stage.lasting;
  }
  return Bytes{saved.count() / 100 * percent} + lasting;
}

double report(const std::string& what, std::size_t stages, const std::string& slots,
              std::int64_t forward, auto solve) {
  const double begin = bench::cpu_seconds();
  std::optional<RotorSchedule> found;
  try {
    found = solve();
  } catch (const TableTooLarge& table) {
    std::printf("%-10s %5zu %6s   more than %lld values\n", what.c_str(), stages, slots.c_str(),
                static_cast<long long>(table.most));
    return 0;
  }
  const double seconds = bench::cpu_seconds() - begin;
  if (!found) {
    std::printf("%-10s %5zu %6s %9.4f   infeasible\n", what.c_str(), stages, slots.c_str(),
                seconds);
    return seconds;
  }
  std::printf("%-10s %5zu %6s %9.4f %8.1f %10lld %8.4f\n", what.c_str(), stages, slots.c_str(),
              seconds, static_cast<double>(found->table_bytes) / 1048576.0,
              static_cast<long long>(found->values),
              static_cast<double>(found->recomputed) / static_cast<double>(forward));
  return seconds;
}

/// Slots, then exact within what the slots have found, as the policy does; the seconds of each.
std::pair<double, double> report_both(const std::string& what, const ChainCosts& costs,
                                      std::int64_t slots, std::int64_t percent) {
  const std::int64_t unit = size_unit(costs);
  const Bytes bytes = available(costs, percent);
  const RotorChain chain = rotor_chain(costs, unit, bytes, slots);
  const RotorChain exact = rotor_chain(costs, unit, bytes, bytes.count());
  const std::size_t stages = costs.stages.size();
  const double in_slots = report(what, stages, std::to_string(slots), chain.forward.back(),
                                 [&] { return rotor_in_slots(chain, kMostValues); });
  const double exactly = report(what, stages, "exact", chain.forward.back(), [&] {
    return rotor_exact(exact, rotor_in_slots(chain, kMostValues), kMostValues / 2);
  });
  return {in_slots, exactly};
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t percent = bench::argument(argc, argv, 1, 25);
  std::printf("chain     stages  slots   seconds      MiB     values    rerun\n");
  std::vector<std::pair<double, double>> in_slots, exactly;
  for (const auto& [stages, slots] : {std::pair<std::size_t, std::int64_t>{50, 100},
                                      {50, 500},
                                      {100, 500},
                                      {200, 500},
                                      {300, 500},
                                      {339, 500}}) {
    const auto seconds = report_both("random", random_costs(stages), slots, percent);
    if (slots != 500) continue;
    in_slots.emplace_back(static_cast<double>(stages), seconds.first);
    if (seconds.second > 0) exactly.emplace_back(static_cast<double>(stages), seconds.second);
  }
  for (const char* name : {"resnet152", "gpt2-small", "mobilenet-v2", "vgg19"})
    report_both(name, network_costs(name), 500, percent);
  std::printf("exponent in stages: %.2f in slots, %.2f exact\n", bench::exponent(in_slots),
              bench::exponent(exactly));
  return 0;
}
