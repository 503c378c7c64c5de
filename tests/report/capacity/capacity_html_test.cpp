#include "report/capacity/capacity_html.hpp"

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
