#include "report/run/json_report.hpp"

#include "report/run_scenario.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace plimsoll;
using Json = nlohmann::ordered_json;

namespace {

Json report_of(const std::string& scenario) {
  return Json::parse(json_report(run_scenario(scenario).results));
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

}  // namespace

TEST_CASE("a run that ends well has the keys of the contract, in order") {
  const Json all = report_of(two_stages("16 MiB", "none", ", power: {idle: 1 W, active: 3 W}"));
  REQUIRE(all.size() == 1);
  CHECK(keys_of(all[0]) ==
        std::vector<std::string>{"scenario", "platform", "workload", "policy", "status",
                                 "makespan_s", "period_s", "throughput_samples_per_s", "overhead",
                                 "memories", "links", "processors", "energy", "claims", "bounds",
                                 "saved_bytes", "planning_s", "provenance"});
  CHECK(all[0]["scenario"] == "two-stages");
  CHECK(all[0]["platform"] == "bench");
  CHECK(all[0]["workload"] == "pair");
  CHECK(all[0]["policy"] == "none");
  CHECK(all[0]["status"] == "ok");
  CHECK(all[0]["provenance"]["worst_quality"] == "estimate");
}

TEST_CASE("the numbers of two stages under none") {
  const Json run = report_of(two_stages("16 MiB", "none", ", power: {idle: 1 W, active: 3 W}"))[0];
  // F1 F2 B2 B1 one after the other: 10 + 5 + 10 + 20 ms; a batch of 4 in that time.
  CHECK(run["makespan_s"] == 0.045);
  CHECK(run["period_s"] == 0.045);
  CHECK(run["throughput_samples_per_s"] == 4 / 0.045);
  CHECK(run["overhead"] == 0.0);
  // The peak is in B2, from 15 ms on: input 1, saved_1 4, saved_2 3, delta_2 2, delta_1 1 MiB; in
  // B1 there are input 1, saved_1 4, delta_1 1, delta_0 1.
  const Json& sram = run["memories"]["sram"];
  CHECK(sram["capacity_bytes"] == 16 * kMiB);
  CHECK(sram["peak_requested_bytes"] == 11 * kMiB);
  CHECK(sram["peak_allocated_bytes"] == 11 * kMiB);
  CHECK(sram["peak_reserved_bytes"] == 11 * kMiB);
  CHECK(sram["fragmentation"] == 0.0);
  CHECK(sram["peak_time_s"] == 0.015);
  CHECK(sram["at_peak"] ==
        Json{{"gradient", 3 * kMiB}, {"activation", 1 * kMiB}, {"saved", 7 * kMiB}});
  // saved_1 + saved_2; the input does not count.
  CHECK(run["saved_bytes"] == 7 * kMiB);
  const Json& cpu = run["processors"]["cpu"];
  CHECK(cpu["busy_s"] == 0.045);
  CHECK(cpu["span_s"] == 0.045);
  CHECK(cpu["bubble"] == 0.0);
  CHECK(cpu["recomputed_ops"] == 0);
  CHECK(cpu["recomputed_flops"] == 0);
  CHECK(cpu["stall_s"] == Json{{"transfer", 0.0}, {"dependency", 0.0}, {"memory", 0.0}});
  // 3 W throughout.
  CHECK(run["energy"]["total_j"] == 0.135);
  CHECK(run["energy"]["per_sample_j"] == 0.03375);
  CHECK(run["energy"]["average_w"] == 3.0);
  CHECK(run["energy"]["peak_w"] == 3.0);
  CHECK(run["energy"]["components"] == Json{{"cpu", 0.135}});
  CHECK(run["claims"]["makespan_s"] == 0.045);
  CHECK(run["claims"]["peak_bytes"]["sram"] == 11 * kMiB);
}

TEST_CASE("links count bytes and busy shares by direction") {
  const std::string four =
      "scenario: four\n"
      "platform:\n"
      "  platform: bench\n"
      "  memories: {hbm: {capacity: 1 GiB}, dram: {capacity: 1 GiB}}\n"
      "  processors: {gpu: {memory: hbm}}\n"
      "  links: {pcie: {between: [hbm, dram], bandwidth: 200 MiB/s}}\n"
      "workload:\n"
      "  workload: even\n"
      "  chain:\n"
      "    - repeat: 4\n"
      "      items: [{name: \"s{i}\", forward: 10 ms, backward: 20 ms, saved: 1 MiB}]\n"
      "policy: offload/all\n";
  const Json run = report_of(four)[0];
  // saved_1 and saved_2 go out and come back, 5 ms each, behind 4 x (10 + 20) ms of compute.
  CHECK(run["makespan_s"] == 0.12);
  CHECK(run["links"]["pcie"] == Json{{"forward_bytes", 2 * kMiB},
                                     {"backward_bytes", 2 * kMiB},
                                     {"forward_busy", 10.0 / 120.0},
                                     {"backward_busy", 10.0 / 120.0}});
  CHECK(run["memories"]["dram"]["written_bytes"] == 2 * kMiB);
  // Half duplex: 4 copies of 5 ms on one wire, in 120 ms.
  std::string half = four;
  half.insert(half.find(", bandwidth"), ", duplex: half");
  CHECK(report_of(half)[0]["links"]["pcie"]["busy"] == 20.0 / 120.0);
}

TEST_CASE("a profile says where its times are from") {
  const Json run = report_of(
      "scenario: s\n"
      "platform: {platform: card, memories: {hbm: {capacity: 1 GiB}}, processors: {gpu: {memory: "
      "hbm}}}\n"
      "workload:\n"
      "  workload: net\n"
      "  profile:\n"
      "    version: 1\n"
      "    recorded: PyTorch on a CPU\n"
      "    inputs: {x: 1 MiB}\n"
      "    operators: [{name: a, forward: {time: 1 ms, reads: [x], makes: {y: 2 MiB}}}]\n"
      "policy: none\n")[0];
  CHECK(run["provenance"]["times"] == Json{{"of", "profile"}, {"recorded", "PyTorch on a CPU"}});
  CHECK_FALSE(report_of(two_stages("16 MiB", "none"))[0]["provenance"].contains("times"));
}

TEST_CASE("what does not apply is absent, what is unknown is null") {
  const Json run = report_of(two_stages("16 MiB", "remat/every-stage"))[0];
  CHECK_FALSE(run.contains("energy"));
  CHECK_FALSE(run["memories"]["sd"].contains("capacity_bytes"));
  // F1 runs twice (a last stage keeps); nobody knows the FLOPs of an abstract stage.
  CHECK(run["processors"]["cpu"]["recomputed_ops"] == 1);
  CHECK(run["processors"]["cpu"]["recomputed_flops"].is_null());
  // An energy per byte has no power at an instant.
  const std::string with_energy_per_byte =
      "scenario: s\n"
      "platform:\n"
      "  platform: p\n"
      "  memories: {m: {capacity: 1 GiB, read: {energy: 1 pJ/B}}}\n"
      "  processors: {c: {memory: m}}\n"
      "workload: {workload: w, chain: [{name: a, forward: 1 s, backward: 1 s, saved: 1 B}]}\n"
      "policy: none\n";
  CHECK(report_of(with_energy_per_byte)[0]["energy"]["peak_w"].is_null());
}

TEST_CASE("parameters of a policy are told as they were written") {
  const Json run = report_of(two_stages("16 MiB", "{name: remat/sqrt, segments: 1, on: cpu}"))[0];
  CHECK(run["policy"] == "remat/sqrt");
  CHECK(run["policy_parameters"] == "segments: 1, on: cpu");
}

TEST_CASE("out of memory") {
  const Json run = report_of(two_stages("6 MiB", "none"))[0];
  CHECK(run["status"] == "oom");
  for (const char* key :
       {"makespan_s", "period_s", "throughput_samples_per_s", "overhead", "energy"})
    CHECK_FALSE(run.contains(key));
  CHECK_FALSE(run["processors"]["cpu"].contains("bubble"));
  CHECK(run["processors"]["cpu"]["busy_s"] == 0.01);
  for (const char* key : {"forward_busy", "backward_busy"})
    CHECK_FALSE(run["links"]["spi"].contains(key));
  CHECK(run["links"]["spi"]["forward_bytes"] == 0);
  CHECK(run["saved_bytes"] == 7 * kMiB);
  // input 1 + saved_1 4 leave 1 of 6 MiB; F2 wants saved_2 of 3 MiB.
  const Json& oom = run["oom"];
  CHECK(oom["step"] == "s2.forward");
  CHECK(oom["memory"] == "sram");
  CHECK(oom["asked_bytes"] == 3 * kMiB);
  CHECK(oom["free_bytes"] == 1 * kMiB);
  CHECK(oom["largest_free_block_bytes"] == 1 * kMiB);
  CHECK(oom["residents"].size() == 2);
  CHECK(oom["residents"][0] ==
        Json{{"tensor", "s1.saved"}, {"class", "saved"}, {"bytes", 4 * kMiB}});
}

TEST_CASE("infeasible and deadlock") {
  RunResult infeasible;
  infeasible.infeasible = Infeasible{"nothing fits", MemoryId{0}, Bytes{12}};
  infeasible.saved_bytes = Bytes{7};
  RunResult deadlock;
  deadlock.metrics.status = RunStatus::deadlock;
  deadlock.cycle = {"a waits for the end of b", "b waits for the end of a"};
  const Json all = Json::parse(json_report(std::vector{infeasible, deadlock}));
  CHECK(all[0]["status"] == "infeasible");
  CHECK(all[0]["infeasible"] == Json{{"why", "nothing fits"}, {"smallest_budget_bytes", 12}});
  CHECK_FALSE(all[0].contains("memories"));
  CHECK(all[0]["saved_bytes"] == 7);
  CHECK(all[1]["status"] == "deadlock");
  CHECK(all[1]["deadlock"]["cycle"].size() == 2);
  CHECK(all[1].contains("memories"));
}

TEST_CASE("the same runs give the same bytes") {
  auto ran = run_scenario(two_stages("16 MiB", "[none, remat/every-stage]"));
  auto again = run_scenario(two_stages("16 MiB", "[none, remat/every-stage]"));
  for (auto* results : {&ran.results, &again.results})
    for (RunResult& result : *results) result.planning_s = 0;
  CHECK(json_report(ran.results) == json_report(again.results));
  CHECK(json_report({}) == "[]\n");
}
