// The known answers of tests/oracles, through the formats that users see: a scenario in YAML in,
// the result's JSON out.
#include "policy/remat/checkpoint_selection.hpp"
#include "report/json_report.hpp"
#include "scenario/run.hpp"
#include "support/chains.hpp"

#include <fstream>
#include <numeric>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

namespace plimsoll {
namespace {

using nlohmann::json;

json oracle(const std::string& name) {
  std::ifstream file(std::string(PLIMSOLL_SOURCE_DIR) + "/tests/oracles/" + name);
  return json::parse(file);
}

std::string indented(const std::string& text) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin) + 1;
    out += "  " + text.substr(begin, end - begin);
    begin = end;
  }
  return out;
}

json run_scenario(const std::string& platform, const std::string& workload,
                  const std::string& policy) {
  const std::string text = "scenario: oracle\nplatform:\n" + indented(platform) + "workload:\n" +
                           indented(workload) + "policy: " + policy + "\n";
  const Scenario scenario = read_scenario(parse_document(text, "oracle.yaml"), ".");
  return json::parse(json_report(run(scenario))).at(0);
}

test::Chain chain_of(const json& it) {
  return {it.at("f"), it.at("b"), it.at("a"), it.at("abar"), {}, {}};
}

test::OneGpu gpu_of(const json& instance, std::optional<std::int64_t> limit) {
  return {limit, instance.at("bw_out"), instance.at("bw_in"), "ideal", ""};
}

json run_chain(const json& instance, std::optional<std::int64_t> limit, const std::string& policy) {
  return run_scenario(test::platform_yaml(gpu_of(instance, limit)),
                      test::chain_yaml(chain_of(instance)), policy);
}

std::int64_t peak(const json& result, const std::string& memory = "hbm") {
  return result.at("memories").at(memory).at("peak_requested_bytes");
}

/// `expected` is {makespan, peak}, or null where the run cannot end.
void check_run(const json& result, const json& expected) {
  if (expected.is_null()) {
    CHECK((result.at("status") == "deadlock" || result.at("status") == "oom"));
    return;
  }
  REQUIRE(result.at("status") == "ok");
  CHECK(result.at("makespan_s") == expected.at("makespan").get<double>());
  CHECK(peak(result) == expected.at("peak"));
  CHECK(result.at("claims").at("makespan_s") == result.at("makespan_s"));
  CHECK(result.at("claims").at("peak_bytes").at("hbm") == peak(result));
}

std::string eager(int distance) {
  return fmt::format("{{name: offload/eager, distance: {}}}", distance);
}

}  // namespace

TEST_CASE("offload oracles: policy none takes the compute time and the known peak") {
  const json data = oracle("offload_chain.json");
  for (const json& it : data.at("instances")) {
    const json result = run_chain(it.at("instance"), std::nullopt, "none");
    CHECK(result.at("makespan_s") == it.at("expected").at("compute_time").get<double>());
    CHECK(peak(result) == it.at("expected").at("peak_without_offload"));
    CHECK(result.at("overhead") == 0.0);
  }
}

TEST_CASE(
    "offload oracles: offload/all has the known makespan and peak, and waits where that does not "
    "fit") {
  const json data = oracle("offload_chain.json");
  for (const json& it : data.at("instances")) {
    const json& instance = it.at("instance");
    const json& expected = it.at("expected").at("policy_sync_offload_all");
    check_run(run_chain(instance, std::nullopt, "offload/all"), expected);
    // Under a limit below its peak an operator waits for the copy that frees its memory.
    const std::int64_t limit = instance.at("M");
    const json limited = run_chain(instance, limit, "offload/all");
    if (expected.at("fits").get<bool>()) {
      check_run(limited, expected);
    } else if (limited.at("status") == "ok") {
      CHECK(peak(limited) <= limit);
      CHECK(limited.at("makespan_s") > expected.at("makespan").get<double>());
    }
  }
}

TEST_CASE("offload oracles: offload/eager at distance 1 and 2, limited and unlimited") {
  const json data = oracle("offload_chain.json");
  for (const json& it : data.at("instances"))
    for (const int w : {1, 2}) {
      INFO(it.at("name") << " distance " << w);
      const json& instance = it.at("instance");
      const std::string key = fmt::format("distance_{}", w);
      check_run(run_chain(instance, instance.at("M").get<std::int64_t>(), eager(w)),
                it.at("expected").at("policy_eager").at(key));
      check_run(run_chain(instance, std::nullopt, eager(w)),
                it.at("expected").at("policy_eager_unlimited_memory").at(key));
    }
}

TEST_CASE("offload oracles: the homogeneous sweep over memory limits") {
  const json sweep = oracle("offload_chain.json").at("sweep");
  const json& instance = sweep.at("instance");
  CHECK(run_chain(instance, std::nullopt, "none").at("makespan_s") ==
        sweep.at("compute_time").get<double>());
  CHECK(peak(run_chain(instance, std::nullopt, "none")) == sweep.at("peak_without_offload"));
  check_run(run_chain(instance, std::nullopt, "offload/all"), sweep.at("policy_sync_offload_all"));
  for (const json& row : sweep.at("rows"))
    for (const int w : {1, 2}) {
      INFO("M = " << row.at("M") << ", distance " << w);
      check_run(run_chain(instance, row.at("M").get<std::int64_t>(), eager(w)),
                row.at("policy_eager").at(fmt::format("distance_{}", w)));
    }
}

TEST_CASE("checkpoint oracles: store all, and every number of segments") {
  const json checkpoints = oracle("checkpoint_chain.json");
  for (const json& it : checkpoints.at("instances")) {
    const std::string workload = test::chain_yaml(chain_of(it.at("chain")));
    const std::string platform = test::platform_yaml({});
    const auto check = [&](const std::string& policy, const json& expected) {
      INFO(it.at("name") << " " << policy);
      check_run(run_scenario(platform, workload, policy),
                {{"makespan", expected.at("time")}, {"peak", expected.at("peak")}});
    };
    check("none", it.at("store_all"));
    for (const json& row : it.at("checkpoint_sequential"))
      check(fmt::format("{{name: remat/sqrt, segments: {}}}", row.at("segments").get<int>()), row);
    check("remat/every-stage", it.at("checkpoint_sequential").back());
  }
}

namespace {

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

namespace {

std::string pipeline_platform(int devices, double latency) {
  std::string text = "platform: pipeline\nmemories:\n";
  for (int i = 0; i < devices; ++i) text += fmt::format("  hbm{}: {{capacity: unlimited}}\n", i);
  text += "processors:\n";
  for (int i = 0; i < devices; ++i) text += fmt::format("  gpu{0}: {{memory: hbm{0}}}\n", i);
  text += "links:\n";
  for (int i = 0; i + 1 < devices; ++i)
    text += fmt::format("  link{0}: {{between: [hbm{0}, hbm{1}], latency: {2} s}}\n", i, i + 1,
                        latency);
  return text;
}

}  // namespace

TEST_CASE("pipeline oracles: gpipe and 1f1b, with and without message latency") {
  const json schedules = oracle("pipeline_schedules.json");
  for (const json& row : schedules.at("rows")) {
    const int p = row.at("p"), m = row.at("m");
    const std::string id = row.at("id");
    INFO(id);
    std::string workload = "workload: stages\nchain:\n";
    for (int s = 0; s < p; ++s)
      workload +=
          fmt::format("  - {{name: s{}, forward: {} s, backward: {} s, saved: 1 B}}\n", s,
                      row.at("times").at("F").get<int>(), row.at("times").at("BW").get<int>());
    const std::string policy =
        fmt::format("{{name: pipeline/{}, microbatches: {}}}",
                    id.find("GPipe") != std::string::npos ? "gpipe" : "1f1b", m);
    const json result = run_scenario(pipeline_platform(p, row.at("comm")), workload, policy);
    REQUIRE(result.at("status") == "ok");
    CHECK(result.at("makespan_s") == row.at("makespan").get<double>());
    CHECK(result.at("claims").at("makespan_s") == result.at("makespan_s"));
    for (int i = 0; i < p; ++i) {
      const json& gpu = result.at("processors").at(fmt::format("gpu{}", i));
      CHECK(gpu.at("span_s") ==
            row.at("device_spans").at(static_cast<std::size_t>(i)).get<double>());
      CHECK(peak(result, fmt::format("hbm{}", i)) ==
            row.at("peak_activations_per_device_chunks").at(static_cast<std::size_t>(i)));
    }
    CHECK(result.at("period_s") == row.at("device_spans").at(0).get<double>());
  }
}

}  // namespace plimsoll
