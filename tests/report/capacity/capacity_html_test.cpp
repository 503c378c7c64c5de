#include "report/capacity/capacity_html.hpp"

#include "report/capacity/capacity_answer.hpp"
#include "support/capacity_plans.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

/// One chain on two boards; in 10 MiB `none`, whose peak is 11 MiB, does not fit.
CapacityReport two_boards() {
  const std::string board = "processors: {cpu: {memory: sram, " + test::kBoardPower + "}}}";
  return test::capacity_report_of(
      test::kPair +
      "platforms:\n  - platform: {platform: large, memories: {sram: {capacity: 16 MiB}}, " + board +
      "\n  - platform: {platform: small, memories: {sram: {capacity: 10 MiB}}, " + board +
      "\nabout: which one?\npolicies: [none, remat/every-stage]\n");
}

template <class Section>
const Section& only(const HtmlPage& page) {
  const Section* found = nullptr;
  for (const HtmlSection& section : page.sections)
    if (const auto* it = std::get_if<Section>(&section)) {
      CHECK(found == nullptr);
      found = it;
    }
  REQUIRE(found != nullptr);
  return *found;
}

}  // namespace

TEST_CASE("the page of a capacity plan has the table, the front and the changes") {
  const CapacityReport report = two_boards();
  const HtmlPage page = capacity_html(report, "plimsoll");
  CHECK(page.title == "test");
  CHECK(page.subtitle == "which one?");

  const auto& table = only<HtmlTable>(page);
  REQUIRE(table.rows.size() == 4);
  for (const auto& row : table.rows) CHECK(row.size() == table.columns.size());
  CHECK(table.rows[0].front().mark == HtmlTable::Mark::best);
  CHECK(table.rows[2].front().mark == HtmlTable::Mark::bad);
  CHECK(table.rows[2][1].text == "small");

  // Three are feasible. Without prices the axis beside throughput is energy: 4 samples in 45 ms and
  // 55 ms, at 3 W.
  const auto& front = only<HtmlScatter>(page);
  REQUIRE(front.points.size() == 3);
  CHECK(front.x.unit == "joules");
  CHECK(front.points[0].x == 0.03375);
  CHECK(front.points[0].y == Approx(4 / 0.045));
  CHECK(front.points[0].best);
  CHECK(front.points[2].label == "small with remat/every-stage");
  CHECK(front.points[2].x == 0.04125);
  // Of three axes: in the two that are shown the front is no line.
  CHECK_FALSE(front.joined);

  const auto& bars = only<HtmlBars>(page);
  const auto more = std::ranges::find(bars.items, "+5 MiB of sram", &HtmlBars::Item::label);
  REQUIRE(more != bars.items.end());
  CHECK(more->group == "small with remat/every-stage, held back by memory");
  CHECK(more->value == Approx(55.0 / 45.0 - 1));
  CHECK(more->text == "+22 % throughput (with `none`)");
  // As the text says it.
  CHECK(bars.items.front().label == "+8 MiB of sram");
  CHECK(bars.items.front().text == "no difference");
}

TEST_CASE("divisions that a plan leaves out are told with their reason") {
  // Of 4 processors the tensor axis takes 1, 2 or 4. Groups of 4 divide a data axis of 4; of 2 ranks they do not, and one
  // rank has nothing to divide, so that `sharding` says nothing there.
  const auto legend_of = [](const std::string& sharding,
                            const std::string& parallel = "tensor: [1, 2, 4]",
                            const std::string& other = "", const std::string& policies = "none") {
    const std::string ring =
        "{platform: ring, memories: {hbm: {capacity: 4 MiB, bandwidth: 1 GB/s}}, processors: {gpu: "
        "{memory: hbm, compute: {fp32: 10 GFLOP/s}}}, cluster: {count: 4, topology: switch, link: "
        "{name: nv, bandwidth: 2 GB/s}}}";
    const CapacityReport report = test::capacity_report_of(
        "capacity: test\nworkloads:\n  - name: perceptron\n    workload: {workload: p, input: [16, "
        "64], layers: "
        "[{linear: 256}, relu, {linear: 64}], loss: mse, optimizer: adam}\n    batch: {at_least: "
        "1, at_most: 16}\n"
        "    parallel: {" +
        parallel + "}\n    sharding: {stage: 3" + sharding + "}\nplatforms:\n  - platform: " +
        ring + (other.empty() ? "" : "\n  - {name: " + other + ", platform: " + ring + "}") +
        "\npolicies: [" + policies + "]\n");
    std::string all;
    for (const std::string& line : CapacityWords(report, report.answers.front()).legend())
      all += line + "\n";
    return all;
  };
  CHECK_THAT(
      legend_of(""),
      Catch::Contains("divided by: the fastest of the 3 divisions that fit the processors\n"));
  CHECK_THAT(
      legend_of(", group: 4"),
      Catch::Contains("divided by: the fastest of the 2 divisions that fit the processors\n"
                      "left out, 1 division: groups of 4 ranks do not divide a data axis of 2\n"));
  // Platforms and policies are told together, and those that the reason is not about are named.
  CHECK_THAT(
      legend_of(", group: 4", "tensor: [1, 2, 4]", "two", "none, remat/every-stage"),
      Catch::Contains("left out, 4 divisions: groups of 4 ranks do not divide a data axis of 2\n"));
  const std::string pipelines =
      legend_of("", "tensor: [1, 2], pipeline: [1, 2]", "two",
                "none, remat/every-stage, {name: pipeline/1f1b, microbatches: 2}");
  CHECK_THAT(
      pipelines,
      Catch::Contains("divided by: the fastest of the divisions that fit the processors, 2 of "
                      "ring, two with none, remat/every-stage; 4 of ring, two with "
                      "pipeline/1f1b\n"));
  CHECK_THAT(pipelines,
             Catch::Contains("left out of ring, two with none, 4 divisions: policy `none` "
                             "runs a whole network on each rank"));
}
