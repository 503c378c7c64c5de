// PipeDream's partition against the recorded runs of its program and against all partitions.
#include "policy/pipeline/partition/pipedream_partition.hpp"

#include "property/random_chains.hpp"
#include "support/oracles.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::json;

std::vector<PipedreamState> states_of(const json& profile) {
  std::vector<PipedreamState> states;
  for (const json& state : profile.at("states"))
    states.push_back({Time{state.at("compute_us").get<std::int64_t>() * 1'000'000},
                      Bytes{state.at("activations").get<std::int64_t>()},
                      Bytes{state.at("parameters").get<std::int64_t>()},
                      Bytes{state.at("output").get<std::int64_t>()}});
  return states;
}

struct Run {
  explicit Run(const json& row) {
    for (std::size_t l = 0; l < row.at("machines").size(); ++l)
      levels.push_back(
          {row.at("machines").at(l), ByteRate{row.at("bandwidth").at(l).get<std::int64_t>()}});
    for (const json& flag : row.at("flags")) {
      if (flag == "--activation_compression_ratio") options.compression_ratio = 1;
      if (flag == "--straight_pipeline") options.straight = true;
      if (flag == "--use_memory_constraint") options.memory = Bytes{16'000'000'000};
    }
  }
  std::vector<PipedreamLevel> levels;
  PipedreamOptions options;
};

std::vector<std::uint32_t> replicas(const std::vector<ReplicatedStage>& stages) {
  std::vector<std::uint32_t> all;
  for (const ReplicatedStage& stage : stages) all.push_back(stage.replicas);
  return all;
}

std::vector<std::uint32_t> replicas(const json& stages) {
  std::vector<std::uint32_t> all;
  for (const json& stage : stages) all.push_back(stage.at(2));
  return all;
}

std::int64_t quotient(std::int64_t a, std::int64_t b) {
  return a / b + (a % b == 0 ? 0 : 1);
}

/// The value of stages on one level of machines, written from the formulas; nullopt where one does
/// not pass the memory test. The first stage is tested as one stage of the machines that it has.
std::optional<std::int64_t> value(const std::vector<PipedreamState>& states,
                                  const std::vector<ReplicatedStage>& stages,
                                  const PipedreamLevel& level, const PipedreamOptions& options) {
  std::int64_t slowest = 0, machines = 0;
  const auto over = [&](std::int64_t bytes, std::int64_t r) {
    return quotient(bytes * 1'000'000'000'000, level.bandwidth.count() * r);
  };
  for (std::size_t s = 0; s < stages.size(); ++s) {
    const std::int64_t r = stages[s].replicas;
    machines += r;
    std::int64_t compute = 0, parameters = 0, kept = 0;
    for (std::size_t i = stages[s].begin; i < stages[s].end; ++i) {
      compute += states[i].compute.count();
      parameters += states[i].parameters.count();
      kept += (states[i].activations + states[i].parameters).count();
    }
    if (options.memory && quotient(level.machines - machines, r) * kept > options.memory->count())
      return std::nullopt;
    slowest = std::max(slowest, quotient(compute + over(4 * (r - 1) * parameters, r), r));
    if (s == 0 || !options.compression_ratio) continue;
    const auto sent = [&](std::size_t end) {
      return end == states.size() ? 0
                                  : quotient(over(2 * states[end - 1].output.count(), r),
                                             *options.compression_ratio);
    };
    slowest = std::max({slowest, sent(stages[s].begin), sent(stages[s].end)});
  }
  return slowest;
}

/// Every partition of states from `begin` on `machines` machines.
void visit_all(std::vector<ReplicatedStage>& stages, std::size_t begin, std::size_t states,
               std::uint32_t machines, const auto& visit) {
  if (begin == states && machines == 0) return visit(stages);
  for (std::size_t end = begin + 1; end <= states; ++end)
    for (std::uint32_t r = 1; r <= machines; ++r) {
      stages.push_back({begin, end, r});
      visit_all(stages, end, states, machines - r, visit);
      stages.pop_back();
    }
}

}  // namespace

TEST_CASE("pipedream's partition: the recorded runs of the program on vgg16 and alexnet") {
  const json oracle = test::oracle("pipeline_pipedream.json");
  for (const json& row : oracle.at("runs")) {
    INFO(row.dump());
    const auto states = states_of(oracle.at("profiles").at(row.at("model").get<std::string>()));
    const Run run(row);
    const auto partition = pipedream_partition(states, run.levels, run.options);
    REQUIRE(partition);
    const double expected = row.at("stage_time_s");
    // Quotients are rounded up: a few ps above, never below but for the program's own rounding.
    CHECK(std::abs(in_seconds(partition->stage_time) - expected) < 1e-9 * expected);
    REQUIRE(partition->levels.size() == row.at("levels").size());
    if (row.at("tied")) continue;
    for (std::size_t l = 0; l < partition->levels.size(); ++l)
      CHECK(replicas(partition->levels[l]) == replicas(row.at("levels").at(l)));
  }
}

TEST_CASE("pipedream's partition is the best of all in its model") {
  test::Dice dice(20240911);
  for (int round = 0; round < 1500; ++round) {
    std::vector<PipedreamState> states(static_cast<std::size_t>(dice(1, 5)));
    for (PipedreamState& state : states)
      state = {Time{dice(0, 40)}, Bytes{dice(0, 9)}, Bytes{dice(0, 9)}, Bytes{dice(0, 9)}};
    const PipedreamLevel level{static_cast<std::uint32_t>(dice(1, 5)),
                               ByteRate{dice(1, 4) * 1'000'000'000'000}};
    PipedreamOptions options;
    if (dice(0, 1) == 1) options.compression_ratio = dice(1, 3);
    if (dice(0, 1) == 1) options.memory = Bytes{dice(0, 60)};
    options.straight = dice(0, 2) == 0;
    std::optional<std::int64_t> best;
    std::vector<ReplicatedStage> stages;
    visit_all(stages, 0, states.size(), level.machines, [&](const auto& all) {
      if (options.straight &&
          std::ranges::any_of(all, [](const auto& s) { return s.replicas > 1; }))
        return;
      const auto it = value(states, all, level, options);
      if (it && (!best || *it < *best)) best = it;
    });
    const auto partition = pipedream_partition(states, {level}, options);
    REQUIRE(partition.has_value() == best.has_value());
    if (!partition) continue;
    REQUIRE(partition->stage_time.count() == *best);
    REQUIRE(value(states, partition->levels.front(), level, options) == best);
  }
}

TEST_CASE("pipedream's partition of two levels, by hand") {
  // Two nodes of two machines, no transfers: a pair within a node halves what it is given. State 1
  // has a parameter whose all-reduce between the nodes takes 4 B / (2 x 1 B/s) / 2 = 1 s, so no
  // stage is on both: of 6 4 2 ps one node takes 6, the other 4 2, each 3 ps. Within the second
  // node 4 | 2 would be 4 ps, so both states are on both machines.
  std::vector<PipedreamState> states(3);
  for (std::size_t i = 0; i < 3; ++i) states[i].compute = Time{6 - 2 * static_cast<int>(i)};
  states[1].parameters = Bytes{1};
  const auto partition = pipedream_partition(states, {{2, ByteRate::unlimited()}, {2, ByteRate{1}}},
                                             PipedreamOptions{});
  REQUIRE(partition);
  CHECK(partition->stage_time == Time{3});
  CHECK(partition->levels[0] == std::vector<ReplicatedStage>{{0, 1, 1}, {1, 3, 1}});
  CHECK(partition->levels[1] == std::vector<ReplicatedStage>{{0, 1, 2}, {1, 3, 2}});
}

}  // namespace plimsoll
