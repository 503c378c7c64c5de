// The known best checkpoints for one recomputation, YAML in, JSON out.
#include "policy/remat/checkpoint_selection.hpp"
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
    for (const auto& select : {select_quadratic, select_near_linear}) {
      CHECK(select(replay_chain(d)).value == it.at("event_replay_min"));
      CHECK(select(traced_chain(d)).value == it.at("revised_objective_min"));
    }
  };
  for (const json& it : selections.at("instances")) {
    const std::vector<std::int64_t> d = it.at("d");
    INFO(it.at("name"));
    check(d, it);
    CHECK(select_static(d).value == it.at("static_objective_min"));
    const SelectionChain chain = replay_chain(d);
    std::vector<std::uint32_t> all(d.size() - 1);
    std::iota(all.begin(), all.end(), 0u);
    CHECK(value_of(chain, all) == it.at("event_replay_all_checkpoints"));
    CHECK(value_of(chain, std::vector<std::uint32_t>{0}) ==
          it.at("event_replay_no_interior_checkpoint"));
  }
  for (const json& it : selections.at("generated")) {
    const std::vector<std::int64_t> d = generated_sizes(it.at("n").get<std::size_t>());
    CHECK(std::accumulate(d.begin(), d.end(), std::int64_t{0}) == it.at("sum_d"));
    check(d, it);
  }
  for (const auto& [n, least] : selections.at("unit_chain_revised_minimum").items())
    CHECK(select_near_linear(traced_chain(std::vector<std::int64_t>(std::stoul(n), 1))).value ==
          least);
}

}  // namespace plimsoll
