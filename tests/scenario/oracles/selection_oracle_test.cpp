// The known best checkpoints for one recomputation, YAML in, JSON out.
#include "policy/remat/selection/checkpoint_selection.hpp"
#include "support/oracles.hpp"

#include <numeric>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::json;
using test::oracle;
using test::peak;
using test::run_scenario;

/// Output, saved and gradient of every stage are its d.
std::string uniform_chain(const std::vector<std::int64_t>& d) {
  const std::vector<std::int64_t> times(d.size() - 1, 1);
  return test::chain_yaml({times, times, d, {d.begin() + 1, d.end()}, {}, {}});
}

/// A chain on which the engine does what the paper's replay counts: backward k needs the
/// activations before k and the gradients k and k-1, but not activation k. No gradients; in place
/// of those, the bytes of gradient k-1 as workspace, while saved_k stands for gradient k; and a
/// last stage that is the loss and makes the last gradient. The gradient of the input stays.
std::string replayed_chain(const std::vector<std::int64_t>& d) {
  std::string text = fmt::format("workload: chain\ninput: {} B\nchain:\n", d[0]);
  for (std::size_t k = 1; k <= d.size(); ++k) {
    const std::int64_t size = k < d.size() ? d[k] : 0;
    text += fmt::format(
        "  - {{name: s{0}, forward: 1 s, backward: 1 s, output: {1} B, saved: {1} B, gradient: 0 "
        "B, backward_workspace: {2} B}}\n",
        k, size, k > 1 ? d[k - 1] : 0);
  }
  return text;
}

std::vector<std::int64_t> generated_sizes(std::size_t n) {
  std::vector<std::int64_t> d;
  for (std::int64_t x = 12345; d.size() < n;) {
    x = (1103515245 * x + 12345) % (std::int64_t{1} << 31);
    d.push_back(1 + x / 65536 % 100);
  }
  return d;
}

/// What the planner's own model says of the checkpoints that it chose for `objective`.
json modelled_peak(const std::vector<std::int64_t>& d, const char* policy, const char* objective) {
  const json result = run_scenario(test::platform_yaml({}), uniform_chain(d),
                                   fmt::format("{{name: {}, objective: {}}}", policy, objective));
  REQUIRE(result.at("status") == "ok");
  const json& claims = result.at("claims");
  CHECK(claims.at("peak_bytes").at("hbm") == peak(result));
  return claims.contains("model_peak_bytes") ? claims.at("model_peak_bytes").at("hbm") : json{};
}

void check_selected(const std::vector<std::int64_t>& d, const json& expected) {
  for (const char* policy : {"remat/select-dp", "remat/select-linear"}) {
    const auto run = [&](const std::string& workload) {
      const json result = run_scenario(test::platform_yaml({}), workload, policy);
      REQUIRE(result.at("status") == "ok");
      CHECK(result.at("claims").at("peak_bytes").at("hbm") == peak(result));
      CHECK(result.at("bounds").at("peak_bytes").at("hbm") <= peak(result));
      return peak(result);
    };
    CHECK(run(uniform_chain(d)) == expected.at("engine_min"));
    CHECK(run(replayed_chain(d)) == expected.at("event_replay_min"));
  }
}

/// Replays the given sets of checkpoints; no scenario can name one.
void check_replayed_sets(const std::vector<std::int64_t>& d, const json& it) {
  const SelectionChain replay = replay_chain(d);
  const std::size_t end = d.size() - 1;
  std::vector<std::uint32_t> all(end);
  std::iota(all.begin(), all.end(), 0u);
  CHECK(value_of(replay, all) == it.at("event_replay_all_checkpoints"));
  CHECK(value_of(replay, std::vector<std::uint32_t>{0}) ==
        it.at("event_replay_no_interior_checkpoint"));
  const auto without_end = [&](const char* key) {
    std::vector<std::uint32_t> checkpoints = it.at(key);
    REQUIRE(checkpoints.back() == end);
    checkpoints.pop_back();
    return checkpoints;
  };
  CHECK(value_of(replay, without_end("event_replay_checkpoints")) == it.at("event_replay_min"));
  CHECK(value_of(traced_chain(d), without_end("revised_checkpoints")) ==
        it.at("revised_objective_min"));
  CHECK(value_of(replay, without_end("revised_checkpoints")) ==
        it.at("event_replay_of_revised_checkpoints"));
  for (const auto& [segments, value] : it.at("sqrt_uniform").items()) {
    const std::size_t k = std::stoul(segments);
    std::vector<std::uint32_t> uniform{0};
    for (std::size_t q = 1; q < k; ++q) {
      // To the nearest, of two the even one.
      const std::size_t below = q * end / k, twice = 2 * (q * end % k);
      const bool up = twice > k || (twice == k && below % 2 == 1);
      if (const auto at = static_cast<std::uint32_t>(below + up); at != uniform.back())
        uniform.push_back(at);
    }
    CHECK(value_of(replay, uniform) == value);
  }
}

}  // namespace

TEST_CASE("checkpoint selection oracles: measured by the engine") {
  const json selections = oracle("checkpoint_selection.json");
  for (const json& it : selections.at("instances")) {
    INFO(it.at("name"));
    check_selected(it.at("d"), it);
    const std::string workload = uniform_chain(it.at("d"));
    const auto run = [&](const char* policy) {
      return peak(run_scenario(test::platform_yaml({}), workload, policy));
    };
    CHECK(run("none") == it.at("engine_no_interior_checkpoint"));
    CHECK(run("remat/every-stage") == it.at("engine_all_checkpoints"));
  }
  for (const json& it : selections.at("generated"))
    check_selected(generated_sizes(it.at("n").get<std::size_t>()), it);
}

TEST_CASE("checkpoint selection oracles: values of the published objectives") {
  const json selections = oracle("checkpoint_selection.json");
  const auto check = [](const std::vector<std::int64_t>& d, const json& it) {
    for (const char* policy : {"remat/select-dp", "remat/select-linear"}) {
      CHECK(modelled_peak(d, policy, "replay") == it.at("event_replay_min"));
      CHECK(modelled_peak(d, policy, "traced") == it.at("revised_objective_min"));
      // The engine is the judge of its own objective, and the claim is the peak itself.
      CHECK(modelled_peak(d, policy, "engine").is_null());
    }
  };
  for (const json& it : selections.at("instances")) {
    const std::vector<std::int64_t> d = it.at("d");
    INFO(it.at("name"));
    check(d, it);
    CHECK(modelled_peak(d, "remat/select-dp", "static") == it.at("static_objective_min"));
    check_replayed_sets(d, it);
  }
  for (const json& it : selections.at("generated")) {
    const std::vector<std::int64_t> d = generated_sizes(it.at("n").get<std::size_t>());
    CHECK(std::accumulate(d.begin(), d.end(), std::int64_t{0}) == it.at("sum_d"));
    check(d, it);
  }
  for (const auto& [n, least] : selections.at("unit_chain_revised_minimum").items())
    CHECK(modelled_peak(std::vector<std::int64_t>(std::stoul(n), 1), "remat/select-linear",
                        "traced") == least);
}

}  // namespace plimsoll
