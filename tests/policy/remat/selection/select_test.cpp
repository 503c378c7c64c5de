// remat/select-dp and remat/select-linear: the objectives against models written down once more,
// against all sets of checkpoints, against each other and against execution.
#include "policy/remat/selection/select.hpp"

#include "policy/remat/chain/chain_sequence.hpp"
#include "support/chains.hpp"
#include "support/policies.hpp"

#include <numeric>
#include <random>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using Sizes = std::vector<std::int64_t>;
using Checkpoints = std::vector<std::uint32_t>;

/// A chain of stages 1..L; index 0 is the input. Parameters have an equal gradient from their
/// backward on.
struct Stages {
  Sizes output, saved, gradient, forward_workspace, backward_workspace, parameters;

  [[nodiscard]] std::size_t count() const { return output.size() - 1; }
};

std::string yaml_of(const Stages& it) {
  std::string text = fmt::format("workload: chain\ninput: {} B\nchain:\n", it.output[0]);
  for (std::size_t k = 1; k <= it.count(); ++k)
    text += fmt::format(
        "  - {{name: s{}, forward: {} s, backward: 2 s, output: {} B, saved: {} B, gradient: {} B, "
        "forward_workspace: {} B, backward_workspace: {} B, parameters: {} B}}\n",
        k, 1 + k % 3, it.output[k], it.saved[k], it.gradient[k], it.forward_workspace[k],
        it.backward_workspace[k], it.parameters[k]);
  return text;
}

/// Plays the stages with `checkpoints` kept, event by event, by the rules of docs/semantics.md.
std::int64_t played_peak(const Stages& it, const Checkpoints& checkpoints) {
  std::int64_t live = it.output[0] + std::accumulate(it.parameters.begin() + 1, it.parameters.end(),
                                                     std::int64_t{0});
  std::int64_t peak = live;
  std::vector<bool> kept(it.count() + 1, false);
  for (const std::uint32_t i : checkpoints) kept[i] = true;
  const auto rises = [&](std::int64_t workspace) { peak = std::max(peak, live + workspace); };
  for (std::size_t k = 1; k <= checkpoints.back(); ++k) {
    live += it.output[k];
    rises(it.forward_workspace[k]);
    if (!kept[k - 1]) live -= it.output[k - 1];
  }
  std::size_t end = it.count();
  for (std::size_t segment = checkpoints.size(); segment-- > 0;) {
    const std::size_t begin = checkpoints[segment];
    for (std::size_t k = begin + 1; k <= end; ++k) {
      live += it.saved[k];
      rises(it.forward_workspace[k]);
    }
    for (std::size_t k = end; k > begin; --k) {
      if (k == it.count()) live += it.gradient[k];
      live += it.gradient[k - 1] + it.parameters[k];
      rises(it.backward_workspace[k]);
      live -= it.saved[k] + it.gradient[k];
    }
    if (begin > 0) live -= it.output[begin];
    end = begin;
  }
  return peak;
}

std::int64_t draw(std::mt19937_64& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

Stages random_stages(std::mt19937_64& random, std::int64_t most, bool workspaces) {
  Stages it;
  const std::int64_t high = draw(random, 1, 4) == 1 ? 2 : 9, extra = draw(random, 0, 6);
  const std::int64_t spread = workspaces ? draw(random, 0, draw(random, 1, 4) == 1 ? 300 : 30) : 0;
  const std::int64_t weights = draw(random, 0, 1) * 5;
  const std::int64_t stages = draw(random, 1, most);
  for (std::int64_t k = 0; k <= stages; ++k) {
    it.output.push_back(draw(random, 0, high));
    it.saved.push_back(it.output.back() + draw(random, 0, extra));
    // The gradient of the input has the bytes of the input.
    it.gradient.push_back(k == 0 ? it.output[0] : draw(random, 0, high));
    it.forward_workspace.push_back(draw(random, 0, 2) == 0 ? draw(random, 0, spread) : 0);
    it.backward_workspace.push_back(draw(random, 0, 2) == 0 ? draw(random, 0, 5) : 0);
    it.parameters.push_back(draw(random, 0, weights));
  }
  return it;
}

/// All sets of positions 0..last that contain 0.
std::vector<Checkpoints> all_sets(std::size_t last) {
  std::vector<Checkpoints> sets;
  for (std::uint32_t bits = 0; bits < (1u << last); ++bits) {
    Checkpoints set{0};
    for (std::uint32_t i = 0; i < last; ++i)
      if ((bits >> i & 1u) != 0) set.push_back(i + 1);
    sets.push_back(set);
  }
  return sets;
}

/// The least of `value_of_set` over all sets, and the first last checkpoint that reaches it.
template <class Value>
std::pair<std::int64_t, std::uint32_t> brute_force(std::size_t n, Value value_of_set) {
  std::pair<std::int64_t, std::uint32_t> best{INT64_MAX, 0};
  for (const Checkpoints& set : all_sets(n - 2))
    best = std::min(best, {value_of_set(set), set.back()});
  return best;
}

Sizes random_sizes(std::mt19937_64& random, std::int64_t most) {
  Sizes sizes(static_cast<std::size_t>(draw(random, 2, most)));
  const std::int64_t high = draw(random, 1, 3) == 1 ? 3 : 40;
  for (std::int64_t& size : sizes) size = draw(random, 0, high);
  return sizes;
}

/// The model of one size an activation, event by event; `set` is without n-1.
std::int64_t replayed(const Sizes& d, Checkpoints set) {
  set.push_back(static_cast<std::uint32_t>(d.size()) - 1);
  std::int64_t peak = 0, kept = d[0];
  for (std::size_t c = 1; c < set.size(); ++c) {
    for (std::uint32_t k = set[c - 1] + 1; k <= set[c]; ++k)
      peak = std::max(peak, kept + d[k] + (k - 1 > set[c - 1] ? d[k - 1] : 0));
    kept += d[set[c]];
  }
  peak = std::max(peak, kept + d.back());  // the loss makes the last gradient
  for (std::size_t c = set.size() - 1; c > 0; --c) {
    const std::uint32_t begin = set[c - 1], end = set[c];
    kept -= d[end];
    std::int64_t inside = 0;
    for (std::uint32_t k = begin + 1; k < end; ++k) {
      inside += d[k];
      peak = std::max(peak, kept + inside + d[end]);
    }
    for (std::uint32_t k = end; k > begin; --k) {
      peak = std::max(peak, kept + inside + d[k] + d[k - 1]);
      if (k - 1 > begin) inside -= d[k - 1];
    }
  }
  return peak;
}

/// The recursion of the authors' program for one set.
std::int64_t traced(const Sizes& d, Checkpoints set) {
  set.push_back(static_cast<std::uint32_t>(d.size()) - 1);
  std::int64_t value = d.back();
  for (std::size_t c = set.size() - 1; c > 0; --c) {
    const auto first = d.begin() + set[c - 1], last = d.begin() + set[c];
    const std::int64_t backward =
        std::accumulate(first + 1, last, *last) + *std::max_element(first, last);
    value = *first + std::max(value, backward);
  }
  return value;
}

/// All checkpoints and the largest interior.
std::int64_t counted_at_once(const Sizes& d, Checkpoints set) {
  set.push_back(static_cast<std::uint32_t>(d.size()) - 1);
  std::int64_t kept = d[0], largest = 0;
  for (std::size_t c = 1; c < set.size(); ++c) {
    kept += d[set[c]];
    largest = std::max(
        largest, std::accumulate(d.begin() + set[c - 1] + 1, d.begin() + set[c], std::int64_t{0}));
  }
  return kept + largest;
}

ChainCosts costs_of(const Workload& workload, const Platform& platform) {
  const Topology topology(platform);
  const ChainView view = chain_view(workload);
  return chain_costs(Problem{workload, view, platform, topology}, ProcessorId{0});
}

SelectionChain engine_chain_of(const Workload& workload) {
  return engine_chain(costs_of(workload, test::one_gpu({})));
}

void require_selection(const Selection& selection, std::pair<std::int64_t, std::uint32_t> best) {
  REQUIRE(selection.value == best.first);
  REQUIRE(selection.checkpoints.back() == best.second);
}

}  // namespace

TEST_CASE("engine: both planners measure the least peak of all sets of checkpoints") {
  std::mt19937_64 random(20261122);
  const Platform platform = test::one_gpu({});
  for (int round = 0; round < 4000; ++round) {
    const Stages stages = random_stages(random, 9, round % 2 == 0);
    const Workload workload = test::workload_of(yaml_of(stages));
    const std::int64_t resident = costs_of(workload, platform).resident.count();
    const SelectionChain chain = engine_chain_of(workload);
    const auto best = brute_force(stages.count() + 1,
                                  [&](const Checkpoints& set) { return played_peak(stages, set); });
    CAPTURE(round, yaml_of(stages));
    const Selection selection = select_quadratic(chain);
    require_selection(selection, {best.first - resident, best.second});
    REQUIRE(select_near_linear(chain) == selection);
    REQUIRE(value_of(chain, selection.checkpoints) == selection.value);
    if (round % 4 >= 2) continue;
    for (const char* policy : {"remat/select-dp", "remat/select-linear"}) {
      const test::Played it = test::play_policy(policy, workload, platform);
      REQUIRE(it.peak(MemoryId{0}) == best.first);
      test::require_claims_hold(it);
      REQUIRE(it.plan.bounds.peak.at(0).second.count() <= best.first);
    }
  }
}

TEST_CASE("replay, traced and static: the least of all sets of checkpoints") {
  std::mt19937_64 random(20261123);
  for (int round = 0; round < 4000; ++round) {
    const Sizes d = random_sizes(random, 11);
    CAPTURE(round, d);
    const auto best = [&](auto value) {
      return brute_force(d.size(), [&](const Checkpoints& set) { return value(d, set); });
    };
    require_selection(select_quadratic(replay_chain(d)), best(replayed));
    require_selection(select_quadratic(traced_chain(d)), best(traced));
    const Selection at_once = select_static(d);
    REQUIRE(at_once.value == best(counted_at_once).first);
    REQUIRE(counted_at_once(d, at_once.checkpoints) == at_once.value);
  }
}

TEST_CASE("both algorithms select the same checkpoints of long chains") {
  std::mt19937_64 random(20261124);
  for (int round = 0; round < 1500; ++round) {
    const Sizes d = random_sizes(random, 150);
    CAPTURE(round);
    REQUIRE(select_near_linear(replay_chain(d)) == select_quadratic(replay_chain(d)));
    REQUIRE(select_near_linear(traced_chain(d)) == select_quadratic(traced_chain(d)));
    const Workload workload = test::workload_of(yaml_of(random_stages(random, 80, round % 2 == 0)));
    const SelectionChain chain = engine_chain_of(workload);
    const Selection selection = select_quadratic(chain);
    REQUIRE(select_near_linear(chain) == selection);
    REQUIRE(value_of(chain, selection.checkpoints) == selection.value);
    REQUIRE_FALSE(select_within(chain, selection.value - 1));
  }
}

TEST_CASE("both algorithms select the same where forwards need more than backwards") {
  // Workspaces of nothing, a little or far more than all else, alike or rising or falling along
  // the chain, beside sizes with many zeros and ties.
  std::mt19937_64 random(20261127);
  for (int round = 0; round < 6000; ++round) {
    const std::int64_t stages = draw(random, 1, round % 8 == 0 ? 300 : 20);
    const std::int64_t most = draw(random, 0, 2) * draw(random, 0, 2) * 10 + draw(random, 0, 1);
    const std::int64_t spread = std::int64_t{1} << draw(random, 0, 12);
    const std::int64_t rising = draw(random, -1, 1) * draw(random, 0, 40);
    ChainCosts costs;
    costs.input = costs.input_gradient = Bytes{draw(random, 0, most)};
    for (std::int64_t s = 0; s < stages; ++s) {
      StageCosts stage;
      stage.output = Bytes{draw(random, 0, most)};
      stage.saved = stage.output + Bytes{draw(random, 0, most)};
      stage.gradient = Bytes{draw(random, 0, most)};
      stage.backward_workspace = Bytes{draw(random, 0, 3) == 0 ? draw(random, 0, spread) : 0};
      const std::int64_t trend = rising * (rising < 0 ? s - stages : s);
      stage.keep_workspace = Bytes{draw(random, 0, 2) == 0 ? 0 : trend + draw(random, 0, spread)};
      stage.bare_workspace = Bytes{draw(random, 0, stage.keep_workspace.count())};
      stage.lasting = Bytes{draw(random, 0, 3) == 0 ? most : 0};
      costs.stages.push_back(stage);
    }
    CAPTURE(round, stages, most, spread, rising);
    const SelectionChain chain = engine_chain(costs);
    const Selection selection = select_quadratic(chain);
    REQUIRE(select_near_linear(chain) == selection);
    REQUIRE(value_of(chain, selection.checkpoints) == selection.value);
    REQUIRE_FALSE(select_within(chain, selection.value - 1));
  }
}

TEST_CASE("engine: the value is the measured peak where the backward is split in two") {
  std::mt19937_64 random(20261126);
  const Platform platform = test::one_gpu({});
  for (int round = 0; round < 1000; ++round) {
    std::string text = "workload: chain\ninput: 3 B\nchain:\n";
    for (std::int64_t k = draw(random, 1, 12); k > 0; --k) {
      const std::int64_t output = draw(random, 0, 9), saved = output + draw(random, 0, 9);
      text += fmt::format(
          "  - {{name: s{}, forward: 1 s, backward_input: 1 s, backward_weight: 1 s, output: {} B, "
          "saved: {} B, held_for_weight_gradient: {} B, gradient: {} B, forward_workspace: {} B, "
          "backward_workspace: {} B, parameters: {} B}}\n",
          k, output, saved, draw(random, 0, saved), draw(random, 0, 9), draw(random, 0, 1) * 7,
          draw(random, 0, 9), draw(random, 0, 9));
    }
    const Workload workload = test::workload_of(text);
    const Selection selection = select_near_linear(engine_chain_of(workload));
    const test::Played it = test::play_policy("remat/select-linear", workload, platform);
    CAPTURE(text);
    REQUIRE(it.peak(MemoryId{0}) ==
            costs_of(workload, platform).resident.count() + selection.value);
    test::require_claims_hold(it);
  }
}

TEST_CASE("a forward that needs more than any backward moves the checkpoints") {
  // Stages of 1 B kept and left, no gradients but the third's 8 B, and 10 B while stage 3 runs.
  const Stages stages{{0, 1, 1, 1, 1},  {0, 1, 1, 1, 1}, {0, 0, 0, 8, 0},
                      {0, 0, 0, 10, 0}, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}};
  // With {0} forward 3 needs 3 + 10, backward 4 needs 4 + 8. A checkpoint at 1 or 2 adds nothing
  // and lets stage 1 or 2 go: {0, 2} has a_2, saved_3 and 10, that is 12, and backward 4 needs a_2,
  // saved_3, saved_4 and 8, that is 11. After a checkpoint at 3 forward 3 would run again beside
  // the 8 B. {0, 1, 2} needs a_1 as well.
  const Workload workload = test::workload_of(yaml_of(stages));
  const SelectionChain chain = engine_chain_of(workload);
  const Selection expected{12, {0, 2}};
  CHECK(select_quadratic(chain) == expected);
  CHECK(select_near_linear(chain) == expected);
}

TEST_CASE("the published objectives see the input and `saved` of a chain, and share its plan") {
  std::mt19937_64 random(20261125);
  const Platform platform = test::one_gpu({});
  for (int round = 0; round < 300; ++round) {
    const Stages stages = random_stages(random, 9, true);
    const Workload workload = test::workload_of(yaml_of(stages));
    Sizes d = stages.saved;
    d[0] = stages.output[0];
    REQUIRE(activation_sizes(costs_of(workload, platform)) == d);
    const std::pair<const char*, Selection> cases[] = {
        {"replay", select_quadratic(replay_chain(d))},
        {"traced", select_quadratic(traced_chain(d))},
        {"static", select_static(d)}};
    for (const auto& [objective, selection] : cases)
      for (const char* policy : {"remat/select-dp", "remat/select-linear"}) {
        if (objective == std::string("static") && policy == std::string("remat/select-linear"))
          continue;
        CAPTURE(round, objective, policy);
        const test::Played it = test::play_policy(
            fmt::format("{{name: {}, objective: {}}}", policy, objective), workload, platform);
        test::require_claims_hold(it);
        REQUIRE(it.peak(MemoryId{0}) == played_peak(stages, selection.checkpoints));
      }
  }
}

TEST_CASE("what the selections do not do is refused") {
  const Workload workload = test::chain_workload({{1}, {1}, {1, 1}, {1}, {}, {}});
  const Platform platform = test::one_gpu({});
  CHECK_THROWS_WITH(
      test::planned("{name: remat/select-linear, objective: static}", workload, platform),
      Catch::Contains("policy:1:40: error: objective `static` has no linear algorithm") &&
          Catch::Contains("remat/select-dp"));
  CHECK_THROWS_WITH(test::planned("{name: remat/select-dp, objective: engin}", workload, platform),
                    Catch::Contains("engine"));
  test::Chain chain;
  chain.output.assign(10'002, 1);
  chain.forward = chain.backward = chain.saved = std::vector<std::int64_t>(10'001, 1);
  CHECK_THROWS_WITH(test::planned("{name: remat/select-dp, objective: static}",
                                  test::chain_workload(chain), platform),
                    Catch::Contains("the chain has 10001 stages; expected at most 10000"));
}

TEST_CASE("sizes beyond what sums can hold are refused, not wrapped around") {
  const Workload workload = test::workload_of(
      "workload: chain\ninput: 1 B\nchain:\n"
      "  - {name: s1, forward: 1 s, backward: 1 s, output: 1000 PB, saved: 2000 PB}\n");
  CHECK_THROWS_AS(test::planned("{name: remat/select-linear}", workload, test::one_gpu({})),
                  QuantityOverflow);
}

}  // namespace plimsoll
