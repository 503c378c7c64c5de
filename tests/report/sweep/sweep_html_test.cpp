// The results of a sweep as sections of a page, from real sweeps of two stages:
//
//   none takes 45 ms and 11 MiB, remat/every-stage 55 ms and 8 MiB (text_report_test.cpp), of 4
//   samples each; neither uses the link.
#include "report/html/html_page.hpp"
#include "report/run_scenario.hpp"
#include "report/sweep/html_sweep.hpp"
#include "report/sweep/swept_axis.hpp"
#include "scenario/sweep/sweep_jobs.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

using namespace plimsoll;

namespace {

using Texts = std::vector<std::string>;

Sweep sweep_of(const std::string& rest) {
  std::string text = "sweep: s\nbase:\n  ";
  for (const char c : two_stages("16 MiB", "none")) text += c == '\n' ? "\n  " : std::string(1, c);
  return read_sweep(parse_document(text + "\n" + rest, "s.yaml"), ".");
}

HtmlPage page_of(const Sweep& sweep, unsigned jobs = 1, const SweepShard& shard = {}) {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "s.sqlite";
  {
    SweepResults results = SweepResults::create(path, sweep, shard);
    run_sweep(sweep, shard, jobs, results, [](std::size_t) {});
  }
  return html_sweep(Database(path, Database::Mode::read_only), "plimsoll");
}

HtmlPage page_of(const std::string& rest, unsigned jobs = 1, const SweepShard& shard = {}) {
  return page_of(sweep_of(rest), jobs, shard);
}

template <class Section>
std::vector<Section> all_of(const HtmlPage& page) {
  std::vector<Section> found;
  for (const HtmlSection& section : page.sections)
    if (const auto* it = std::get_if<Section>(&section)) found.push_back(*it);
  return found;
}

template <class Section>
Texts headings_of(const HtmlPage& page) {
  Texts headings;
  for (const Section& section : all_of<Section>(page)) headings.push_back(section.heading);
  return headings;
}

Texts row_of(const HtmlTable& table, std::size_t r) {
  Texts texts;
  for (const HtmlTable::Cell& cell : table.rows.at(r)) texts.push_back(cell.text);
  return texts;
}

constexpr const char* kGrid =
    "policies: [none, remat/every-stage]\n"
    "grid:\n"
    "  memories.sram.capacity: [16 MiB, 10 MiB]\n"
    "  links.spi.bandwidth: [400 MiB/s, 800 MiB/s]\n";

}  // namespace

TEST_CASE("a sweep's page tells how runs ended, the best points and what was varied") {
  const HtmlPage page = page_of(kGrid);
  CHECK(page.title == "s");
  CHECK(page.subtitle == "sweep, 8 runs");
  const std::vector<HtmlTable> tables = all_of<HtmlTable>(page);
  REQUIRE(headings_of<HtmlTable>(page) ==
          Texts{"How the runs ended", "Best points", "What was varied"});
  // In 10 MiB `none` does not fit, whatever the link.
  CHECK(row_of(tables[0], 0) == Texts{"ok", "6", ""});
  CHECK(row_of(tables[0], 1).at(1) == "2");
  CHECK_THAT(row_of(tables[0], 1).at(2), Catch::StartsWith("point 4: s2."));
  CHECK(tables[0].rows[1][0].mark == HtmlTable::Mark::bad);
  CHECK(row_of(tables[1], 0) == Texts{"makespan", "45 ms", "0", "none", "16 MiB", "400 MiB/s"});
  CHECK(tables[2].note.empty());
  CHECK(row_of(tables[2], 0) == Texts{"memories.sram.capacity", "2", "16 MiB", "10 MiB"});
  CHECK(row_of(tables[2], 2) == Texts{"policy", "2", "none", "remat/every-stage"});
}

TEST_CASE("a page of the fastest lists them, and draws nothing of runs that were not made") {
  const HtmlPage page = page_of(std::string(kGrid) + "fastest: 3\n");
  const std::vector<HtmlTable> tables = all_of<HtmlTable>(page);
  REQUIRE(headings_of<HtmlTable>(page) ==
          Texts{"How the runs ended", "The fastest", "What was varied"});
  CHECK(page.sections.size() == 3);
  // Of equally fast ones the first: `none` in 16 MiB over either link, then `remat/every-stage`.
  REQUIRE(tables[1].rows.size() == 3);
  CHECK(row_of(tables[1], 0) ==
        Texts{"1", "88.89", "45 ms", "11 MiB", "16 MiB", "400 MiB/s", "0", "none"});
  CHECK(row_of(tables[1], 1).back() == "none");
  CHECK(row_of(tables[1], 2) ==
        Texts{"3", "72.73", "55 ms", "8 MiB", "16 MiB", "400 MiB/s", "1", "remat/every-stage"});
}

TEST_CASE("a sweep's metrics are maps over two axes, one for each value of the others") {
  const HtmlPage page = page_of(kGrid);
  // Of axes that are equally long the policies go down. Nothing states a power.
  REQUIRE(headings_of<HtmlHeatmap>(page) ==
          Texts{"Throughput: links.spi.bandwidth 400 MiB/s",
                "Throughput: links.spi.bandwidth 800 MiB/s",
                "Overhead: links.spi.bandwidth 400 MiB/s",
                "Overhead: links.spi.bandwidth 800 MiB/s",
                "Peak of the fullest memory: links.spi.bandwidth 400 MiB/s",
                "Peak of the fullest memory: links.spi.bandwidth 800 MiB/s"});
  const std::vector<HtmlHeatmap> maps = all_of<HtmlHeatmap>(page);
  CHECK(maps[0].x.label == "memories.sram.capacity");
  CHECK(maps[0].x.values == Texts{"16 MiB", "10 MiB"});
  CHECK(maps[0].y.label == "policy");
  CHECK(maps[0].y.values == Texts{"none", "remat/every-stage"});
  for (const HtmlHeatmap& map : maps) {
    CHECK_FALSE(map.cells[0][1]);
    CHECK(map.texts == std::vector<Texts>{{"", "oom"}, {"", ""}});
    CHECK_FALSE(map.unranked);
    CHECK(map.low_is_good == (map.what != "throughput"));
    CHECK(map.cells[1][0] == map.cells[1][1]);
  }
  // 4 samples in 45 and in 55 ms; 10 of 45 ms more; as measured by the runs.
  CHECK(maps[0].unit == "samples/s");
  CHECK(maps[0].cells[0][0].value() == Approx(4 / 0.045));
  CHECK(maps[0].cells[1][0].value() == Approx(4 / 0.055));
  CHECK(maps[0].range->least == Approx(4 / 0.055));
  CHECK(maps[0].range->most == Approx(4 / 0.045));
  CHECK(maps[2].unit == "share");
  CHECK(maps[2].cells[0][0].value() == 0);
  CHECK(maps[2].cells[1][0].value() == Approx(10.0 / 45));
  CHECK(maps[4].unit == "bytes");
  CHECK(maps[4].cells[0][0].value() == 11 << 20);
  CHECK(maps[4].cells[1][0].value() == 8 << 20);
}

TEST_CASE("a sweep's front joins what nothing beats in throughput and memory") {
  const std::vector<HtmlScatter> charts = all_of<HtmlScatter>(page_of(kGrid));
  REQUIRE(charts.size() == 1);
  CHECK(charts[0].heading == "Throughput against memory");
  CHECK_THAT(charts[0].note, Catch::StartsWith("The line joins the 2 points"));
  // `none` twice, `remat/every-stage` four times; of equal ones the first is on the front.
  REQUIRE(charts[0].points.size() == 6);
  const HtmlScatter::Point &fast = charts[0].points[0], &small = charts[0].points[2];
  CHECK(fast.best);
  CHECK(fast.series == "none");
  CHECK(fast.label == "capacity 16 MiB, bandwidth 400 MiB/s");
  CHECK(fast.x == 11 << 20);
  CHECK(small.best);
  CHECK(small.series == "remat/every-stage");
  CHECK(small.y == Approx(4 / 0.055));
  CHECK(std::ranges::count(charts[0].points, true, &HtmlScatter::Point::best) == 2);
}

TEST_CASE("curves of time and throughput show what a policy has proven") {
  const HtmlPage page =
      page_of("policies: [none, remat/rotor]\ngrid: {memories.sram.capacity: [16 MiB, 10 MiB]}\n");
  const std::vector<HtmlScatter> charts = all_of<HtmlScatter>(page);
  REQUIRE(charts.size() == 4);
  const HtmlScatter &throughput = charts[1], &overhead = charts[2], &peak = charts[3];
  CHECK_THAT(overhead.note, Catch::Contains("A dashed line"));
  CHECK(peak.note.find("dashed") == std::string::npos);
  int recomputing = 0;
  for (const HtmlScatter::Point& point : overhead.points) {
    REQUIRE(point.bound);
    // In 10 MiB rotor runs something again; nobody is faster than with everything kept.
    CHECK(*point.bound == Approx(0).margin(1e-9));
    recomputing += point.y > 0 ? 1 : 0;
  }
  CHECK(overhead.points.size() == 3);
  CHECK(recomputing == 1);
  for (const HtmlScatter::Point& point : throughput.points) CHECK(*point.bound >= Approx(point.y));
  CHECK(std::ranges::none_of(peak.points, [](const auto& it) { return it.bound.has_value(); }));
}

TEST_CASE("a sweep over one axis of numbers has a chart for each metric") {
  const HtmlPage page =
      page_of("policies: [none]\ngrid: {links.spi.bandwidth: [400 MiB/s, 1 GB/s]}\n");
  const std::vector<HtmlScatter> charts = all_of<HtmlScatter>(page);
  REQUIRE(headings_of<HtmlScatter>(page) ==
          Texts{"Throughput against memory", "How throughput changes with links.spi.bandwidth",
                "How overhead changes with links.spi.bandwidth",
                "How peak of the fullest memory changes with links.spi.bandwidth"});
  CHECK_THAT(charts[0].note, Catch::StartsWith("One point beats all others"));
  CHECK(charts[1].x.unit == "GB/s");
  CHECK(charts[1].y.unit == "samples/s");
  REQUIRE(charts[1].points.size() == 2);
  CHECK(charts[1].points[0].x == Approx(0.4194304));
  CHECK(charts[1].points[1].x == Approx(1));
  for (const HtmlScatter& chart : charts) CHECK(chart.curves == (&chart != charts.data()));
  // The map of one axis has one row.
  const std::vector<HtmlHeatmap> maps = all_of<HtmlHeatmap>(page);
  REQUIRE(maps.size() == 3);
  CHECK(maps[0].heading == "Throughput");
  CHECK(maps[0].cells.size() == 1);
  CHECK(all_of<HtmlTable>(page).back().note == "The same at every point: policy = none.");
}

TEST_CASE("what goes together is one axis, and long axes are thinned with their ends") {
  const HtmlPage page = page_of(
      "policies: [none, remat/every-stage]\n"
      "grid: {memories.sram.capacity: {from: 20 MiB, to: 59 MiB, step: 1 MiB}}\n"
      "zip: {links.spi.bandwidth: [1 GB/s, 2 GB/s, 1 GB/s], links.spi.latency: [1 us, 2 us, 3 "
      "us]}\n");
  const HtmlTable varied = all_of<HtmlTable>(page).back();
  REQUIRE(varied.rows.size() == 3);
  CHECK(row_of(varied, 1) ==
        Texts{"links.spi.bandwidth, links.spi.latency", "3", "1 GB/s, 1 us", "1 GB/s, 3 us"});
  CHECK(varied.note ==
        "The maps show 24 of the 40 values of memories.sram.capacity, evenly spaced.");
  const HtmlHeatmap map = all_of<HtmlHeatmap>(page).front();
  CHECK(map.heading == "Throughput: policy none");
  REQUIRE(map.x.values.size() == 24);
  CHECK(map.x.values.front() == "20 MiB");
  // The second of 24 among 40: 39 / 23, rounded down.
  CHECK(map.x.values[1] == "21 MiB");
  CHECK(map.x.values[22] == "57 MiB");  // 22 * 39 / 23 = 37.3
  CHECK(map.x.values.back() == "59 MiB");
  for (const auto& row : map.cells)
    CHECK(std::ranges::all_of(row, [](const auto& cell) { return cell.has_value(); }));
}

TEST_CASE("a sweep's page is bounded, and says what is left out") {
  // 30 to the right, 14 down; a map for each of 3 x 2 values of the others.
  const HtmlPage page = page_of(
      "policies: [none, remat/every-stage]\n"
      "grid:\n"
      "  memories.sram.capacity: {from: 20 MiB, to: 49 MiB, step: 1 MiB}\n"
      "  links.spi.bandwidth: {from: 1 GB/s, to: 14 GB/s, step: 1 GB/s}\n"
      "  links.spi.latency: [1 us, 2 us, 3 us]\n");
  CHECK(all_of<HtmlHeatmap>(page).size() == 3 * 6);
  const HtmlPage more = page_of(
      "policies: [none, remat/every-stage]\n"
      "grid:\n"
      "  memories.sram.capacity: {from: 20 MiB, to: 40 MiB, step: 1 MiB}\n"
      "  links.spi.bandwidth: {from: 1 GB/s, to: 8 GB/s, step: 1 GB/s}\n"
      "  links.spi.latency: {from: 1 us, to: 7 us, step: 1 us}\n");
  CHECK(all_of<HtmlHeatmap>(more).size() == 3 * 12);
  CHECK_THAT(all_of<HtmlTable>(more).back().note,
             Catch::Contains("maps for the first 12 of the 14 values of links.spi.latency and "
                             "policy"));
  // 2,352 points end well: every second is drawn, and those two of the front.
  const HtmlScatter front = all_of<HtmlScatter>(more).front();
  CHECK(front.points.size() <= 1178);
  CHECK(std::ranges::count(front.points, true, &HtmlScatter::Point::best) == 2);
  CHECK_THAT(front.note, Catch::EndsWith("Of 2,352 points one in 2 is drawn."));
}

TEST_CASE("what a search found is a map of its own, without a best") {
  // `none` needs its 11 MiB whatever the link.
  const HtmlPage page = page_of(
      "policies: [none]\n"
      "grid: {links.spi.bandwidth: [1 GB/s, 2 GB/s]}\n"
      "smallest: {path: memories.sram.capacity, from: 1 MiB, to: 16 MiB, step: 1 MiB}\n");
  const HtmlTable found = all_of<HtmlTable>(page)[2];
  REQUIRE(found.rows.size() == 2);
  CHECK(row_of(found, 0) == Texts{"0", "none", "1 GB/s", "11 MiB"});
  const HtmlHeatmap map = all_of<HtmlHeatmap>(page).front();
  CHECK(map.heading == "Found memories.sram.capacity");
  CHECK(map.unit == "bytes");
  CHECK(map.unranked);
  CHECK(map.cells == std::vector<std::vector<std::optional<double>>>{{11 << 20, 11 << 20}});
}

TEST_CASE("holes of a search are in a table, and marked on its map") {
  // Two microbatches do not divide 1 and 3; without microbatches any batch holds.
  const HtmlPage page = page_of(
      "policies: [none, {name: pipeline/1f1b, microbatches: 2}]\n"
      "grid: {links.spi.bandwidth: [1 GB/s, 2 GB/s, 3 GB/s]}\n"
      "largest: {path: workload.batch, from: 1, to: 4}\n");
  REQUIRE(headings_of<HtmlTable>(page) == Texts{"How the runs ended", "Best points",
                                                "What the search found", "Holes of the search",
                                                "What was varied"});
  const HtmlTable holes = all_of<HtmlTable>(page)[3];
  CHECK(holes.rows.size() == 3);
  CHECK(row_of(holes, 0) == Texts{"1", "pipeline/1f1b", "4", "1, 3"});
  const std::vector<HtmlHeatmap> maps = all_of<HtmlHeatmap>(page);
  CHECK(maps[0].heading == "Found workload.batch");
  const std::string hole = "does not hold with 1, 3";
  CHECK(maps[0].remarks == std::vector<Texts>{{"", "", ""}, {hole, hole, hole}});
  CHECK_THAT(maps[0].note, Catch::StartsWith("Marked by a ring"));
  CHECK(maps[1].remarks.empty());
  CHECK(maps[1].note.empty());
}

TEST_CASE("a search that left candidates out says so beside what it found") {
  const HtmlPage page = page_of(
      "policies: [{name: pipeline/1f1b, microbatches: 4}]\n"
      "grid: {memories.sram.capacity: [1 TiB]}\n"
      "largest: {path: workload.batch, from: 1, to: 5000}\n");
  REQUIRE(headings_of<HtmlTable>(page) == Texts{"How the runs ended", "Best points",
                                                "What the search found", "Holes of the search"});
  const HtmlTable holes = all_of<HtmlTable>(page)[3];
  CHECK(holes.columns.back().header == "not tried");
  CHECK_THAT(holes.note, Catch::Contains("A value that was not tried may be the one"));
  CHECK(row_of(holes, 0).back() != "0");
}

TEST_CASE("the same results give the same page, and a shard its part of it") {
  constexpr const char* kTemplate = "@DATA@";
  CHECK(html_of(page_of(kGrid, 1), kTemplate) == html_of(page_of(kGrid, 4), kTemplate));
  const HtmlPage shard = page_of(kGrid, 1, {1, 2});
  CHECK(shard.subtitle == "sweep, 4 runs of shard 1/2");
  // Every second point: of all policies the second.
  CHECK_THAT(all_of<HtmlTable>(shard).back().note,
             Catch::Contains("The same at every point: policy = remat/every-stage."));
  const test::TemporaryFolder folder;
  const Database other(folder / "other.sqlite", Database::Mode::create);
  CHECK_THROWS_AS(html_sweep(other, "plimsoll"), InputError);
}

TEST_CASE("units of axes are scaled to their largest number") {
  const auto check = [](const ShownUnit& unit, const std::string& name, double scale) {
    CHECK(unit.unit == name);
    CHECK(unit.scale == scale);
  };
  check(shown_unit("B/s", 64e9), "GB/s", 1e9);
  check(shown_unit("J/B", 3.3e-12), "pJ/B", 1e-12);
  check(shown_unit("FLOP/s", 0), "FLOP/s", 1);
  check(shown_unit("B", 1e12), "bytes", 1);
  check(shown_unit("", 5), "", 1);
}

TEST_CASE("values are shown short") {
  CHECK(label_of_value("{name: offload/prefix, budget: 6 GiB}") == "offload/prefix, budget: 6 GiB");
  // 61 bytes, the 60th of them the first of two: a character is kept whole.
  CHECK(label_of_value(std::string(59, 'a') + "µ") == std::string(59, 'a') + "µ…");
}

// scenarios/sweeps/online-budgets.yaml: in 550 MiB Coop's pool is in pieces, in 500 and 600 it is not.
TEST_CASE("a sweep's page lists values that fail between values that run") {
  const Sweep sweep = read_sweep(
      parse_document("sweep: s\n"
                     "base:\n"
                     "  scenario: s\n"
                     "  platform: v100-pcie-32gb\n"
                     "  workload: {model: densenet121, batch: 16, optimizer: sgd-momentum}\n"
                     "  policy: none\n"
                     "policies: [none, online/coop]\n"
                     "grid:\n"
                     "  memories.hbm.capacity: [600 MiB, 550 MiB, 500 MiB]\n",
                     "s.yaml"),
      ".");
  const std::vector<HtmlTable> tables = all_of<HtmlTable>(page_of(sweep));
  REQUIRE(tables.size() == 4);
  CHECK(tables[2].heading == "Holes between values that run");
  REQUIRE(tables[2].rows.size() == 1);
  CHECK(row_of(tables[2], 0) == Texts{"online/coop", "memories.hbm.capacity", "550 MiB", "oom"});
}
