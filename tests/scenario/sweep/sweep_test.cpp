// Sweeps: which points there are, what their runs are, and how results are kept.
#include "scenario/sweep/sweep_jobs.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <fstream>
#include <random>
#include <set>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

/// Four stages; with both of its links it offloads as fast as it computes.
constexpr const char* kBase =
    "  scenario: toy\n"
    "  platform: {platform: p, memories: {hbm: {capacity: 40 MiB}, dram: {capacity: 1 GiB}},\n"
    "             processors: {gpu: {memory: hbm, compute: {fp32: 1 TFLOP/s}}},\n"
    "             links: {pcie: {between: [hbm, dram], bandwidth: 1 GB/s}}}\n"
    "  workload: {workload: w, input: 1 MiB, batch: 8, chain: [\n"
    "    {name: s0, forward: 10 ms, backward: 20 ms, output: 1 MiB, saved: 8 MiB}, {repeat: 3, "
    "items: "
    "[{name: 's{i}', forward: 10 ms, backward: 20 ms, output: 1 MiB, saved: 8 MiB}]}]}\n"
    "  policy: [none, offload/eager, {name: remat/sqrt, segments: 2}]\n";

Sweep sweep_of(const std::string& rest) {
  return read_sweep(parse_document(fmt::format("sweep: s\nbase:\n{}{}", kBase, rest), "s.yaml"),
                    ".");
}

std::string sweep_error(const std::string& rest) {
  try {
    return fmt::format("none, {} points", sweep_of(rest).points());
  } catch (const InputError& error) {
    return error.what();
  }
}

/// The values of every point, joined.
Texts points_of(const Sweep& sweep) {
  Texts points;
  for (std::size_t p = 0; p < sweep.points(); ++p)
    points.push_back(fmt::format("{}", fmt::join(sweep.point(p).texts, " | ")));
  return points;
}

/// All rows of all tables but `planning`, one text each.
Texts content_of(const fs::path& path) {
  const Database database(path, Database::Mode::read_only);
  Texts rows;
  for (const char* table :
       {"sweep", "variables", "points", "runs", "memories", "links", "processors", "searches"}) {
    Statement statement(database, fmt::format("SELECT * FROM {} ORDER BY 1, 2", table));
    while (statement.step()) {
      std::string row = table;
      for (int c = 0; c < statement.columns(); ++c) row += " | " + statement.text(c);
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

void run_to(const Sweep& sweep, const fs::path& path, unsigned jobs, const SweepShard& shard = {}) {
  SweepResults results = SweepResults::resume(path, sweep, shard);
  run_sweep(sweep, shard, jobs, results, [](std::size_t) {});
}

constexpr const char* kGrid =
    "grid:\n"
    "  links.pcie.bandwidth: [1 GB/s, 2 GB/s, 400 MB/s]\n"
    "  memories.hbm.capacity: {from: 8 MiB, to: 48 MiB, step: 8 MiB}\n"
    "  chain.0.saved: [8 MiB, 0.5 MiB]\n";  // the second is less than its output

}  // namespace

TEST_CASE("sweep: axes go from the slowest to the fastest, the policies last") {
  const Sweep sweep = sweep_of(
      "grid: {workload.batch: [8, 16], links.pcie.bandwidth: {from: 1 GB/s, to: 2 GB/s, count: "
      "2}}\n"
      "policies: [none, {name: remat/sqrt, segments: 1}]\n");
  CHECK(points_of(sweep) ==
        Texts{"8 | 1 GB/s | none", "8 | 1 GB/s | {name: remat/sqrt, segments: 1}",
              "8 | 2 GB/s | none", "8 | 2 GB/s | {name: remat/sqrt, segments: 1}",
              "16 | 1 GB/s | none", "16 | 1 GB/s | {name: remat/sqrt, segments: 1}",
              "16 | 2 GB/s | none", "16 | 2 GB/s | {name: remat/sqrt, segments: 1}"});
}

TEST_CASE("sweep: zipped paths vary together, conditions leave points out, others are derived") {
  const Sweep sweep = sweep_of(
      "policies: [offload/greedy]\n"
      "zip: {memories.hbm.capacity: [16 MiB, 32 MiB, 64 MiB], memories.dram.capacity: [1 GiB, 2 "
      "GiB, "
      "3 GiB]}\n"
      "derive: {policy.budget: memories.hbm.capacity * 0.5, links.pcie.bandwidth: '1 GB/s * 2'}\n"
      "where: [policy.budget > 8 MiB, policy == 'offload/greedy']\n");
  CHECK(points_of(sweep) == Texts{"32 MiB | 2 GiB | offload/greedy | 16 MiB | 2 GB/s",
                                  "64 MiB | 3 GiB | offload/greedy | 32 MiB | 2 GB/s"});
}

TEST_CASE("sweep: what is wrong is told at its place, with the nearest name") {
  CHECK(sweep_error("gird: {}\n") ==
        "s.yaml:10:1: error: unknown key `gird` in the sweep; did you mean `grid`?");
  CHECK(sweep_error("grid: {links.pice.bandwidth: [1 GB/s, 2 GB/s]}\n") ==
        "s.yaml:10:8: error: the platform's `links` have no `pice`; did you mean `pcie`?");
  CHECK(sweep_error("grid: {bacth: [1, 2]}\n") ==
        "s.yaml:10:8: error: `bacth` is not a path of the platform, the workload or the policy; "
        "did you "
        "mean `batch`?");
  CHECK(sweep_error("grid: {policy.budget: [1 GiB]}\n") ==
        "s.yaml:10:8: error: no policy of the scenario has a parameter `budget`");
  CHECK(sweep_error("grid: {workload.batch: [8], batch: {from: 4, to: 2, step: 1}}\n") ==
        "s.yaml:10:50: error: `to` is less than `from`: the range is empty");
  CHECK(sweep_error("grid: {workload.batch: [8]}\nderive: {workload.batch: '16'}\n") ==
        "s.yaml:11:10: error: `workload.batch` is varied or derived already");
  CHECK(
      sweep_error("zip: {workload.batch: [8], links.pcie.bandwidth: [1 GB/s, 2 GB/s]}\n") ==
      "s.yaml:10:28: error: found 2 values; expected 1, as many as `workload.batch` beside it has");
  CHECK(sweep_error("grid: {workload.batch: [8]}\nwhere: workload.batch * 2\n") ==
        "s.yaml:11:8: error: found `workload.batch * 2`; expected a condition, such as "
        "`workload.batch <= 64`");
  CHECK(sweep_error("grid: {workload.batch: [8]}\nwhere: workload.batch > 1 GiB\n") ==
        "s.yaml:11:8: error: `>` of a number and a size");
  CHECK(sweep_error("grid: {workload.batch: [8]}\nwhere: workload.batch > 8\n") ==
        "s.yaml:1:1: error: no point meets the conditions");
  CHECK(sweep_error(
            "grid: {batch: {from: 1, to: 90000, step: 1}, chain.0.forward: {from: 1 ms, to: 90 s, "
            "step: 1 ms}}\n") ==
        "s.yaml:1:1: error: the grid has more than 10000000 points; sweep fewer values, or in "
        "several "
        "sweeps");
}

TEST_CASE("sweep: all that is wrong with a file is told at once, each once") {
  CHECK(sweep_error("grid: {links.pice.bandwidth: [1 GB/s], batch: {from: 4, to: 2, step: 1}}\n"
                    "derive: {policy.budget: bacth * 1 MiB}\n"
                    "where: batch * 2\n"
                    "largest: {path: chain.0.saved, from: 2, to: 1}\n") ==
        "s.yaml:10:8: error: the platform's `links` have no `pice`; did you mean `pcie`?\n"
        "s.yaml:10:61: error: `to` is less than `from`: the range is empty\n"
        "s.yaml:11:25: error: `bacth` is not varied by this sweep; did you mean `batch`?\n"
        "s.yaml:12:8: error: found `batch * 2`; expected a condition, such as "
        "`workload.batch <= 64`\n"
        "s.yaml:13:45: error: `to` is less than `from`: the range is empty");
  // What follows from an error is none: `batch` would be varied, were its key another.
  CHECK(sweep_error(
            "gird: {batch: [8]}\ngrid: {links.pice.bandwidth: [1 GB/s]}\nwhere: batch > 4\n") ==
        "s.yaml:10:1: error: unknown key `gird` in the sweep; did you mean `grid`?\n"
        "s.yaml:11:8: error: the platform's `links` have no `pice`; did you mean `pcie`?");
  try {
    (void)read_sweep(parse_document("sweep: s\nbase: nowhere\nwhere: batch > 4\n"
                                    "grid: {batch: {from: 4, to: 2, step: 1}}\n",
                                    "s.yaml"),
                     ".");
    FAIL("there is no such base");
  } catch (const InputError& error) {
    CHECK(error.diagnostics().size() == 2);
    CHECK_THAT(error.what(), Catch::Contains("s.yaml:2:7: error: ") &&
                                 Catch::Contains("s.yaml:4:29: error: `to` is less"));
  }
}

TEST_CASE("sweep: a base that is no scenario is refused") {
  for (const char* base : {"[1]", "", "{}", "{scenario: x}", "nowhere"}) {
    INFO(base);
    CHECK_THROWS_AS(
        read_sweep(parse_document(fmt::format("sweep: s\nbase: {}\n", base), "s.yaml"), "."),
        InputError);
  }
}

TEST_CASE("sweep: what its policies state is not set besides; what the base states gives way") {
  const std::string stated = "policies: [{name: offload/greedy, budget: 4 MiB}]\n";
  const std::string refusal =
      "s.yaml:10:43: error: the sweep sets `policy.budget`, which would replace this `budget`; "
      "expected one of the two";
  CHECK(sweep_error(stated + "derive: {policy.budget: 8 MiB * 2}\n") == refusal);
  CHECK(sweep_error(stated + "grid: {policy.budget: [8 MiB]}\n") == refusal);
  CHECK(sweep_error(stated +
                    "smallest: {path: policy.budget, from: 1 MiB, to: 4 MiB, step: 1 MiB}\n") ==
        refusal);
  CHECK(sweep_error("grid: {policy.segments: [1, 2]}\n") == "none, 6 points");
}

TEST_CASE("sweep: where a value cannot be derived, the row has the rest of the point") {
  const std::string derived =
      "policies: [{name: remat/sqrt, segments: 2}]\n"
      "derive: {chain.0.saved: 8 MiB / (workload.batch - 8)}\n";
  const Sweep sweep = sweep_of(derived + "grid: {workload.batch: [8, 10, 16]}\n");
  REQUIRE(sweep.warnings.size() == 1);
  CHECK_THAT(sweep.warnings[0].message,
             Catch::Equals("`chain.0.saved` cannot be derived: a division by 0"));
  const SweepRuns runs(sweep);
  const SweepRow row = runs.run(0);
  CHECK(row.status == "error");
  CHECK(row.texts == Texts{"8", "{name: remat/sqrt, segments: 2}"});
  CHECK(row.run.policy == "remat/sqrt");
  CHECK(row.run.policy_parameters == "segments: 2");
  CHECK(runs.run(1).status == "ok");
  // What it measures is judged where it can be derived: 8 MiB / 2 and 8 MiB / 8.
  const test::TemporaryFolder folder;
  run_to(sweep, folder / "s.sqlite", 1);
  const Database database(folder / "s.sqlite", Database::Mode::read_only);
  Statement points(database, "SELECT \"workload.batch\", \"chain.0.saved [B]\" FROM points");
  Texts rows;
  while (points.step()) rows.push_back(points.text(0) + ' ' + points.text(1));
  CHECK(rows == Texts{"8 ", "10 4194304.0", "16 1048576.0"});
  // A condition on it leaves out what does not meet it, not what cannot be judged.
  const Sweep some =
      sweep_of(derived + "grid: {workload.batch: [8, 10, 16]}\nwhere: chain.0.saved > 2 MiB\n");
  REQUIRE(some.points() == 2);
  CHECK(some.varied(0).texts.front() == "8");
  CHECK(some.varied(1).texts.front() == "10");
  // Where it never can, nothing runs.
  CHECK(sweep_error(derived + "grid: {workload.batch: [8]}\n") ==
        "s.yaml:11:25: error: `chain.0.saved` cannot be derived: a division by 0");
}

TEST_CASE("sweep: a run that was not made has its policy with its parameters") {
  const Sweep sweep = sweep_of(
      "policies: [{name: pipeline/gpipe, microbatches: 3, devices: [gpu], partition: balanced}]\n"
      "largest: {path: chain.0.forward, from: 1 ms, to: 2 ms, step: 1 ms}\n");
  const SweepRow row = SweepRuns(sweep).run(0);
  CHECK(row.status == "unmet");
  CHECK_FALSE(row.was_run);
  CHECK(row.run.policy == "pipeline/gpipe");
  CHECK(row.run.policy_parameters == "microbatches: 3, devices: [gpu], partition: balanced");
  CHECK(row.run.platform == "p");
}

TEST_CASE("sweep: a platform is looked up next to the sweep that names it, not next to its base") {
  const test::TemporaryFolder folder;
  const auto write = [&](const char* name, const std::string& text) {
    fs::create_directories((folder / name).parent_path());
    std::ofstream(folder / name) << text;
  };
  const char* const base =
      "scenario: b\nplatform: v100-sxm2-16gb\nworkload: {model: lenet}\npolicy: none\n";
  write("bases/b.yaml", base);
  write("bases/mine.yaml", "platform: of-the-base\nextends: v100-sxm2-16gb\n");
  write("sweeps/mine.yaml", "platform: of-the-sweep\nextends: v100-sxm2-16gb\n");
  write("sweeps/s.yaml",
        "sweep: s\nbase: ../bases/b.yaml\nplatforms: [mine.yaml, mine, v100-sxm2-16gb, no-such]\n"
        "policies: [none]\n");
  const Sweep sweep = load_sweep(folder / "sweeps/s.yaml");
  const SweepRuns runs(sweep);
  CHECK(runs.run(0).run.platform == "of-the-sweep");
  CHECK(runs.run(1).run.platform == "of-the-sweep");
  CHECK(runs.run(2).run.platform == "v100-sxm2-16gb");
  const SweepRow row = runs.run(3);
  CHECK(row.status == "error");
  CHECK(row.run.platform == "no-such");
}

TEST_CASE("sweep: unlimited is a value like others") {
  const Sweep sweep = sweep_of(
      "policies: [none]\n"
      "grid: {memories.hbm.capacity: [unlimited, 64 MiB, 8 MiB]}\n"
      "where: memories.hbm.capacity > 16 MiB\n");
  REQUIRE(sweep.points() == 2);
  const test::TemporaryFolder folder;
  run_to(sweep, folder / "s.sqlite", 1);
  const Database database(folder / "s.sqlite", Database::Mode::read_only);
  Statement points(database,
                   "SELECT status, \"memories.hbm.capacity\", \"memories.hbm.capacity [B]\" FROM "
                   "results");
  Texts rows;
  while (points.step())
    rows.push_back(points.text(0) + ' ' + points.text(1) + ' ' + points.text(2));
  CHECK(rows == Texts{"ok unlimited ", "ok 64 MiB 67108864.0"});
}

TEST_CASE("sweep: a value that is wrong beside right ones is a warning, and a row") {
  const Sweep sweep = sweep_of("grid: {links.pcie.bandwidth: [1 GB/s, 2 GB]}\npolicies: [none]\n");
  REQUIRE(sweep.warnings.size() == 1);
  CHECK(to_text(sweep.warnings.front()).find("s.yaml:10:39: warning: ") == 0);
  const SweepRuns runs(sweep);
  CHECK(runs.run(0).status == "ok");
  const SweepRow row = runs.run(1);
  CHECK(row.status == "error");
  CHECK(row.message.find("s.yaml:10:39: error: ") == 0);
  CHECK(row.run.policy == "none");
}

TEST_CASE("sweep: a workload that can be built at no point is an error") {
  // A stage keeps its output, so that more output than `saved` (8 MiB) is an error.
  const auto check = [](const std::string& values) {
    check_workloads(sweep_of("policies: [none, offload/eager]\n" + values));
  };
  CHECK_THROWS_WITH(check("grid: {chain.0.output: [9 MiB, 10 MiB]}\n"),
                    Catch::Contains("9 MiB") && Catch::Contains("s.yaml:"));
  CHECK_THROWS_AS(check("grid: {workload.batch: [8, 16]}\n"
                        "derive: {chain.0.output: workload.batch * 2 MiB}\n"),
                  InputError);
  CHECK_NOTHROW(check("grid: {chain.0.output: [9 MiB, 8 MiB]}\n"));
  // The value that is searched for may be the one that makes it right.
  const std::string search =
      "{path: chain.0.output, from: 8 MiB, to: 12 MiB, step: 1 MiB, "
      "subject_to: {status: ok}}\n";
  CHECK_NOTHROW(check("largest: " + search));
}

TEST_CASE("sweep: its digest tells what changes results, and nothing else") {
  const std::string grid = "grid: {workload.batch: [8, 16]}\n";
  const std::string digest = sweep_of(grid).digest;
  CHECK(sweep_of("# a word\n" + grid).digest == digest);
  CHECK(sweep_of("grid: {workload.batch: [8, 17]}\n").digest != digest);
  CHECK(sweep_of("grid: {workload.batch: [16, 8]}\n").digest != digest);
  CHECK(sweep_of("grid: {workload.batch: {from: 8, to: 16, step: 8}}\n").digest == digest);
  CHECK(sweep_of(grid + "where: workload.batch > 2\n").digest != digest);
  CHECK(sweep_of(grid + "policies: [none]\n").digest != digest);
}

TEST_CASE("sweep: a point is the run of its scenario, whatever was recalled from others") {
  const Sweep sweep = sweep_of(std::string(kGrid) +
                               "policies: [none, offload/eager, remat/sqrt, offload/greedy]\n"
                               "derive: {policy.budget: memories.hbm.capacity - 1 MiB}\n");
  const SweepRuns runs(sweep);
  Texts statuses;
  for (std::size_t p = 0; p < sweep.points(); ++p) {
    INFO("point " << p);
    const SweepRow row = runs.run(p);
    Overrides overrides;
    overrides.set_in_file = sweep.point(p).assignments;
    overrides.may_lack_parameters = true;
    std::optional<RunResult> alone;
    try {
      const Scenario scenario = read_scenario(sweep.base, ".", overrides);
      alone = run_policy(scenario, scenario.policies.front());
    } catch (const InputError&) {
      CHECK(row.status == "error");
    }
    statuses.push_back(row.status);
    if (!alone) continue;
    CHECK(row.status == status_text(*alone));
    CHECK(row.run.metrics.makespan == alone->metrics.makespan);
    CHECK(row.run.overhead == alone->overhead);
    CHECK(row.run.worst_quality == alone->worst_quality);
    CHECK(row.run.saved_bytes == alone->saved_bytes);
    CHECK(row.run.metrics.memories.size() == alone->metrics.memories.size());
    for (std::size_t m = 0; m < row.run.metrics.memories.size(); ++m)
      CHECK(row.run.metrics.memories[m].peak_allocated ==
            alone->metrics.memories[m].peak_allocated);
  }
  // Of each kind there is one, so that all were compared.
  for (const char* status : {"ok", "oom", "infeasible", "error"})
    CHECK(std::ranges::find(statuses, status) != statuses.end());
}

TEST_CASE("sweep: an overhead is against the same times, whatever was recalled from others") {
  // Some 2 us of arithmetic an operator at 1 TFLOP/s, and a launch: each speed and each launch has
  // another reference. Capacities change nothing about it.
  const Sweep sweep = read_sweep(
      parse_document(
          "sweep: s\n"
          "base:\n"
          "  scenario: toy\n"
          "  platform: {platform: p, memories: {hbm: {capacity: 40 GiB}},\n"
          "             processors: {gpu: {memory: hbm, compute: {fp32: 1 TFLOP/s}}}}\n"
          "  workload: {workload: w, input: [1000], layers: [{linear: 1000}, relu, {linear: 9}]}\n"
          "  policy: [none]\n"
          "grid:\n"
          "  processors.gpu.compute.fp32: [1 TFLOP/s, 2 TFLOP/s]\n"
          "  processors.gpu.launch_overhead: [1 us, 1 ms]\n"
          "  memories.hbm.capacity: [40 GiB, 20 GiB]\n"
          "policies: [none, remat/every-stage]\n",
          "s.yaml"),
      ".");
  const SweepRuns runs(sweep);
  std::set<double> overheads;
  for (std::size_t p = 0; p < sweep.points(); ++p) {
    INFO("point " << p);
    Overrides overrides;
    overrides.set_in_file = sweep.point(p).assignments;
    const Scenario scenario = read_scenario(sweep.base, ".", overrides);
    const RunResult alone = run_policy(scenario, scenario.policies.front());
    CHECK(runs.run(p).run.overhead == alone.overhead);
    overheads.insert(alone.overhead.value());
  }
  CHECK(overheads.size() > 3);  // 0 of `none`, and others by the times
}

TEST_CASE("sweep results: the same content whatever the number of threads and interruptions") {
  const test::TemporaryFolder folder;
  const Sweep sweep = sweep_of(kGrid);
  run_to(sweep, folder / "one.sqlite", 1);
  run_to(sweep, folder / "four.sqlite", 4);
  const Texts content = content_of(folder / "one.sqlite");
  CHECK(content_of(folder / "four.sqlite") == content);
  // 3 x 6 x 2 points of 3 policies each.
  CHECK(std::ranges::count_if(
            content, [](const std::string& row) { return row.starts_with("runs |"); }) == 108);

  // Ends anywhere, in any way that unwinds; tests/cli/sweep ends it in ways that do not.
  std::mt19937_64 random(11);
  struct Interruption {};
  for (std::size_t done = 0; done < sweep.points();) {
    const std::size_t end = done + 1 + random() % 30;
    SweepResults results = SweepResults::resume(folder / "often.sqlite", sweep, {});
    CHECK(results.done() == done);
    try {
      run_sweep(sweep, {}, 1 + static_cast<unsigned>(random() % 4), results, [&](std::size_t now) {
        if (now == end) throw Interruption{};
      });
    } catch (const Interruption&) {
    }
    done = std::min(end, sweep.points());
  }
  run_to(sweep, folder / "often.sqlite", 2);
  CHECK(content_of(folder / "often.sqlite") == content);
}

TEST_CASE("sweep results: rows come in any order, and what is missing between them is run") {
  const test::TemporaryFolder folder;
  const Sweep sweep = sweep_of(kGrid);
  const SweepShard shard{1, 4};  // the points 1, 5, ..., 105
  run_to(sweep, folder / "whole.sqlite", 1, shard);
  {
    const SweepRuns runs(sweep);
    SweepResults results = SweepResults::create(folder / "gaps.sqlite", sweep, shard);
    for (const std::size_t point : {105U, 5U, 17U, 13U}) results.add(point, runs.run(point));
  }
  {
    const SweepResults results = SweepResults::resume(folder / "gaps.sqlite", sweep, shard);
    CHECK(results.done() == 4);
    CHECK(results.missing_point(0) == 1);
    CHECK(results.missing_point(1) == 9);
    CHECK(results.missing_point(2) == 21);
    CHECK(results.missing_point(22) == 101);
  }
  run_to(sweep, folder / "gaps.sqlite", 2, shard);
  CHECK(content_of(folder / "gaps.sqlite") == content_of(folder / "whole.sqlite"));
  Database(folder / "gaps.sqlite", Database::Mode::read_write)
      .execute("UPDATE runs SET point = 6 WHERE point = 5");
  CHECK_THROWS_WITH(SweepResults::resume(folder / "gaps.sqlite", sweep, shard),
                    Catch::Contains("holds runs that this sweep or shard does not have"));
}

TEST_CASE("sweep results: the files of all shards make one, and nothing else does") {
  const test::TemporaryFolder folder;
  const Sweep sweep = sweep_of(kGrid);
  run_to(sweep, folder / "whole.sqlite", 2);
  std::vector<fs::path> parts;
  for (std::size_t i = 0; i < 4; ++i) {
    parts.push_back(folder / fmt::format("part-{}.sqlite", i));
    run_to(sweep, parts.back(), 2, {i, 4});
  }
  std::ofstream(folder / "part-2.sqlite.tmp.host.17") << "left behind";
  std::vector<fs::path> with_rest = parts;
  with_rest.push_back(folder / "part-2.sqlite.tmp.host.17");
  std::ranges::reverse(with_rest);
  merge_sweep_results(sweep, with_rest, folder / "merged.sqlite");
  CHECK(content_of(folder / "merged.sqlite") == content_of(folder / "whole.sqlite"));

  const auto refusal = [&](const std::vector<fs::path>& of, const Sweep& its) {
    const fs::path out = folder / "refused.sqlite";
    try {
      merge_sweep_results(its, of, out);
    } catch (const InputError& error) {
      CHECK(!fs::exists(out));
      std::string text = error.what();
      for (std::size_t at; (at = text.find(folder.path().string() + '/')) != std::string::npos;)
        text.erase(at, folder.path().string().size() + 1);
      return text;
    }
    return std::string("none");
  };
  CHECK(refusal({parts[0], parts[1], parts[3]}, sweep) == "--merge: error: shard 2/4 is missing");
  CHECK(refusal({parts[0], parts[1], parts[2], parts[3], parts[1]}, sweep) ==
        "part-1.sqlite: error: shard 1/4 is there twice, in `part-1.sqlite` too");
  CHECK(refusal({}, sweep) ==
        "--merge: error: no part to merge; expected the results of every shard");
  CHECK(refusal({parts[0], parts[3]}, sweep_of("grid: {workload.batch: [8]}\n")) ==
        "part-0.sqlite: error: holds results of sweep `s` as it was before its files changed\n"
        "part-3.sqlite: error: holds results of sweep `s` as it was before its files changed");
  {
    SweepResults begun = SweepResults::create(folder / "begun.sqlite", sweep, {0, 4});
    begun.add(0, SweepRuns(sweep).run(0));
  }
  CHECK(refusal({folder / "begun.sqlite", parts[1], parts[2], parts[3]}, sweep) ==
        "begun.sqlite: error: shard 0/4 has 1 of 27 runs; `--resume` goes on with it");
  // All at once; a file that cannot be read may be one of those that are missing.
  CHECK(refusal({folder / "begun.sqlite", parts[1], parts[1]}, sweep) ==
        "begun.sqlite: error: shard 0/4 has 1 of 27 runs; `--resume` goes on with it\n"
        "part-1.sqlite: error: shard 1/4 is there twice, in `part-1.sqlite` too\n"
        "--merge: error: shards 2/4, 3/4 are missing");
  CHECK(refusal({parts[1], parts[1], folder / "none.sqlite"}, sweep) ==
        "none.sqlite: error: is not there; expected the results of a shard\n"
        "part-1.sqlite: error: shard 1/4 is there twice, in `part-1.sqlite` too");
}

TEST_CASE("sweep results: a file that is another's is left alone") {
  const test::TemporaryFolder folder;
  const Sweep sweep = sweep_of(kGrid), other = sweep_of("grid: {workload.batch: [8]}\n");
  run_to(other, folder / "other.sqlite", 1);
  CHECK_THROWS_WITH(SweepResults::create(folder / "other.sqlite", other, {}),
                    Catch::Contains("is there already"));
  CHECK_THROWS_WITH(SweepResults::resume(folder / "other.sqlite", sweep, {}),
                    Catch::Contains("before its files changed"));
  CHECK_THROWS_WITH(SweepResults::resume(folder / "other.sqlite", other, {0, 2}),
                    Catch::Contains("holds shard 0/1; expected shard 0/2"));
  std::ofstream(folder / "letter.txt") << "Dear reader, this is no database at all, only a text.";
  CHECK_THROWS_WITH(SweepResults::resume(folder / "letter.txt", sweep, {}),
                    Catch::Contains("found another kind of file"));
  Database(folder / "addresses.sqlite", Database::Mode::create).execute("CREATE TABLE a (b)");
  CHECK_THROWS_WITH(SweepResults::resume(folder / "addresses.sqlite", sweep, {}),
                    Catch::Contains("found another database"));
  CHECK_THROWS_WITH(SweepResults::create(folder / "missing" / "a.sqlite", sweep, {}),
                    Catch::Contains("cannot be opened"));
  // Two at once.
  const SweepResults held = SweepResults::create(folder / "held.sqlite", sweep, {});
  CHECK_THROWS_WITH(SweepResults::resume(folder / "held.sqlite", sweep, {}),
                    Catch::Contains("another process has this file of results open"));
}

TEST_CASE("sweep: the largest that fits is that of trying all") {
  // Saved bytes of the first stage: `none` needs all of them at once.
  const std::string search =
      "policies: [none, offload/eager]\n"
      "grid: {memories.hbm.capacity: [8 MiB, 40 MiB, 64 MiB]}\n"
      "largest: {path: chain.0.saved, from: 1 MiB, to: 200 MiB, step: 1 MiB, subject_to: "
      "{status: ok}}\n";
  const Sweep sweep = sweep_of(search);
  const SweepRuns runs(sweep);
  int met = 0;
  for (std::size_t p = 0; p < sweep.points(); ++p) {
    std::optional<std::int64_t> largest;
    for (std::int64_t mib = 1; mib <= 200; ++mib) {
      Overrides overrides;
      overrides.set_in_file = sweep.point(p).assignments;
      overrides.set_in_file.emplace_back(Located<std::string>{"chain.0.saved", {}},
                                         parse_value(fmt::format("{} MiB", mib), "test"));
      const Scenario scenario = read_scenario(sweep.base, ".", overrides);
      if (std::string_view(status_text(run_policy(scenario, scenario.policies.front()))) == "ok")
        largest = mib;
    }
    const SweepRow row = runs.run(p);
    INFO("point " << p << " " << row.message);
    REQUIRE(row.found);
    CHECK(row.found->is_found == largest.has_value());
    if (!largest) {
      CHECK(row.status == "unmet");
      continue;
    }
    ++met;
    CHECK(row.status == "ok");
    CHECK(row.texts.back() == fmt::format("{} MiB", *largest));
    CHECK(row.found->holes.empty());
    CHECK(row.found->tried < 60);
  }
  CHECK(met >= 4);
}

TEST_CASE("sweep: microbatches that do not divide a batch are holes of the largest") {
  const Sweep sweep = sweep_of(
      "policies: [{name: pipeline/gpipe, microbatches: 4, devices: [gpu], partition: balanced}]\n"
      "grid: {memories.hbm.capacity: [1 GiB, 40 MiB]}\n"
      "largest: {path: workload.batch, from: 1, to: 30}\n");
  const SweepRow row = SweepRuns(sweep).run(0);
  INFO(row.message);
  REQUIRE(row.found);
  CHECK(row.texts.back() == "28");
  CHECK(row.found->is_proven);
  CHECK(row.found->holes == "1 to 3, 5 to 7, 9 to 11, 13 to 15, 17 to 19, 21 to 23, 25 to 27");
  // Four microbatches of 32 MiB do not fit; the first candidate is not even a batch for them.
  const SweepRow unmet = SweepRuns(sweep).run(1);
  CHECK(unmet.status == "unmet");
  CHECK(
      unmet.message ==
      "no value of workload.batch holds; with 1: s.yaml:10:49: error: 4 microbatches do not divide "
      "a batch of 1; expected 1 microbatch, or a batch of 4");
}

TEST_CASE("sweep: a search that leaves candidates out says so in its row") {
  // Batches of four microbatches hold, others do not: the response is not monotone, and of 5,000
  // candidates some 1,024 are tried.
  const SweepRow row =
      SweepRuns(sweep_of("policies: [{name: pipeline/gpipe, microbatches: 4, devices: [gpu], "
                         "partition: balanced}]\n"
                         "grid: {memories.hbm.capacity: [1 GiB]}\n"
                         "largest: {path: workload.batch, from: 1, to: 5000}\n"))
          .run(0);
  REQUIRE((row.found && row.found->is_found));
  CHECK(row.status == "ok");
  CHECK(row.found->is_cut_short);
  CHECK(row.found->candidates == 5000);
  CHECK(row.message == fmt::format("the response is not monotone, and {} of 5000 candidates were "
                                   "tried: another may be the largest",
                                   row.found->tried));
}

TEST_CASE("sweep: the smallest budget that meets a limit") {
  const Sweep sweep = sweep_of(
      "policies: [offload/greedy]\n"
      "smallest: {path: policy.budget, from: 1 MiB, to: 40 MiB, step: 1 MiB, subject_to: "
      "{overhead: "
      "{at_most: 0 %}}}\n");
  const SweepRow row = SweepRuns(sweep).run(0);
  INFO(row.message);
  REQUIRE((row.found && row.found->is_found));
  CHECK(row.run.overhead == 0.0);
  // One step less no longer does.
  Overrides overrides;
  overrides.set_in_file = sweep.point(0).assignments;
  const SweepValue& found = row.values.back();
  const SweepValue less{Measure::size, found.count - Exact(1 << 20), {}};
  overrides.set_in_file.emplace_back(Located<std::string>{"policy.budget", {}},
                                     parse_value(to_text(less), "test"));
  const Scenario scenario = read_scenario(sweep.base, ".", overrides);
  CHECK(run_policy(scenario, scenario.policies.front()).overhead.value_or(1.0) > 0.0);
}

TEST_CASE("points of a mesh that divides nothing are left out, not failed") {
  const Sweep sweep =
      read_sweep(parse_document("sweep: s\nbase: {scenario: b, platform: pcie-4gpu-workstation, "
                                "workload: {model: mlp, batch: "
                                "8}, policy: none, parallel: {data: 4}}\ngrid: {parallel.data: [2, "
                                "4], workload.batch: [6, 8]}\n",
                                "s.yaml"),
                 ".");
  REQUIRE(sweep.points() == 4);
  std::vector<std::string> statuses;
  for (std::size_t point = 0; point < 4; ++point)
    statuses.push_back(SweepRuns(sweep).run(point).status);
  // Two of four processors, at any batch; then 6 samples for four ranks, and 8.
  CHECK(statuses == std::vector<std::string>{"no-split", "no-split", "no-split", "ok"});
  CHECK_THAT(SweepRuns(sweep).run(0).message, Catch::Contains("the mesh has 2 ranks (data 2 = 2)"));
}

TEST_CASE("values of a mesh that no scenario may have are errors, whatever divides") {
  for (const char* grid : {"parallel.collectives: [ring, treee]", "parallel.data: [4, -1]",
                           "parallel.data: [4, foo]"}) {
    const Sweep sweep = read_sweep(
        parse_document(fmt::format("sweep: s\nbase: {{scenario: b, platform: "
                                   "pcie-4gpu-workstation, workload: {{model: mlp, batch: 8}}, "
                                   "policy: none, parallel: {{data: 4}}}}\ngrid: {{{}}}\n",
                                   grid),
                       "s.yaml"),
        ".");
    CAPTURE(grid);
    CHECK(SweepRuns(sweep).run(0).status == "ok");
    CHECK(SweepRuns(sweep).run(1).status == "error");
  }
}

}  // namespace plimsoll
