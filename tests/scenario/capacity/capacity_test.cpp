#include "scenario/capacity/capacity.hpp"

#include "report/capacity/capacity_json.hpp"
#include "report/capacity/capacity_text.hpp"
#include "support/capacity_plans.hpp"
#include "support/library.hpp"

#include <algorithm>
#include <array>
#include <sstream>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace plimsoll;
using Json = nlohmann::ordered_json;

namespace {

CapacityReport report_of(const std::string& plan, unsigned jobs = 1) {
  return test::capacity_report_of(plan, test::kSource + "/scenarios", jobs);
}

Json json_of(const std::string& plan, unsigned jobs = 1) {
  return Json::parse(capacity_json(report_of(plan, jobs)));
}

/// The text, whose lines are wrapped wherever they are full, as one line.
std::string words_of(const CapacityReport& report) {
  std::istringstream text(capacity_text(report, Style{false}));
  std::string joined, word;
  while (text >> word) joined += word + ' ';
  return joined;
}

std::string without_power(std::string plan) {
  const std::string power = ", " + test::kBoardPower;
  return plan.erase(plan.find(power), power.size());
}

/// On a processor with 16 MiB.
std::string two_stages(const std::string& of_workload, const std::string& of_candidate,
                       const std::string& rest = "") {
  return test::kPair + of_workload +
         "platforms:\n"
         "  - platform:\n"
         "      platform: bench\n"
         "      memories:\n"
         "        sram: {capacity: 16 MiB}\n"
         "        sd: {capacity: unlimited}\n"
         "      processors:\n"
         "        cpu: {memory: sram, " +
         test::kBoardPower +
         "}\n"
         "      links:\n"
         "        spi: {between: [sram, sd], bandwidth: 400 MiB/s}\n"
         "      battery: {energy: 135 J}\n" +
         of_candidate + rest;
}

/// LeNet on a board so small that its batch is limited by memory.
std::string lenet(const std::string& range, const std::string& policies) {
  return "capacity: test\n"
         "workloads:\n"
         "  - name: digits\n"
         "    workload: {model: lenet, optimizer: sgd}\n"
         "    batch: " +
         range +
         "\n"
         "platforms:\n"
         "  - platform:\n"
         "      platform: board\n"
         "      memories:\n"
         "        sram: {capacity: 2 MiB, bandwidth: 200 MB/s}\n"
         "        sd: {capacity: 8 GiB, bandwidth: 20 MB/s}\n"
         "      processors:\n"
         "        cpu: {memory: sram, compute: {fp32: 1 GFLOP/s}, power: {idle: 1 W, active: 3 "
         "W}}\n"
         "      links:\n"
         "        spi: {between: [sram, sd], bandwidth: 15 MB/s}\n"
         "policies: " +
         policies + "\n";
}

}  // namespace

TEST_CASE("units, time, energy and cost follow from one step and the targets") {
  const Json all =
      json_of(two_stages("    run: {samples: 4000, epochs: 9}\n"
                         "    targets: {throughput: 150 samples/s}\n",
                         "    price: {device: 100 EUR, hour: 3.6 EUR/h, kwh: 1000 EUR/kWh}\n"));
  const Json& it = all["workloads"][0]["configurations"][0];
  CHECK(it["verdict"] == "feasible");
  // 4 samples in 45 ms; 3 W x 45 ms / 4; 1 - 11 / 16; 135 J / 135 mJ = 1000 steps of 4.
  CHECK(it["unit"]["batch"] == 4);
  CHECK(it["unit"]["throughput_samples_per_s"].get<double>() == Approx(4 / 0.045));
  CHECK(it["unit"]["energy_per_sample_j"] == 0.03375);
  CHECK(it["unit"]["average_w"] == 3.0);
  CHECK(it["unit"]["headroom"] == 0.3125);
  CHECK(it["unit"]["samples_per_charge"] == 4000);
  // 150 / 88.9 = 1.7 units; on a platform that nothing was fitted to up to 41 % too fast, so that
  // each may carry 88.9 / 1.41 = 63: 150 / 63 = 2.4.
  const Json& all_units = it["deployment"];
  CHECK(all_units["units"] == 2);
  CHECK(all_units["units_at_worst"] == 3);
  CHECK(all_units["processors"] == 2);
  // 36,000 samples at 177.8 a second: 202.5 s; 36,000 x 33.75 mJ = 1,215 J = 0.3375 Wh.
  CHECK(all_units["run_s"] == 203);
  CHECK(all_units["run_kwh"].get<double>() == Approx(1215 / 3.6e6));
  // 2 x 203 s at 0.001 EUR a second, and 0.0003375 kWh x 1000 EUR.
  CHECK(all_units["run_cost"]["amount"].get<double>() == Approx(0.406 + 0.3375));
  CHECK(all_units["run_cost"]["currency"] == "EUR");
  CHECK(all_units["purchase"]["amount"] == 200.0);
}

TEST_CASE("the number of units counts scaling and the error band") {
  const Json all = json_of(two_stages("    targets: {throughput: 150 samples/s}\n",
                                      "    price: {device: 25 EUR}\n",
                                      "scaling: {efficiency: 80 %, source: measured}\n"
                                      "error: {time: 50 %, energy: 10 %, source: a guess}\n"));
  const Json& units = all["workloads"][0]["configurations"][0]["deployment"];
  // 150 / (88.9 x 0.8) = 2.1; at half the speed 4.2.
  CHECK(units["units"] == 3);
  CHECK(units["units_at_worst"] == 5);
  CHECK(units["purchase"]["amount"] == 75.0);
  CHECK(units["purchase_at_worst"]["amount"] == 125.0);
  CHECK(units["throughput_samples_per_s"].get<double>() == Approx(3 * 0.8 * 4 / 0.045));
  CHECK(all["error"]["of_the_plan"] == true);
}

TEST_CASE("units that exchange gradients take longer, and draw power all the while") {
  const Json all =
      json_of(two_stages("    run: {samples: 36000}\n"
                         "    targets: {throughput: 150 samples/s}\n",
                         "", "scaling: {efficiency: 80 %, source: measured}\n"));
  const Json& it = all["workloads"][0]["configurations"][0]["deployment"];
  // Three units carry 3 x 0.8 x 88.9 = 213.3 samples/s: 168.75 s at 3 x 3 W.
  CHECK(it["units"] == 3);
  CHECK(it["run_s"] == 169);
  CHECK(it["run_kwh"].get<double>() == Approx(168.75 * 9 / 3.6e6));
  // One alone exchanges nothing: 36,000 x 33.75 mJ.
  const Json alone = json_of(two_stages("    run: {samples: 36000}\n", "",
                                        "scaling: {efficiency: 80 %, source: measured}\n"));
  CHECK(alone["workloads"][0]["configurations"][0]["deployment"]["run_kwh"].get<double>() ==
        Approx(1215 / 3.6e6));
}

TEST_CASE("what the error band may make too few is at risk, and not on the front") {
  // Two units by the figures; three where each carries 63 samples a second.
  const std::string plan =
      two_stages("    targets: {throughput: 150 samples/s}\n", "    count: 2\n");
  const Json all = json_of(plan);
  const Json& it = all["workloads"][0]["configurations"][0];
  CHECK(it["verdict"] == "at_risk");
  CHECK(it["on_front"] == false);
  CHECK(it["reasons"] == Json{"where each is as slow as the error band allows, the targets ask for "
                              "3 units; there are 2"});
  CHECK(words_of(report_of(plan)).find("Nothing carries it for certain") != std::string::npos);
  const Json enough =
      json_of(two_stages("    targets: {throughput: 150 samples/s}\n", "    count: 3\n"));
  CHECK(enough["workloads"][0]["configurations"][0]["verdict"] == "feasible");
}

TEST_CASE("the error band is that of what a platform rests on") {
  const CapacityReport report = report_of(
      "capacity: test\n"
      "workloads:\n"
      "  - {name: digits, workload: {model: lenet, batch: 32}}\n"
      "platforms:\n"
      "  - platform: v100-sxm2-16gb-fp32\n"
      "  - platform: t4\n"
      "  - platform: v100-sxm2-16gb-fp32\n"
      "    name: faster\n"
      "    set: {processors.gpu.compute.fp32: 20 TFLOP/s}\n");
  REQUIRE(report.errors.size() == 3);
  // `error_p95` of its provenance.
  CHECK(report.errors[0].basis == CandidateError::Basis::fitted);
  CHECK(report.errors[0].slower == Ratio{237'000'000});
  CHECK(report.errors[0].faster == Ratio{237'000'000});
  // Never faster than the best case; 1 - 1 / 1.41 slower.
  for (const std::size_t c : {1u, 2u}) {
    CHECK(report.errors[c].basis == CandidateError::Basis::best_case);
    CHECK(report.errors[c].slower == Ratio{290'780'142});
    CHECK(report.errors[c].faster == Ratio{});
  }
  const std::string words = words_of(report);
  CHECK_THAT(words, Catch::Contains("error band of v100-sxm2-16gb-fp32: throughput ±24 %"));
  CHECK_THAT(words, Catch::Contains("error band of t4, faster: a best case: throughput up to 29 % "
                                    "lower, never higher"));
  CHECK_THAT(words, Catch::Contains("platforms that were fitted to measurements are compared with "
                                    "ones that were not"));
  const Json all = Json::parse(capacity_json(report));
  CHECK(all["platforms"][0]["error"]["basis"] == "fitted");
  CHECK(all["platforms"][1]["error"]["faster"] == 0.0);
}

TEST_CASE("a test error is a key of the provenance, whatever the sources say") {
  const auto error_of = [](const std::string& provenance) {
    Diagnostics diagnostics;
    const Platform platform = read_platform(
        parse_document("platform: p\nmemories: {hbm: {capacity: 1 GiB}}\nprocessors: {gpu: "
                       "{memory: hbm, compute: {fp32: 1 TFLOP/s, fp16: 2 TFLOP/s}}}\n"
                       "provenance: {" +
                           provenance + "}\n",
                       "p.yaml"),
        diagnostics);
    diagnostics.throw_if_errors();
    return test_error_of(platform);
  };
  CHECK(error_of(
            "processors: {quality: measured, source: \"judged by 3 rows, 95th percentile 9 %\"}") ==
        std::nullopt);
  // The largest of several.
  CHECK(
      error_of("processors.gpu.compute.fp32: {quality: measured, source: me, error_p95: 12 %},"
               "processors.gpu.compute.fp16: {quality: measured, source: me, error_p95: 130 %}") ==
      Ratio{1'300'000'000});
}

TEST_CASE("the cheapest to run may not be the cheapest to have") {
  const CapacityReport report =
      report_of(two_stages("    run: {samples: 4040}\n",
                           "    name: bought\n    price: {device: 100 EUR, kwh: 0.30 EUR/kWh}\n"
                           "  - platform:\n"
                           "      platform: other\n"
                           "      memories: {sram: {capacity: 16 MiB}}\n"
                           "      processors: {cpu: {memory: sram, " +
                               test::kBoardPower +
                               "}}\n"
                               "    name: rented\n    price: {hour: 3.6 EUR/h}\n"));
  const std::string words = words_of(report);
  CHECK_THAT(words, Catch::Contains("cheapest to run: bought with none"));
  // 4,040 samples at 88.9 a second: 46 s at 0.001 EUR, against 100 EUR.
  CHECK_THAT(words,
             Catch::Contains("cheapest with what it costs to buy: rented with none, 0.046000 EUR"));
}

TEST_CASE("a workload that cannot be built is an error of the plan") {
  const Node plan = parse_document(
      "capacity: test\n"
      "workloads:\n"
      "  - {name: digits, workload: {model: lenet, trained_from: nonsense}, batch: 32}\n"
      "platforms: [{platform: t4}, {platform: a10}]\n",
      "plan.yaml");
  CHECK_THROWS_WITH(check_workloads(read_capacity_plan(plan, ".")),
                    Catch::Contains("plan.yaml:3:") && Catch::Contains("nonsense"));
}

TEST_CASE("an error band leaves some of the throughput") {
  CHECK_THROWS_WITH(
      json_of(two_stages("", "", "error: {time: 100 %, energy: 10 %, source: a guess}\n")),
      Catch::Matchers::Contains("found `100 %`, expected less than 100 %"));
}

TEST_CASE("a deadline and tokens are rates") {
  // 8,889 samples within 100 s: 88.89 a second, just above the 88.888... of one unit.
  const std::string deadline = "    run: {samples: 8889}\n    targets: {deadline: 100 s}\n";
  CHECK(json_of(two_stages(deadline,
                           ""))["workloads"][0]["configurations"][0]["deployment"]["units"] == 2);
  // 10 tokens a sample: 888.9 tokens a second.
  const std::string tokens = "    tokens_per_sample: 10\n    targets: {tokens_per_second: 888}\n";
  const Json it = json_of(two_stages(tokens, ""))["workloads"][0]["configurations"][0];
  CHECK(it["deployment"]["units"] == 1);
  CHECK(it["unit"]["throughput_tokens_per_s"].get<double>() == Approx(40 / 0.045));
}

TEST_CASE("each target that is missed is told") {
  const Json all = json_of(two_stages(
      "    targets: {throughput: 1000 samples/s, energy_per_sample: 33 mJ, average_power: 2 W, "
      "samples_per_charge: 4001}\n",
      "    count: 11\n"));
  const Json& it = all["workloads"][0]["configurations"][0];
  CHECK(it["verdict"] == "misses_targets");
  CHECK(it["on_front"] == false);
  CHECK(it["reasons"] == Json{"the energy of a sample is 33.75 mJ, the limit 33 mJ",
                              "the average power of a unit is 3 W, the limit 2 W",
                              "one charge carries 4000 samples of 4001",
                              "the targets ask for 12 units; there are 11"});
  CHECK(all["workloads"][0]["front_axes"].empty());
}

TEST_CASE("a slower policy is not ahead because it needs more units") {
  // One unit carries 88.9 a second with `none` and 72.7 where F1 is run again.
  const CapacityReport report = report_of(two_stages("    targets: {throughput: 80 samples/s}\n",
                                                     "", "policies: [none, remat/every-stage]\n"));
  const auto& configurations = report.answers[0].configurations;
  CHECK(configurations[0].deployment->units == 1);
  CHECK(configurations[1].deployment->units == 2);
  CHECK(configurations[1].deployment->throughput > configurations[0].deployment->throughput);
  CHECK(configurations[0].is_on_front);
  CHECK_THAT(words_of(report), Catch::Contains("fastest: bench with none, 88.89 samples/s a unit"));
}

TEST_CASE("rent is told where the platform states no power, and what is missing") {
  const std::string plan = without_power(two_stages(
      "    run: {samples: 35990}\n", "    price: {hour: 3.6 EUR/h, kwh: 0.3 EUR/kWh}\n"));
  const CapacityReport report = report_of(plan);
  const Json it = Json::parse(capacity_json(report))["workloads"][0]["configurations"][0];
  // 404.9 s, by the second, at 0.001 EUR.
  CHECK(it["deployment"]["run_cost"]["amount"] == 0.405);
  CHECK(it["deployment"]["electricity_unknown"] == true);
  CHECK_THAT(words_of(report),
             Catch::Contains("for the run without electricity") &&
                 Catch::Contains("bench states no power (set `processors.cpu.power`): its energy "
                                 "is not known; electricity is not counted"));
  // Beside a cost with electricity it is no axis.
  const Json both = json_of(
      "capacity: test\n"
      "workloads: [{name: a, workload: {model: lenet}, batch: 8, run: {samples: 800}}]\n"
      "platforms:\n"
      "  - {platform: t4, price: {hour: 1 EUR/h, kwh: 0.3 EUR/kWh}}\n"
      "  - {platform: v100-sxm2-host, price: {hour: 1 EUR/h, kwh: 0.3 EUR/kWh}}\n");
  CHECK(both["workloads"][0]["front_axes"] == Json{"throughput", "headroom"});
}

TEST_CASE("a power limit proves a target of average power, and no more") {
  const auto answer = [](const std::string& limit) {
    std::string plan = without_power(two_stages("    targets: {average_power: 300 W}\n", ""));
    const std::string battery = "      battery: {energy: 135 J}\n";
    plan.replace(plan.find(battery), battery.size(), limit);
    return json_of(plan)["workloads"][0]["configurations"][0];
  };
  const Json proven = answer("      power_limit: 70 W\n");
  CHECK(proven["verdict"] == "feasible");
  CHECK(proven["unit"]["power_limit_w"] == 70.0);
  CHECK(answer("      power_limit: 350 W\n")["reasons"] ==
        Json{"the platform states no power, and its power limit of 350 W does not prove the 300 W "
             "of the target"});
  CHECK(answer("")["reasons"] ==
        Json{"the platform states no power, so the average power of a unit is not known"});
}

TEST_CASE("what the plan sets on a platform is told, and is no better than an estimate") {
  const CapacityReport report = report_of(
      "capacity: test\n"
      "workloads: [{name: a, workload: {model: lenet}, batch: 8}]\n"
      "platforms: [{platform: t4, name: our-card, set: {memories.vram.capacity: 48 GiB, "
      "processors.gpu.power: {idle: 1 W, active: 2 W}}}, {platform: t4}]\n");
  CHECK_THAT(words_of(report),
             Catch::Contains("our-card is t4: the plan sets `memories.vram.capacity: 48 GiB`, "
                             "`processors.gpu.power: {idle: 1 W, active: 2 W}`, which counts as "
                             "`estimate`") &&
                 Catch::Contains("t4 states no power (set `processors.gpu.power`)"));
  const Json platforms = Json::parse(capacity_json(report))["platforms"];
  CHECK(platforms[0]["from"] == "t4");
  CHECK(platforms[0]["set"]["memories.vram.capacity"] == "48 GiB");
  CHECK_FALSE(platforms[1].contains("set"));

  Platform measured;
  measured.provenance = {{"memories.hbm.capacity", Quality::measured, "a test"}};
  CapacityCandidate candidate;
  CHECK(worst_quality(candidate, measured) == Quality::measured);
  candidate.set = parse_value("{memories.hbm.capacity: 1 GiB}", "plan");
  CHECK(worst_quality(candidate, measured) == Quality::estimate);
}

TEST_CASE("headroom is kept free, whatever the policy") {
  const auto verdict = [](const std::string& headroom) {
    return json_of(two_stages("    targets: {headroom: " + headroom + "}\n",
                              ""))["workloads"][0]["configurations"][0]["verdict"];
  };
  // 11 of 16 MiB are used at the peak: 31.25 % are free.
  CHECK(verdict("31.25 %") == "feasible");
  CHECK(verdict("31.26 %") == "does_not_fit");
}

TEST_CASE("a policy that does not apply is told, and does not end the plan") {
  const Json all = json_of(two_stages(
      "", "", "policies: [none, {name: pipeline/1f1b, microbatches: 4, devices: [cpu, gpu]}]\n"));
  const Json& configurations = all["workloads"][0]["configurations"];
  CHECK(configurations[0]["verdict"] == "feasible");
  CHECK(configurations[1]["verdict"] == "does_not_apply");
  CHECK(configurations[1]["reasons"].size() == 1);
}

TEST_CASE("the largest batch is that of a scan of all, the fastest that of those tried") {
  const CapacityReport report =
      report_of(lenet("{at_least: 1, at_most: 200}", "[none, remat/sqrt]"));
  const auto& pairings = report.plan.pairings;
  for (std::size_t p = 0; p < 2; ++p) {
    const Configuration& found = report.answers[0].configurations[p];
    Scenario scenario = pairings[0].scenario;
    std::int64_t largest = 0;
    for (std::int64_t batch = 1; batch <= 200; ++batch) {
      scenario.workload_options.batch = batch;
      const RunResult result = run_policy(scenario, scenario.policies[p]);
      if (result.metrics.status == RunStatus::ok) largest = batch;
      if (batch == found.figures->batch)
        CHECK(static_cast<double>(found.figures->throughput.count()) / 1e9 ==
              Approx(*result.metrics.throughput));
    }
    // Limited by memory, not by the plan.
    REQUIRE(largest > 1);
    REQUIRE(largest < 200);
    CHECK(*found.largest_batch == largest);
    CHECK_FALSE(found.is_limited_by_plan);
    CHECK(found.holes.empty());
  }
}

TEST_CASE("batches are multiples of what the plan and the microbatches ask for") {
  const std::string plan =
      "capacity: test\n"
      "workloads: [{name: a, workload: {model: lenet}, batch: {at_least: 1, at_most: 40, "
      "multiple_of: 6}}]\n"
      "platforms: [{platform: pcie-4gpu-workstation}]\n"
      "policies: [{name: pipeline/1f1b, microbatches: 4, devices: [gpu0, gpu1]}]\n";
  const CapacityReport report = report_of(plan);
  // 12, 24 and 36 are those of 6 and 4.
  const Configuration& it = report.answers[0].configurations[0];
  CHECK(*it.largest_batch == 36);
  CHECK(it.is_limited_by_plan);
  CHECK(it.deployment->processors == 2);
}

TEST_CASE("a search that left batches out says so in every report") {
  CapacityReport report = report_of(lenet("{at_least: 1, at_most: 200}", "none"));
  Configuration& it = report.answers[0].configurations[0];
  // The response of LeNet is monotone: nine samples and a bisection are enough.
  CHECK_FALSE(it.is_search_cut_short);
  const auto tells_it = [&] {
    return words_of(report).find("not all batches were tried") != std::string::npos;
  };
  CHECK_FALSE(tells_it());
  it.is_search_cut_short = true;
  it.holes = {3};
  CHECK(Json::parse(capacity_json(
            report))["workloads"][0]["configurations"][0]["search_cut_short"] == true);
  CHECK(tells_it());
}

TEST_CASE("a sensitivity is the run on the changed platform") {
  const CapacityReport report = report_of(lenet("4", "none"));
  const Insight& insight = report.answers[0].insights.at(0);
  const auto scenario = report.plan.pairings[0].scenario;
  const auto throughput_with = [&](auto change) {
    Scenario changed = scenario;
    changed.workload_options.batch = 4;
    change(changed.platform);
    return *run_policy(changed, changed.policies[0]).metrics.throughput;
  };
  const double base = throughput_with([](Platform&) {});
  const auto gain_of = [&](const std::string& name) {
    const auto found = std::ranges::find(insight.sensitivities, name, &Sensitivity::change);
    REQUIRE(found != insight.sensitivities.end());
    return *found->gain;
  };
  const auto faster = [&](auto change) { return throughput_with(change) / base - 1; };
  CHECK(gain_of("twice the compute of cpu") ==
        Approx(faster([](Platform& it) {
          it.processors[0].compute[static_cast<std::size_t>(DType::fp32)] = FlopRate{2'000'000'000};
        })).margin(1e-9));
  CHECK(gain_of("twice the bandwidth of sram") == Approx(faster([](Platform& it) {
                                                    it.memories[0].read.bandwidth *= 2;
                                                    it.memories[0].write.bandwidth *= 2;
                                                  })).margin(1e-9));
  // `none` copies nothing, and its batch is given.
  CHECK(gain_of("+1 MiB of sram") == 0);
  CHECK(gain_of("twice the bandwidth of spi") == 0);
  CHECK(gain_of("twice the bandwidth of sd") == 0);
  // Four samples of LeNet are bound by one of the two, which then is the bottleneck.
  REQUIRE(insight.bottleneck);
  const bool by_compute =
      gain_of("twice the compute of cpu") > gain_of("twice the bandwidth of sram");
  CHECK(*insight.bottleneck == (by_compute ? Part::compute : Part::memory_bandwidth));
}

TEST_CASE("more memory is answered with another policy where that is better") {
  // In 10 MiB `none` (11 MiB) does not fit; running F1 again, 10 ms, does.
  std::string plan = two_stages("", "", "policies: [none, remat/every-stage]\n");
  plan.replace(plan.find("16 MiB"), 6, "10 MiB");
  const CapacityReport report = report_of(plan);
  const CapacityAnswer& answer = report.answers[0];
  CHECK(answer.configurations[0].verdict == Verdict::does_not_fit);
  const Insight& insight = answer.insights.at(0);
  CHECK(insight.configuration == 1);
  const Sensitivity& more = insight.sensitivities.at(0);
  CHECK(more.change == "+5 MiB of sram");
  CHECK(more.policy == "none");
  CHECK(*more.gain == Approx(55.0 / 45.0 - 1));
  CHECK(insight.bottleneck == Part::memory);
}

TEST_CASE("what fits nowhere has sensitivities without a gain") {
  // Parameters alone take 241 KiB.
  std::string plan = lenet("4", "none");
  plan.replace(plan.find("2 MiB"), 5, "64 KiB");
  const CapacityReport report = report_of(plan);
  CHECK(report.answers[0].configurations[0].verdict == Verdict::does_not_fit);
  CHECK(report.answers[0].axes.empty());
  const Insight& insight = report.answers[0].insights.at(0);
  CHECK_FALSE(insight.bottleneck);
  CHECK_FALSE(insight.sensitivities.empty());
  for (const Sensitivity& it : insight.sensitivities) {
    CHECK_FALSE(it.figures);
    CHECK_FALSE(it.gain);
  }
}

TEST_CASE("a change that only some candidates know is tried on those") {
  const std::string plan =
      "capacity: test\n"
      "workloads: [{name: a, workload: {model: lenet}, batch: 8}]\n"
      "platforms: [{platform: v100-sxm2-host}, {platform: raspberry-pi-4b}]\n"
      "what_if: [{name: PCIe 5, set: {links.pcie.bandwidth: 52 GB/s}}]\n";
  const CapacityReport report = report_of(plan);
  const auto tried = [&](std::size_t i) {
    return std::ranges::count(report.answers[0].insights.at(i).sensitivities, "PCIe 5",
                              &Sensitivity::change);
  };
  CHECK(tried(0) == 1);
  CHECK(tried(1) == 0);
}

TEST_CASE("the front holds exactly what nothing else dominates") {
  const std::string plan =
      "capacity: test\n"
      "workloads: [{name: a, workload: {model: resnet18-cifar, optimizer: sgd}, batch: {at_least: "
      "2, at_most: 16}, run: {samples: 1000}}]\n"
      "platforms:\n"
      "  - {platform: v100-sxm2-host, price: {hour: 3 EUR/h}}\n"
      "  - {platform: raspberry-pi-4b, price: {kwh: 0.3 EUR/kWh}}\n"
      "policies: [none, remat/sqrt, offload/eager, offload/all]\n";
  const Json answer = json_of(plan, 2)["workloads"][0];
  CHECK(answer["front_axes"] == Json{"throughput", "cost", "energy", "headroom"});
  // All four as costs: less is better.
  std::vector<std::array<double, 4>> costs;
  for (const Json& it : answer["configurations"]) {
    REQUIRE(it["verdict"] == "feasible");
    costs.push_back({-it["unit"]["throughput_samples_per_s"].get<double>(),
                     it["deployment"]["run_cost"]["amount"].get<double>(),
                     it["unit"]["energy_per_sample_j"].get<double>(),
                     -it["unit"]["headroom"].get<double>()});
  }
  std::size_t on_front = 0;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const bool dominated = std::ranges::any_of(costs, [&](const auto& other) {
      bool better = false;
      for (std::size_t a = 0; a < 4; ++a) {
        if (other[a] > costs[i][a]) return false;
        better = better || other[a] < costs[i][a];
      }
      return better;
    });
    CHECK(answer["configurations"][i]["on_front"] == !dominated);
    on_front += dominated ? 0 : 1;
  }
  CHECK(on_front > 0);
  CHECK(on_front < costs.size());
}

TEST_CASE("all that is wrong with a plan and with what it names is told at once") {
  try {
    (void)report_of(
        "capacity: test\n"
        "workloads:\n"
        "  - {name: a, workload: {model: lenet}, bacth: 4}\n"
        "  - {name: b, workload: {model: lenett}}\n"
        "platforms:\n"
        "  - {platform: v100-sxm2-host, count: 0}\n"
        "  - {platform: v100-sxm2-hots}\n"
        "  - {platform: v100-sxm2-host, name: fine}\n"
        "what_if:\n"
        "  - {name: faster, set: {links.pice.bandwidth: 1 GB/s}}\n"
        "policies: [noen]\n");
    FAIL("it is wrong in many ways");
  } catch (const InputError& error) {
    std::vector<int> lines;
    for (const Diagnostic& it : error.diagnostics()) lines.push_back(it.where.line);
    INFO(error.what());
    CHECK(lines == std::vector<int>{3, 4, 6, 7, 11});
  }
  // A change is judged by the candidates that can be read.
  CHECK_THROWS_WITH(report_of(lenet("4", "none") +
                              "what_if:\n  - {name: faster, set: {links.pice.bandwidth: 1 GB/s}}\n"
                              "eror: {}\n"),
                    Catch::Contains("unknown key `eror`") &&
                        Catch::Contains("the change `faster` applies to no candidate"));
}

TEST_CASE("progress is told from nothing to all, of the configurations and then of the changes") {
  std::vector<std::pair<std::size_t, std::size_t>> configurations, changes;
  const auto keep = [&](CapacityStage stage, std::size_t done, std::size_t total) {
    (stage == CapacityStage::configurations ? configurations : changes).emplace_back(done, total);
  };
  const std::string plan = lenet("4", "[none, remat/sqrt]");
  (void)plan_capacity(
      read_capacity_plan(parse_document(plan, "plan.yaml"), test::kSource + "/scenarios"), 2, keep);
  CHECK(configurations == std::vector<std::pair<std::size_t, std::size_t>>{{0, 2}, {1, 2}, {2, 2}});
  REQUIRE(changes.size() > 1);
  for (std::size_t i = 0; i < changes.size(); ++i)
    CHECK(changes[i] == std::pair(i, changes.size() - 1));
}

TEST_CASE("a plan gives the same bytes, whatever the number of threads") {
  const std::string plan = lenet("{at_least: 1, at_most: 64}", "[none, remat/sqrt, offload/eager]");
  const std::string once = capacity_json(report_of(plan, 1));
  CHECK(capacity_json(report_of(plan, 1)) == once);
  CHECK(capacity_json(report_of(plan, 4)) == once);
}

TEST_CASE("money is read to the millionth and in no other form") {
  const auto micros = [](const std::string& text) -> std::int64_t {
    Diagnostics diagnostics;
    const auto read = money("/h").read(parse_value(text, "price"), diagnostics);
    CHECK(diagnostics.has_errors() != read.has_value());
    return read ? read->micros : -1;
  };
  CHECK(micros("1 EUR/h") == 1'000'000);
  CHECK(micros("0.000001 EUR/h") == 1);
  CHECK(micros("999999999.999999USD/h") == 999'999'999'999'999);
  for (const char* text : {"1", "1 EUR", "1 eur/h", "1. EUR/h", ".5 EUR/h", "-1 EUR/h", "1e3 EUR/h",
                           "1000000000 EUR/h", "0.0000001 EUR/h", "1 EURO/h", "1 EUR/kWh", "EUR/h",
                           "[1 EUR/h]", "1 EUR/h x"})
    CHECK(micros(text) == -1);
}

TEST_CASE("a plan tells up to how many epochs training beats sending the samples") {
  const auto plan = [](const std::string& send) {
    return "capacity: c\nworkloads:\n  - name: w\n    workload: {workload: w, input: 1 B, chain: "
           "[{name: s, "
           "forward: 1 s, backward: 2 s, saved: 1 B}]}\n    run: {samples: 10, epochs: 3}\n    "
           "send: " +
           send +
           "\nplatforms:\n  - platform:\n      platform: node\n      memories: {ram: {capacity: 1 "
           "kB}, far: "
           "{capacity: unlimited}, off: {capacity: unlimited}}\n      processors: {cpu: {memory: "
           "ram, power: "
           "{idle: 1 W, active: 3 W}}}\n      links: {radio: {between: [ram, far], bandwidth: 4 "
           "B/s, energy: 5 "
           "J/B}}\n";
  };
  // Training takes 3 s at 3 W; sending 8 B takes 2 s at 1 W and 40 J: 42 / 9 epochs.
  const auto report = report_of(plan("{to: far, bytes: 8 B}"));
  const Json it =
      Json::parse(capacity_json(report))["workloads"][0]["configurations"][0]["sending"];
  CHECK(it["sample_s"] == 2);
  CHECK(it["sample_j"].get<double>() == Approx(42));
  CHECK(it["epochs_at_par"].get<double>() == Approx(42.0 / 9));
  CHECK_THAT(words_of(report), Catch::Contains("with 3 epochs training here is cheaper"));
  CHECK_THROWS_WITH(report_of(plan("{to: fra, bytes: 8 B}")),
                    Catch::Contains("did you mean `far`?"));
  CHECK_THROWS_WITH(report_of(plan("{to: off, bytes: 8 B}")),
                    Catch::Contains("no links lead from `ram` to `off`"));
  CHECK_THROWS_WITH(report_of(plan("{to: far, bytes: 0 B}")),
                    Catch::Contains("0 B is none to send"));
}

namespace {

/// A network on four devices of a ring; `parallel` of the workload.
std::string divided(const std::string& parallel, const std::string& rest = "") {
  return "capacity: test\n"
         "workloads:\n"
         "  - name: perceptron\n"
         "    workload: {workload: p, input: [16, 64], layers: [{linear: 256}, relu, {linear: "
         "64}], "
         "loss: mse, optimizer: adam}\n"
         "    batch: {at_least: 1, at_most: 16}\n"
         "    parallel: " +
         parallel + "\n" + rest +
         "platforms:\n"
         "  - platform:\n"
         "      platform: ring\n"
         "      memories: {hbm: {capacity: 4 MiB, bandwidth: 1 GB/s}}\n"
         "      processors: {gpu: {memory: hbm, compute: {fp32: 10 GFLOP/s}}}\n"
         "      cluster: {count: 4, topology: switch, link: {name: nv, bandwidth: 2 GB/s}}\n"
         "policies: [none, {name: pipeline/gpipe, microbatches: 2}]\n";
}

}  // namespace

TEST_CASE("of all divisions that fit the processors, the fastest is the configuration") {
  const Json found = json_of(divided("{tensor: [1, 2, 4], pipeline: [1, 2]}"));
  const Json& configurations = found["workloads"][0]["configurations"];
  REQUIRE(configurations.size() == 2);
  for (const Json& it : configurations) {
    CAPTURE(it.dump());
    // Tensor 4 and pipeline 2 are eight.
    REQUIRE(it["divisions"].size() == 5);
    double most = 0;
    for (const Json& division : it["divisions"]) {
      if (!division.contains("unit")) continue;
      most = std::max(most, division["unit"]["throughput_samples_per_s"].get<double>());
      std::string axes;
      std::int64_t ranks = 1;
      for (const auto& [axis, size] : division["parallel"].items()) {
        axes += axis + ": " + std::to_string(size.get<std::int64_t>()) + ", ";
        ranks *= size.get<std::int64_t>();
      }
      CHECK(ranks == 4);
      // Alone, it is what it is among the others.
      const Json alone = json_of(divided("{" + axes + "}"));
      for (const Json& one : alone["workloads"][0]["configurations"])
        if (one["policy"] == it["policy"]) CHECK(one["unit"] == division["unit"]);
    }
    CHECK(it["unit"]["throughput_samples_per_s"] == most);
    CHECK(it["unit"]["mfu"].get<double>() > 0);
    CHECK(it["deployment"]["processors"] == 4);
  }
}

// Of 1, 2 and 4 ranks on the tensor axis the first has none to divide positions, or to exchange. The layer
// that is divided by columns reads the input, which has no gradient: nothing is there to overlap.
TEST_CASE("what is about a tensor axis holds in the divisions that have one") {
  const auto rates_of = [](const std::string& parallel) {
    const Json found = json_of(divided("{tensor: [1, 2, 4]" + parallel + "}"));
    std::vector<double> rates;
    for (const Json& it : found["workloads"][0]["configurations"][0]["divisions"]) {
      REQUIRE(it.contains("unit"));
      rates.push_back(it["unit"]["throughput_samples_per_s"]);
    }
    REQUIRE(rates.size() == 3);
    std::ranges::sort(rates);
    return rates;
  };
  CHECK(rates_of(", overlap: true") == rates_of(""));
  CHECK(rates_of(", sequence: true") != rates_of(""));
}

TEST_CASE("batches of a divided training come out whole for each replica and microbatch") {
  const Json found = json_of(divided("{pipeline: 2}"));
  const Json& it = found["workloads"][0]["configurations"][1];
  CHECK(it["parallel"] == Json({{"pipeline", 2}, {"data", 2}}));
  CHECK(it["unit"]["batch"].get<std::int64_t>() % 4 == 0);
  CHECK_FALSE(it.contains("batches_that_do_not_hold"));
}

TEST_CASE("divisions that are none are refused where they stand") {
  const auto refused = [](const std::string& parallel, const std::string& why,
                          const std::string& rest = "") {
    CAPTURE(parallel);
    CHECK_THROWS_WITH(report_of(divided(parallel, rest)), Catch::Contains(why));
  };
  refused("{tensor: [3, 5]}", "no choice of these sizes divides the 4 processors of `ring`");
  refused("{tensor: 2, data: [1, 3]}", "without `data` it has what the others leave");
  refused("{tensor: []}", "`tensor` has an empty list; expected sizes to try");
  refused("{tensor: [1, two]}", "plan.yaml:6:28: error: found `two`");
  refused("{tensr: [1, 2]}", "did you mean `tensor`?");
  refused("4", "found `4`");
  refused("{data: [1], tensor: [4]}", "gives these axes no rank beside the first",
          "    sharding: {stage: 1}\n");
}
