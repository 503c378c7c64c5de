#include "report/html/html_comparison.hpp"
#include "report/html/html_page.hpp"
#include "report/html/html_report.hpp"
#include "report/run_scenario.hpp"
#include "report/series/thinning.hpp"
#include "support/temporary_folder.hpp"

#include <cstdlib>
#include <set>
#include <string>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace plimsoll;
using nlohmann::json;

namespace {

constexpr const char* kTemplate =
    "<meta name=\"plimsoll-report\" content=\"1\"><script id=data>@DATA@</script><script>f()";

std::string page_of(const RanScenario& ran) {
  const HtmlOutcome outcome{&ran.scenario, ran.results};
  return html_of(html_report(std::span(&outcome, 1), "plimsoll"), kTemplate);
}

std::string data_in(const std::string& page) {
  const std::size_t begin = page.find("id=data>") + 8;
  return page.substr(begin, page.find("</script>") - begin);
}

json data_of(const HtmlPage& page) {
  return json::parse(data_in(html_of(page, kTemplate)));
}

/// Sets a variable of the environment for as long as it lives.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    const char* old = std::getenv(name);
    if (old != nullptr) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~Environment() {
    if (old_)
      setenv(name_, old_->c_str(), 1);
    else
      unsetenv(name_);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

}  // namespace

TEST_CASE("text of users never becomes markup") {
  const std::string hostile = "</script><script>alert(1)</script><!--";
  HtmlPage page{.title = hostile, .subtitle = hostile, .program = hostile};
  page.sections.emplace_back(HtmlText{hostile, hostile, {hostile}});
  page.sections.emplace_back(
      HtmlTable{hostile, hostile, {{hostile}}, {{{.text = hostile, .hint = hostile}}}});
  page.sections.emplace_back(
      HtmlScatter{.heading = hostile, .note = "", .points = {{1, 2, hostile, hostile}}});
  page.sections.emplace_back(HtmlBars{hostile, "", hostile, {{hostile, hostile, 1, hostile}}});
  page.sections.emplace_back(HtmlHeatmap{
      .heading = hostile, .what = hostile, .x = {hostile, {hostile}}, .cells = {{1.0}}});
  const std::string data = data_in(html_of(page, kTemplate));
  CHECK(data.find('<') == std::string::npos);
  // And nothing of it is lost.
  CHECK(json::parse(data).at("title") == hostile);
  CHECK(json::parse(data).at("sections").at(1).at("rows").at(0).at(0).at("hint") == hostile);
}

TEST_CASE("names that are no UTF-8 are shown as far as they are") {
  CHECK(data_of({.title = "a\xffz"}).at("title") == "a\xEF\xBF\xBDz");
}

TEST_CASE("sections of sweeps and capacity plans are written in the form that is described") {
  HtmlPage page;
  page.sections.emplace_back(HtmlScatter{.heading = "Front",
                                         .x = {"price", "EUR", true},
                                         .y = {"step", "seconds"},
                                         .points = {{100, 2.5, "a10 x 1", "a10", true}}});
  page.sections.emplace_back(HtmlHeatmap{.heading = "Heat",
                                         .what = "step time",
                                         .unit = "seconds",
                                         .low_is_good = true,
                                         .x = {"batch", {"1", "2"}},
                                         .y = {"budget", {"4 GiB"}},
                                         .cells = {{1.5, std::nullopt}},
                                         .texts = {{"", "oom"}}});
  page.sections.emplace_back(
      HtmlScatter{.joined = false, .curves = true, .points = {{1, 2, "", "a", false, 1.5}}});
  const json sections = data_of(page).at("sections");
  CHECK(sections.at(2).at("curves") == true);
  CHECK(sections.at(2).at("points").at(0).at("bound") == 1.5);
  CHECK(sections.at(0) == json::parse(R"({"kind": "scatter", "heading": "Front", "note": "",
    "x": {"label": "price", "unit": "EUR", "log": true},
    "y": {"label": "step", "unit": "seconds", "log": false},
    "joined": true, "curves": false,
    "points": [{"x": 100.0, "y": 2.5, "label": "a10 x 1", "series": "a10", "best": true}]})"));
  CHECK(sections.at(1).at("cells") == json::parse("[[1.5, null]]"));
  CHECK(sections.at(1).at("texts") == json::parse(R"([["", "oom"]])"));
}

TEST_CASE("a run is written as it was played") {
  // F1 0-10, F2 10-15, B2 15-25, B1 25-45 ms; memory as in series_test.cpp: 5, 8, 11, 7, 2 MiB.
  const json data = json::parse(data_in(page_of(run_scenario(two_stages("16 MiB", "none")))));
  CHECK(data.at("form") == kHtmlForm);
  CHECK(data.at("title") == "two-stages");
  CHECK(data.at("subtitle") == "pair on bench, batch 4");
  const json& section = data.at("sections").at(1);
  REQUIRE(section.at("kind") == "runs");
  const json& run = section.at("runs").at(0);
  CHECK(run.at("makespan") == 45'000'000'000);
  const json& track = run.at("tracks").at(0);
  CHECK(track.at("label") == "cpu");
  CHECK(track.at("start") == json({0, 10'000'000'000, 5'000'000'000, 10'000'000'000}));
  CHECK(track.at("length") ==
        json({10'000'000'000, 5'000'000'000, 10'000'000'000, 20'000'000'000}));
  CHECK(section.at("kinds").at(track.at("kind").at(3).get<std::size_t>()) == "backward");
  CHECK(section.at("names").at(track.at("name").at(3).get<std::size_t>()) == "s1.backward");
  const json& memory = run.at("memories").at(0);
  CHECK(memory.at("time") ==
        json({0, 10'000'000'000, 5'000'000'000, 10'000'000'000, 20'000'000'000}));
  // saved: 4, 7, 7, 4, 0 MiB.
  CHECK(memory.at("alive").at("saved") == json({4 << 20, 3 << 20, 0, -(3 << 20), -(4 << 20)}));
  CHECK(memory.at("usable") == 16 << 20);
  CHECK(memory.at("limited") == false);
  CHECK_FALSE(run.contains("power"));
}

TEST_CASE("where all ranks are played, each counts its microbatches") {
  const json data = json::parse(data_in(page_of(run_scenario(
      "scenario: s\nplatform: {platform: p, memories: {hbm: {capacity: 1 GiB}}, processors: {gpu: "
      "{memory: hbm, compute: {fp32: 1 TFLOP/s}}}, cluster: {count: 6, topology: mesh, link: "
      "{name: "
      "l, bandwidth: 1 GB/s}}}\nworkload: {workload: w, batch: 12, input: {shape: [64]}, loss: "
      "sum, "
      "layers: [{linear: 64}, {linear: 64}]}\nparallel: {data: 3, pipeline: 2, play: all}\n"
      "policy: {name: pipeline/1f1b, microbatches: 4}\n"))));
  const json& run = data.at("sections").at(1).at("runs").at(0);
  CHECK(run.at("microbatches") == 4);
  std::set<std::int64_t> found;
  for (const json& track : run.at("tracks"))
    for (const json& number : track.at("microbatch")) found.insert(number.get<std::int64_t>());
  found.erase(-1);
  CHECK(found == std::set<std::int64_t>{0, 1, 2, 3});
}

TEST_CASE("a memory with addresses has its map, and the request that did not fit") {
  // As in address_map_test.cpp, in 10 MiB: after 15 ms B2 asks for gradients of 3 MiB, where 1 + 4 + 3
  // are taken and 2 MiB are free, in one piece.
  std::string text = two_stages("10 MiB", "none");
  text.insert(text.find("sram: {") + 7, "allocator: first-fit, ");
  const json data = json::parse(data_in(page_of(run_scenario(text))));
  const json& section = data.at("sections").at(1);
  const json& memories = section.at("runs").at(0).at("memories");
  const json& map = memories.at(0).at("addresses");
  CHECK(map.at("oom") == json({{"step", "s2.backward"}, {"asked", 3 << 20}, {"largest", 2 << 20}}));
  CHECK(map.at("segments") == json::array({0}));
  CHECK(map.at("ranges").at("size") == json::array({10 << 20}));
  const json& blocks = map.at("blocks");
  CHECK(blocks.at("address") == json({0, 1 << 20, 5 << 20}));
  CHECK(blocks.at("size") == json({1 << 20, 4 << 20, 3 << 20}));
  CHECK(blocks.at("begin") == json({0, 0, 10'000'000'000}));
  CHECK(blocks.at("length") == json({nullptr, nullptr, nullptr}));
  CHECK(section.at("classes").at(blocks.at("class").at(2).get<std::size_t>()) == "saved");
  CHECK(section.at("names").at(blocks.at("name").at(2).get<std::size_t>()) == "s2.saved");
  CHECK(map.at("left_out") == 0);
}

TEST_CASE("the budget of a page is the one that was given, whatever the planner") {
  // In 12 MiB all 11 fit; 20 MiB are more than there are.
  const RanScenario ran = run_scenario(two_stages(
      "16 MiB",
      "[none, {name: remat/rotor, budget: 12 MiB}, {name: offload/greedy, budget: 12 "
      "MiB}, {name: hybrid/pofo, budget: 12 MiB}, {name: remat/rotor, budget: 20 MiB}]"));
  const HtmlOutcome outcome{&ran.scenario, ran.results};
  const json page = data_of(html_report(std::span(&outcome, 1), "plimsoll"));
  const json& runs = page.at("sections").at(1).at("runs");
  REQUIRE(runs.size() == 5);
  const auto sram = [&](std::size_t run) { return runs.at(run).at("memories").at(0); };
  CHECK_FALSE(sram(0).contains("budget"));
  for (std::size_t run = 1; run <= 3; ++run) CHECK(sram(run).at("budget") == 12 << 20);
  CHECK_FALSE(sram(4).contains("budget"));
}

TEST_CASE("the memory limit of a pipeline is the budget of each of its devices") {
  const RanScenario ran = run_scenario(
      "scenario: pipeline\n"
      "platform:\n"
      "  platform: pair\n"
      "  memories: {hbm: {capacity: 1 GiB}}\n"
      "  processors: {gpu: {memory: hbm}}\n"
      "  cluster: {count: 2, topology: chain, link: {name: nvlink, bandwidth: 20 GB/s}}\n"
      "workload:\n"
      "  workload: even\n"
      "  batch: 4\n"
      "  chain:\n"
      "    - repeat: 2\n"
      "      items: [{name: \"s{i}\", forward: 10 ms, backward: 20 ms, output: 1 MiB, saved: 2 "
      "MiB}]\n"
      "policy: {name: pipeline/1f1b-star, microbatches: 4, memory_limit: 100 MiB}\n");
  REQUIRE(ran.results[0].budgets.size() == 2);
  for (const auto& [memory, bytes] : ran.results[0].budgets) CHECK(bytes == Bytes{100 << 20});
}

TEST_CASE("the same runs give the same page") {
  const std::string text = two_stages("16 MiB", "[none, remat/every-stage, offload/eager]");
  CHECK(page_of(run_scenario(text)) == page_of(run_scenario(text)));
}

TEST_CASE("the comparison marks the best of each column and says why a run did not end well") {
  // none takes 45 ms and 11 MiB; remat/every-stage 55 ms and 8 MiB (see text_report_test.cpp); a
  // budget of 1 MiB is not enough for the input and F1 together.
  const RanScenario ran = run_scenario(two_stages(
      "16 MiB", "[none, remat/every-stage, {name: remat/rotor, budget: 1 MiB, slots: exact}]"));
  const HtmlTable table = html_comparison(ran.scenario, ran.results);
  using enum HtmlTable::Mark;
  REQUIRE(table.columns.size() >= 4);
  CHECK(table.columns[2].header == "peak of sram");
  CHECK(table.columns[3].header == "step time");
  CHECK(table.rows[0][2].mark == none);
  CHECK(table.rows[1][2].mark == best);
  CHECK(table.rows[1][2].bar == 0.5);
  CHECK(table.rows[0][3].mark == best);
  CHECK(table.rows[1][3].mark == none);
  CHECK(table.rows[2][1].text == "infeasible");
  CHECK(table.rows[2][1].mark == bad);
  CHECK(table.rows[2][1].hint.find("the smallest budget that it could meet is") !=
        std::string::npos);
  CHECK(table.rows[2][3].text == "-");
}

TEST_CASE("without a page the program says how to get one") {
  const test::TemporaryFolder folder;
  const Environment path("PLIMSOLL_PATH", folder.path().string());
  folder.write("report.html", kTemplate);
  CHECK(read_html_template() == kTemplate);
  // That of another form is passed over; what the build made may stand behind it.
  folder.write("report.html", "<meta name=\"plimsoll-report\" content=\"0\">@DATA@");
  try {
    const std::string found = read_html_template();
    CHECK(found.find("content=\"1\"") != std::string::npos);
  } catch (const InputError& error) {
    CHECK(error.diagnostics().front().message.find("of another version") != std::string::npos);
    CHECK(error.diagnostics().front().hint.find("--target report") != std::string::npos);
  }
  CHECK_THROWS_AS(html_of({}, "no place"), std::invalid_argument);
}

TEST_CASE("thinned points keep the greatest of every part") {
  // 1,000 points in 1,000 ps, thinned to 30: ten parts of 101 ps. The greatest is at 555.
  std::vector<PowerPoint> points;
  for (std::int64_t i = 0; i < 1000; ++i)
    points.push_back({Time{i}, Power{i == 555 ? 1'000'000 : i % 7}, Energy{}});
  const auto size = [](const PowerPoint& point) { return point.drawn; };
  const auto fewer = thinned(points, Time{1000}, 30, size);
  CHECK(fewer.size() <= 30);
  CHECK(fewer.front().time == Time{0});
  CHECK(fewer.back().time == Time{999});
  CHECK(std::ranges::count(fewer, Time{555}, &PowerPoint::time) == 1);
  CHECK(std::ranges::is_sorted(fewer, {}, &PowerPoint::time));
  CHECK(thinned(points, Time{1000}, 1000, size).size() == 1000);
}

TEST_CASE("short slices are drawn together, long ones as they are") {
  // 1 ps each, up to 100 ps; then one of 50 ps. Up to 10 ps go together.
  Track track;
  for (std::int64_t i = 0; i < 100; ++i)
    track.slices.push_back({.kind = i % 2 == 0 ? SliceKind::forward : SliceKind::backward,
                            .start = Time{i},
                            .end = Time{i + 1}});
  track.slices.push_back({.kind = SliceKind::optimizer, .start = Time{100}, .end = Time{150}});
  const auto fewer = thinned(track, Time{10});
  REQUIRE(fewer.size() == 11);
  CHECK(fewer[0].count == 10);
  CHECK(fewer[0].slice.end == Time{10});
  CHECK(fewer[10].count == 1);
  CHECK(fewer[10].slice.kind == SliceKind::optimizer);
  CHECK(thinned(track, Time{-1}).size() == 101);
}

TEST_CASE("the page of a hybrid plan has pictures of RAM, storage and computing by stage") {
  // Four operators of 1 B in 3 B of RAM: d reads what a and c made.
  const RanScenario ran = run_scenario(
      "scenario: s\n"
      "platform: {platform: p, memories: {ram: {capacity: 3 B}, sd: {capacity: 9 B}}, processors: "
      "{cpu: "
      "{memory: ram, power: {idle: 0 W, active: 1 W}}}, links: {bus: {between: [ram, sd], "
      "bandwidth: 100 B/s, "
      "energy: 1 mJ/B}}}\n"
      "workload: {workload: w, graph: {operators: [{name: a, inputs: [], time: 1 s, outputs: {p: 1 "
      "B}}, {name: b, "
      "inputs: [p], time: 1 s, outputs: {q: 1 B}}, {name: c, inputs: [q], time: 1 s, outputs: {r: "
      "1 B}}, {name: d, "
      "inputs: [p, r], time: 1 s, outputs: {s: 1 B}}]}}\n"
      "policy: {name: hybrid/graph, budget: 3 B, objective: energy}\n");
  const HtmlOutcome outcome{&ran.scenario, ran.results};
  std::vector<HtmlHeatmap> maps;
  for (const HtmlSection& section : html_report(std::span(&outcome, 1), "plimsoll").sections)
    if (const auto* map = std::get_if<HtmlHeatmap>(&section)) maps.push_back(*map);
  REQUIRE(maps.size() == 3);
  const auto row = [](const HtmlHeatmap& map, std::size_t stage) { return map.texts.at(stage); };
  using Texts = std::vector<std::string>;
  // When c begins, a and b are in RAM; nothing has left it, and each operator runs once.
  CHECK(row(maps[0], 2) == Texts{"\u25a0", "\u25a0", "\u00b7", " "});
  CHECK(row(maps[0], 3) == Texts{"\u25a0", "\u00b7", "\u25a0", "\u00b7"});
  CHECK(row(maps[1], 3) == Texts{"\u00b7", "\u00b7", "\u00b7", "\u00b7"});
  CHECK(row(maps[2], 2) == Texts{"\u00b7", "\u00b7", "1", " "});
  CHECK(maps[2].y.values == std::vector<std::string>{"0 a", "1 b", "2 c", "3 d"});
}

TEST_CASE("the page of a mesh draws machines that do the same once") {
  // Eight machines of two GPUs: tensor within them, data 4 and pipeline 2 across.
  const RanScenario ran = run_scenario(
      "scenario: s\n"
      "platform: {platform: p, memories: {hbm: {capacity: 1 GiB}, dram: {capacity: 1 GiB}}, "
      "switches: [fabric], processors: {gpu: {memory: hbm, compute: {fp32: 1 TFLOP/s}}}, links: "
      "{nic: {between: [hbm, fabric], bandwidth: 1 GB/s}, pcie: {between: [hbm, dram], bandwidth: "
      "1 "
      "GB/s}}, cluster: {count: 2, shared: [dram], topology: switch, link: {name: nvlink, "
      "bandwidth: 100 GB/s}, nodes: {count: 8, shared: [fabric]}}}\n"
      "workload: {workload: w, batch: 16, input: {shape: [8, 64]}, loss: sum, layers: [{linear: "
      "256}, "
      "relu, {linear: 64}, {linear: 64}, relu, {linear: 64}]}\n"
      "parallel: {tensor: 2, data: 4, pipeline: 2}\n"
      "policy: {name: pipeline/gpipe, microbatches: 2}\n");
  const HtmlOutcome outcome{&ran.scenario, ran.results};
  const HtmlPage page = html_report(std::span(&outcome, 1), "plimsoll");
  const auto section = std::ranges::find_if(
      page.sections, [](const HtmlSection& it) { return std::holds_alternative<HtmlMesh>(it); });
  REQUIRE(section != page.sections.end());
  const HtmlMesh& mesh = std::get<HtmlMesh>(*section);
  CHECK_THAT(mesh.note, Catch::Matchers::StartsWith("16 ranks on 8 machines."));
  REQUIRE(mesh.machines.size() == 2);
  CHECK(mesh.machines[0].title == "data 0 to 3, pipeline 0");
  CHECK(mesh.machines[1].title == "data 0 to 3, pipeline 1");
  for (const HtmlMesh::Machine& machine : mesh.machines) {
    CHECK(machine.count == 4);
    REQUIRE(machine.gpus.size() == 2);
    CHECK(machine.gpus[1].label == "t1");
  }
  // What is drawn is what was measured.
  const auto& memories = ran.results.front().metrics.memories;
  const auto last = std::ranges::find(memories, "hbm9", &MemoryMetrics::name);
  REQUIRE(last != memories.end());
  CHECK(mesh.machines[1].gpus[1].words ==
        "gpu9 and 3 alike: tensor 1, data 0 to 3, pipeline 1; hbm9 peaks at " +
            to_text(last->peak_requested) + " of 1 GiB (0.02 %)");
  CHECK(mesh.coloured == "tensor");
  REQUIRE(mesh.axes.size() == 3);
  CHECK(mesh.axes[0].inside == "nvlink, 100 GB/s");
  CHECK(mesh.axes[0].across.empty());
  CHECK_THAT(mesh.axes[0].carries, Catch::Matchers::StartsWith("activations "));
  CHECK(mesh.axes[1].across == "nic, 1 GB/s");
  CHECK_THAT(mesh.axes[1].carries, Catch::Matchers::StartsWith("gradients "));
  // Stage 1 ends behind the first relu, whose 256 features the tensor axis halves. Of the 16 samples a rank has 4, in two
  // microbatches: it sends 4 x 8 x 128 x 4 B, and one of stage 2 as many gradients.
  CHECK(mesh.axes[2].carries == "messages between stages, 16 KiB from the rank that sends most");
  const json drawn = data_of({.sections = {mesh}}).at("sections").at(0);
  CHECK(drawn.at("kind") == "mesh");
  CHECK(drawn.at("machines").at(0).at("gpus").at(1).at("colour") == 1);
}
