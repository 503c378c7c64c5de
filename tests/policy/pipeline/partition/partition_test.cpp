// Partitions against brute force, and their plans played.
#include "policy/pipeline/partition/partition.hpp"

#include "policy/pipeline/partition/pipedream_partition.hpp"
#include "policy/pipeline/partition/slot_weights.hpp"
#include "policy/pipeline/partition/stage_bytes.hpp"
#include "property/random_chains.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/split_pipelines.hpp"
#include "workload/sharding/away_step.hpp"

#include <numeric>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

std::vector<Time> times_of(const std::vector<std::int64_t>& counts) {
  std::vector<Time> times;
  for (const std::int64_t count : counts) times.emplace_back(count);
  return times;
}

std::int64_t greatest_sum(const std::vector<std::int64_t>& times,
                          const std::vector<std::size_t>& cuts) {
  std::int64_t greatest = 0;
  for (std::size_t slot = 0; slot + 1 < cuts.size(); ++slot) {
    std::int64_t sum = 0;
    for (std::size_t i = cuts[slot]; i < cuts[slot + 1]; ++i) sum += times[i];
    greatest = std::max(greatest, sum);
  }
  return greatest;
}

/// Calls `visit` with the cuts of every partition of `stages` into `slots`.
void for_all_cuts(std::size_t stages, std::size_t slots, std::vector<std::size_t>& cuts,
                  const auto& visit) {
  if (cuts.size() == slots) {
    cuts.push_back(stages);
    visit(cuts);
    cuts.pop_back();
    return;
  }
  for (std::size_t cut = cuts.back() + 1; cut + slots - cuts.size() <= stages; ++cut) {
    cuts.push_back(cut);
    for_all_cuts(stages, slots, cuts, visit);
    cuts.pop_back();
  }
}

/// A chain of random stages, and what its slots cost.
struct RandomStages {
  explicit RandomStages(test::Dice& dice) : count(static_cast<std::size_t>(dice(1, 7))) {
    for (std::size_t s = 0; s < count; ++s) {
      forward.push_back(dice(0, 5));
      backward.push_back(dice(0, 5));
      output.push_back(dice(0, 4));
      saved.push_back(output.back() + dice(0, 9));
      parameters.push_back(dice(0, 6));
    }
  }

  [[nodiscard]] std::string yaml() const {
    std::string text = "workload: stages\nchain:\n";
    for (std::size_t s = 0; s < count; ++s)
      text += fmt::format(
          "  - {{name: s{}, forward: {} s, backward: {} s, output: {} B, saved: {} B, "
          "parameters: {} B}}\n",
          s, forward[s], backward[s], output[s], saved[s], parameters[s]);
    return text;
  }

  /// Parameters and gradients, and `kept` times what is saved and received, over stages.
  [[nodiscard]] std::int64_t memory(std::size_t begin, std::size_t end, std::int64_t kept) const {
    std::int64_t bytes = begin == 0 ? 0 : kept * output[begin - 1];
    for (std::size_t s = begin; s < end; ++s) bytes += 2 * parameters[s] + kept * saved[s];
    return bytes;
  }

  [[nodiscard]] std::int64_t time(std::size_t begin, std::size_t end) const {
    std::int64_t sum = 0;
    for (std::size_t s = begin; s < end; ++s) sum += forward[s] + backward[s];
    return sum;
  }

  std::size_t count;
  std::vector<std::int64_t> forward, backward, output, saved, parameters;
};

/// The last of the cuts in lexicographic order with the least cost.
std::vector<std::size_t> best_cuts(std::size_t stages, std::size_t slots, const auto& cost) {
  std::vector<std::size_t> cuts{0}, best;
  std::int64_t least = INT64_MAX;
  for_all_cuts(stages, slots, cuts, [&](const std::vector<std::size_t>& all) {
    if (const std::int64_t it = cost(all); it < least || (it == least && all > best)) {
      least = it;
      best = all;
    }
  });
  return best;
}

Partition partition_of(const std::string& name, std::int64_t microbatches,
                       const std::string& workload, const std::string& platform,
                       std::int64_t virtual_stages = 1,
                       const SlotPlacement& placement = loop_placement) {
  const Workload chain = test::workload_of(workload);
  const Platform devices = test::platform_of(platform);
  const Topology topology(devices);
  const ChainView view = chain_view(chain);
  PipelineParameters parameters;
  parameters.name = "pipeline/1f1b";
  parameters.microbatches = microbatches;
  parameters.virtual_stages = virtual_stages;
  parameters.partition = Located<PartitionChoice>{PartitionChoice(name), {}};
  const Problem problem{chain, view, devices, topology};
  return partition_for(problem, parameters, pipeline_devices(problem, parameters), placement);
}

std::vector<std::size_t> cuts_of(const std::string& name, std::int64_t microbatches,
                                 const std::string& workload, const std::string& platform) {
  return partition_of(name, microbatches, workload, platform).cuts;
}

/// By pass over so many devices: the cost of its costliest slot.
std::vector<std::int64_t> pass_costs(const std::vector<std::size_t>& cuts, std::size_t devices,
                                     const auto& slot_cost) {
  std::vector<std::int64_t> costs;
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    if (k % devices == 0) costs.push_back(0);
    costs.back() = std::max(costs.back(), slot_cost(k, cuts[k], cuts[k + 1]));
  }
  return costs;
}

std::int64_t sum_of(const std::vector<std::int64_t>& costs) {
  return std::accumulate(costs.begin(), costs.end(), std::int64_t{0});
}

/// What the default makes least, in halves of a mini-batch's estimated time: 2 m of every pass, and
/// p - 1 of the first pass and twice that of the costliest, which are waited for at both ends.
std::int64_t twice_the_time(const std::vector<std::int64_t>& costs, std::int64_t devices,
                            std::int64_t m) {
  return 2 * m * sum_of(costs) +
         (devices - 1) * (2 * *std::ranges::max_element(costs) + costs.front());
}

/// A link of 1 B/s between any two devices.
std::string all_to_all(std::size_t devices) {
  std::string memories, processors, links;
  for (std::size_t i = 0; i < devices; ++i) {
    memories += fmt::format("  hbm{}: {{capacity: unlimited}}\n", i);
    processors += fmt::format("  gpu{0}: {{memory: hbm{0}}}\n", i);
    for (std::size_t j = 0; j < i; ++j)
      links += fmt::format("  l{0}_{1}: {{between: [hbm{0}, hbm{1}], bandwidth: 1 B/s}}\n", j, i);
  }
  if (!links.empty()) links = "links:\n" + links;
  return "platform: mesh\nmemories:\n" + memories + "processors:\n" + processors + links;
}

/// The least of `value` over all cuts.
std::int64_t least_of(std::size_t stages, std::size_t slots, const auto& value) {
  std::vector<std::size_t> cuts{0};
  std::int64_t least = INT64_MAX;
  for_all_cuts(stages, slots, cuts, [&](const auto& all) { least = std::min(least, value(all)); });
  return least;
}

/// The cuts with the least greatest sum, of those the lexicographically greatest: the one that
/// fills the first slots most.
struct BruteForce {
  const std::vector<std::int64_t>& times;
  std::vector<std::size_t> best, cuts{0};
  std::int64_t least = INT64_MAX;

  void search(std::size_t slots) {
    if (slots == 1) {
      cuts.push_back(times.size());
      const std::int64_t sum = greatest_sum(times, cuts);
      if (sum < least || (sum == least && cuts > best)) {
        least = sum;
        best = cuts;
      }
      cuts.pop_back();
      return;
    }
    for (std::size_t cut = cuts.back() + 1; cut + slots - 1 <= times.size(); ++cut) {
      cuts.push_back(cut);
      search(slots - 1);
      cuts.pop_back();
    }
  }
};

}  // namespace

TEST_CASE("a balanced partition by hand") {
  // 4 1 1 4 2 in two: 6 | 6, not 4 1 1 4 | 2. In three: least is 6 (4 + 2 cannot be split
  // from two further slots with less): 4 1 1 | 4 2 needs one more cut, the first slot stays full.
  CHECK(balanced_partition(times_of({4, 1, 1, 4, 2}), 2).cuts == std::vector<std::size_t>{0, 3, 5});
  CHECK(balanced_partition(times_of({1, 1, 1, 1}), 4).cuts ==
        std::vector<std::size_t>{0, 1, 2, 3, 4});
  CHECK(balanced_partition(times_of({0, 0, 0}), 2).cuts == std::vector<std::size_t>{0, 2, 3});
  CHECK(balanced_partition(times_of({7}), 1).cuts == std::vector<std::size_t>{0, 1});
}

TEST_CASE("the balanced partition is exact, and fills the first slots most") {
  test::Dice dice(20240621);
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::int64_t> times(static_cast<std::size_t>(dice(1, 9)));
    for (std::int64_t& time : times) time = dice(0, 2) == 0 ? 0 : dice(1, 12);
    const auto slots = static_cast<std::size_t>(dice(1, static_cast<std::int64_t>(times.size())));
    BruteForce brute{times, {}, {0}, INT64_MAX};
    brute.search(slots);
    const Partition partition = balanced_partition(times_of(times), slots);
    CAPTURE(times, slots);
    REQUIRE(partition.slots() == slots);
    REQUIRE(partition.cuts == brute.best);
    REQUIRE(greatest_sum(times, partition.cuts) == brute.least);
  }
}

TEST_CASE("balanced-memory makes the greatest memory of 1F1B's devices least") {
  test::Dice dice(20240912);
  for (int round = 0; round < 1500; ++round) {
    const RandomStages stages(dice);
    const auto slots = static_cast<std::size_t>(dice(1, static_cast<std::int64_t>(stages.count)));
    const std::int64_t m = dice(1, 4);
    const auto best = best_cuts(stages.count, slots, [&](const std::vector<std::size_t>& cuts) {
      std::int64_t greatest = 0;
      for (std::size_t k = 0; k < slots; ++k)
        greatest = std::max(
            greatest,
            stages.memory(cuts[k], cuts[k + 1], std::min(m, static_cast<std::int64_t>(slots - k))));
      return greatest;
    });
    CAPTURE(stages.yaml(), slots, m);
    REQUIRE(cuts_of("balanced-memory", m, stages.yaml(),
                    test::row_yaml(static_cast<std::int64_t>(slots), "0 s")) == best);
  }
}

TEST_CASE("pipedream makes the slowest of stages and transfers fastest, as its program does") {
  test::Dice dice(20240913);
  for (int round = 0; round < 1000; ++round) {
    const RandomStages stages(dice);
    const auto slots = static_cast<std::size_t>(dice(1, static_cast<std::int64_t>(stages.count)));
    // At 1 B/s over a link of its own, value and gradient take 2 a_i seconds.
    std::string platform =
        test::row_yaml(static_cast<std::int64_t>(slots), "0 s, bandwidth: 1 B/s");
    const auto time_of = [&](const std::vector<std::size_t>& cuts) {
      std::int64_t slowest = 0;
      for (std::size_t k = 0; k < slots; ++k) {
        slowest = std::max(slowest, stages.time(cuts[k], cuts[k + 1]));
        if (k > 0) slowest = std::max(slowest, 2 * stages.output[cuts[k] - 1]);
      }
      return slowest;
    };
    const auto cuts = cuts_of("pipedream", 1, stages.yaml(), platform);
    CAPTURE(stages.yaml(), slots);
    REQUIRE(cuts == best_cuts(stages.count, slots, time_of));

    std::vector<PipedreamState> states;
    for (std::size_t s = 0; s < stages.count; ++s)
      states.push_back({test::seconds(stages.time(s, s + 1)), {}, {}, Bytes{stages.output[s]}});
    const auto program =
        pipedream_partition(states, {{static_cast<std::uint32_t>(slots), ByteRate{1}}},
                            {.compression_ratio = 1, .memory = std::nullopt, .straight = true});
    REQUIRE(program->stage_time == test::seconds(time_of(cuts)));
  }
}

TEST_CASE("an uneven network: an embedding and a head weigh on the ends, and are seen there") {
  // Stages of parameters 8 0 0 0 8 and saved 1 each, times 1: balanced by time on two devices is
  // three stages and two. By memory, with two microbatches kept in slot 0 and one in slot 1:
  // 16 + 2 n | 16 + (5 - n): n = 1 gives 18 | 20, n = 2 gives 20 | 19.
  std::string yaml = "workload: ends\nchain:\n";
  for (int s = 0; s < 5; ++s)
    yaml += fmt::format("  - {{name: s{}, forward: 1 s, backward: 1 s, saved: 1 B{}}}\n", s,
                        s % 4 == 0 ? ", parameters: 8 B" : "");
  const Workload workload = test::workload_of(yaml);
  const Platform platform = test::platform_of(test::row_yaml(2, "0 s"));
  const auto played = [&](const char* partition) {
    return test::play_policy(
        fmt::format("{{name: pipeline/1f1b, microbatches: 4, partition: {}}}", partition), workload,
        platform);
  };
  const auto by_time = played("balanced"), by_memory = played("balanced-memory");
  CHECK(std::pair(by_time.peak(MemoryId{0}), by_time.peak(MemoryId{1})) == std::pair(22L, 18L));
  CHECK(std::pair(by_memory.peak(MemoryId{0}), by_memory.peak(MemoryId{1})) == std::pair(20L, 19L));
  CHECK(by_time.metrics.processors[0].busy == test::seconds(4 * 3 * 2));
  CHECK(by_memory.metrics.processors[0].busy == test::seconds(4 * 2 * 2));
  test::require_claims_hold(by_memory);
}

TEST_CASE("with several slots a device the default's estimate of the time is least") {
  test::Dice dice(20261123);
  for (int round = 0; round < 1500; ++round) {
    const RandomStages stages(dice);
    const auto p = static_cast<std::size_t>(dice(1, 3)), v = static_cast<std::size_t>(dice(2, 3));
    if (p * v > stages.count) continue;
    const std::int64_t m = dice(1, 5);
    const bool wave = dice(0, 1) == 1;
    // On a V the device at each turn hands over to itself; else a message of a_i and one of its
    // gradient take 2 a_i seconds. Over a loop the last device has a link to the first.
    const auto placed = (wave ? wave_placement : loop_placement)(static_cast<std::uint32_t>(p),
                                                                 static_cast<std::uint32_t>(v));
    const auto cost = [&](std::size_t k, std::size_t begin, std::size_t end) {
      const bool crosses = k > 0 && placed[k] != placed[k - 1];
      return stages.time(begin, end) + (crosses ? 2 * stages.output[begin - 1] : 0);
    };
    const auto value = [&](const std::vector<std::size_t>& cuts) {
      return twice_the_time(pass_costs(cuts, p, cost), static_cast<std::int64_t>(p), m);
    };
    const auto cuts =
        partition_of("balanced", m, stages.yaml(), all_to_all(p), static_cast<std::int64_t>(v),
                     wave ? wave_placement : loop_placement)
            .cuts;
    CAPTURE(stages.yaml(), p, v, m, wave, cuts);
    REQUIRE(value(cuts) == least_of(stages.count, p * v, value));
  }
}

TEST_CASE("of cuts that cost a pass no more, the default's greatest slot holds least") {
  // Seven stages of 2 s on two devices, two passes, no messages: three stages, then four, at 4 s a
  // pass, as are four, then three; the first pass is filled least. It is 2 1 or 1 2; two
  // microbatches are under way in either slot (4 / 2, and 3 / 2 rounded up), and the first stage
  // saves 9 B for each: with the second one slot 0 holds 20 B, without it 18 B.
  std::string yaml = "workload: heavy\nchain:\n";
  for (int s = 0; s < 7; ++s)
    yaml += fmt::format("  - {{name: s{}, forward: 1 s, backward: 1 s, saved: {} B}}\n", s,
                        s == 0 ? 9 : 1);
  CHECK(partition_of("balanced", 4, yaml, test::row_yaml(2, "0 s"), 2).cuts ==
        std::vector<std::size_t>{0, 1, 3, 5, 7});
}

TEST_CASE("balanced-memory and pipedream cut for several slots a device, pass by pass") {
  test::Dice dice(20261124);
  for (int round = 0; round < 1000; ++round) {
    const RandomStages stages(dice);
    const auto p = static_cast<std::size_t>(dice(1, 3)), v = static_cast<std::size_t>(dice(2, 3));
    if (p * v > stages.count) continue;
    const std::int64_t m = dice(1, 5);
    const auto memory = [&](std::size_t k, std::size_t begin, std::size_t end) {
      const auto under_way = static_cast<std::int64_t>((p * v - k + v - 1) / v);
      return stages.memory(begin, end, std::min(m, under_way));
    };
    const auto time = [&](std::size_t k, std::size_t begin, std::size_t end) {
      const std::int64_t message = k > 0 && p > 1 ? 2 * stages.output[begin - 1] : 0;
      return std::max(stages.time(begin, end), message);
    };
    const auto least = [&](const auto& cost) {
      return least_of(stages.count, p * v, [&](const std::vector<std::size_t>& cuts) {
        return sum_of(pass_costs(cuts, p, cost));
      });
    };
    const auto cut = [&](const char* name) {
      return partition_of(name, m, stages.yaml(), all_to_all(p), static_cast<std::int64_t>(v));
    };
    CAPTURE(stages.yaml(), p, v, m);
    REQUIRE(sum_of(pass_costs(cut("balanced-memory").cuts, p, memory)) == least(memory));
    const Partition by_time = cut("pipedream");
    REQUIRE(sum_of(pass_costs(by_time.cuts, p, time)) == least(time));
    REQUIRE(by_time.model_period == test::seconds(least(time)));
  }
}

TEST_CASE("a long chain is cut as well where not every place is looked at") {
  // 3,000 stages of 1 to 9 on 4 devices in 4 passes. Sixteen slots of a sixteenth, each at most a
  // stage longer, are one way to cut them: the best one is no worse.
  test::Dice dice(20261125);
  std::vector<std::int64_t> before{0};
  for (int s = 0; s < 3000; ++s) before.push_back(before.back() + dice(1, 9));
  const auto nothing = [](std::size_t, std::size_t) { return std::int64_t{0}; };
  const SlotWeights weights{[&](std::size_t, std::size_t s) { return before[s]; }, nothing,
                            nothing};
  const PassCuts cuts = least_sum_over_passes(weights, 3000, 4, 4, {64, 6, 3});
  CHECK(cuts.passes.back().end == 3000);
  const std::int64_t found =
      64 * sum_of(cuts.costs) + 6 * *std::ranges::max_element(cuts.costs) + 3 * cuts.costs.front();
  CHECK(found * 16 <= (4 * 64 + 6 + 3) * (before.back() + 16 * 9));
}

TEST_CASE("the default cut of GPT-2 medium is no worse than cuts by hand") {
  const Platform platform = test::library_platform("dgx-a100");
  WorkloadOptions options{
      .batch = 32, .microbatch = 1, .optimizer = Optimizer::adamw, .autocast = DType::bf16};
  const WorkloadSource network = test::library_network("gpt2-medium");
  const auto played = [&](const std::string& name, const std::string& more) {
    const std::string policy = fmt::format("{{name: pipeline/{}, microbatches: 32{}}}", name, more);
    options.split_backward = test::bound_policy(policy).splits_backward;
    const Workload workload = build(network, options);
    const test::Played it = test::play_policy(policy, workload, platform);
    REQUIRE(it.execution.status == RunStatus::ok);
    Bytes peak;
    for (const MemoryRecord& memory : it.execution.memories)
      peak = std::max(peak, memory.peak.requested);
    return std::pair(it.execution.makespan, peak);
  };
  const auto require_no_worse = [&](const std::string& name, const std::string& stages,
                                    const std::string& by_hand, std::int64_t most_us) {
    const auto chosen = played(name, stages), hand = played(name, stages + by_hand);
    CAPTURE(name);
    CHECK(chosen.first <= Time{most_us * 1'000'000});
    CHECK(chosen.first <= hand.first);
    CHECK(chosen.second <= hand.second);
  };
  require_no_worse("interleaved-1f1b", ", virtual_stages: 3",
                   ", partition: [5, 8, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35, 37, "
                   "39, 41, 43, 45, 47, 49, 51]",
                   266'800);
  require_no_worse("zb-v", "",
                   ", partition: [5, 9, 13, 16, 19, 22, 25, 28, 31, 34, 37, 40, 44, 48, 51]",
                   269'400);
}

TEST_CASE("of the default's two cuts for several slots a device, the faster one is played") {
  // Interleaved passes over ResNet-50 on PCIe want equal slots; GPT-2 wants equal passes.
  struct Case {
    const char *network, *platform, *policy;
    std::int64_t samples;  ///< of a microbatch
    std::size_t faster;
  };
  const Case cases[] = {
      {"resnet50", "pcie-4gpu-workstation", "interleaved-1f1b, virtual_stages: 2", 16, 1},
      {"resnet50", "pcie-4gpu-workstation", "interleaved-zb, virtual_stages: 2", 16, 1},
      {"resnet50", "pcie-4gpu-workstation", "v-min", 16, 1},
      {"gpt2-small", "pcie-4gpu-workstation", "zb-v", 2, 0},
      {"gpt2-small", "pcie-4gpu-workstation", "interleaved-1f1b, virtual_stages: 2", 2, 0},
  };
  for (const Case& it : cases) {
    CAPTURE(it.network, it.policy);
    const std::string policy = fmt::format("name: pipeline/{}, microbatches: 8", it.policy);
    const WorkloadOptions options{
        .batch = 8 * it.samples,
        .microbatch = it.samples,
        .split_backward = test::bound_policy("{" + policy + "}").splits_backward};
    const Workload workload = build(test::library_network(it.network), options);
    const Platform platform = test::library_platform(it.platform);
    const ChainView chain = chain_view(workload);
    const Topology topology(platform);
    const Problem problem{workload, chain, platform, topology};
    PipelineParameters parameters;
    parameters.virtual_stages = 2;
    parameters.microbatches = 8;
    const bool is_loop = std::string_view(it.policy).starts_with("inter");
    const auto cuts = partitions_for(problem, parameters, pipeline_devices(problem, parameters),
                                     is_loop ? loop_placement : wave_placement);
    REQUIRE(cuts.size() == 2);
    const auto makespan = [&](const std::string& more) {
      const test::Played played =
          test::play_policy(fmt::format("{{{}{}}}", policy, more), workload, platform);
      REQUIRE(played.execution.status == RunStatus::ok);
      return played.execution.makespan;
    };
    std::vector<Time> with;
    for (const Partition& cut : cuts)
      with.push_back(makespan(
          fmt::format(", partition: [{}]",
                      fmt::join(std::get<std::vector<std::int64_t>>(as_choice(cut)), ", "))));
    CHECK(with[it.faster] < with[1 - it.faster]);
    CHECK(makespan("") == with[it.faster]);
  }
}

// Parameters of 4 bytes and moments of 8, whether updates read gradients where they are made or fetch
// them from another memory, where their 4 bytes are.
TEST_CASE("stages hold the state of updates that fetch gradients") {
  WorkloadOptions options;
  options.optimizer = Optimizer::adam;
  const Workload step = test::workload_of(
      "workload: net\ninput: {shape: [64]}\nlayers:\n  - linear: {features: 64, bias: false}\n"
      "  - linear: {features: 64, bias: false}\n  - linear: {features: 64, bias: false}\n",
      options);
  AwayState away;
  away.gradients = true;
  away.is_at_updates[static_cast<std::size_t>(Home::processor)] = true;
  away.prefetch = 0;
  away.by_chain_stage = true;
  const Platform platform = test::platform_of(test::row_yaml(2, "0 s"));
  const Topology topology(platform);
  const auto resident = [&](const Workload& of) {
    const ChainView chain = chain_view(of);
    std::int64_t sum = 0;
    for (const StageBytes& stage :
         stage_bytes(Problem{of, chain, platform, topology, judge_by_execution}))
      sum += stage.resident.count();
    return sum;
  };
  CHECK(resident(step) == 3 * 64 * 64 * (4 + 4 + 8));
  CHECK(resident(as_seen_here(away_step(step, away), false)) == 3 * 64 * 64 * (4 + 8));
}

TEST_CASE("a named partition refuses what it does not model") {
  const auto error = [](const std::string& keys) {
    try {
      const Workload workload = test::workload_of(test::split_chain_yaml(4, {"1 s", "1 s", "1 s"}));
      (void)test::planned(
          "{name: pipeline/interleaved-1f1b, virtual_stages: 2, microbatches: 2, " + keys + "}",
          workload, test::platform_of(test::row_yaml(2, "0 s")));
    } catch (const InputError& problem) {
      return std::string(problem.what());
    }
    return std::string("no error");
  };
  CHECK(error("partition: pipedream") == "no error");
  CHECK(error("partition: 1f1b-star") ==
        "policy:1:82: error: `1f1b-star` finds the cuts for `pipeline/1f1b-star`; "
        "`pipeline/interleaved-1f1b` has another schedule");
}

}  // namespace plimsoll
