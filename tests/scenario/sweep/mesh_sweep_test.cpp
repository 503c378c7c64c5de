// Sweeps over the axes of a mesh: those that run the fastest points only, against those that run all.
#include "scenario/sweep/sweep_fastest.hpp"
#include "support/random_mesh.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

constexpr const char* kMesh =
    "sweep: s\n"
    "base:\n"
    "  scenario: s\n"
    "  platform: {{platform: p, memories: {{hbm: {{capacity: {}}}}},\n"
    "    processors: {{gpu: {{memory: hbm, compute: {{fp32: 20 GFLOP/s}}, launch_overhead: 1 "
    "us}}}},\n"
    "    cluster: {{count: {}, topology: switch, link: {{name: nvlink, bandwidth: 200 MB/s, "
    "latency: 3 us}}}}}}\n"
    "  workload: {{model: {}, batch: 16, optimizer: adam}}\n"
    "  parallel: {{data: 8}}\n{}"
    "  policy: {{name: pipeline/1f1b, microbatches: 2, recompute: none}}\n"
    "grid:\n"
    "  parallel.tensor: [1, 2, 4]\n"
    "  parallel.pipeline: [1, 2, 4]\n"
    "  parallel.data: [1, 2, 4, 8]\n"
    "  policy.microbatches: [1, 2, 4, 8]\n"
    "  policy.recompute: [none, full]\n";

struct Row {
  std::string status, message;
  double throughput = 0, makespan = 0;
  bool operator==(const Row&) const = default;
};
using Rows = std::map<std::int64_t, Row>;

Rows rows_of(const std::filesystem::path& path) {
  const Database results(path, Database::Mode::read_only);
  Statement rows(results,
                 "SELECT point, status, message, ifnull(throughput_samples_per_s, 0), "
                 "ifnull(makespan_s, 0) FROM results");
  Rows all;
  while (rows.step())
    all[rows.integer(0)] = {rows.text(1), rows.text(2), rows.real(3), rows.real(4)};
  return all;
}

void run_to_the_end(const Sweep& sweep, unsigned jobs, SweepResults results) {
  run_sweep(sweep, {}, jobs, results, [](std::size_t) {});
}

class MeshSweep {
 public:
  explicit MeshSweep(const std::string& capacity, int ranks = 8, const std::string& more = "")
      : base_(fmt::format(kMesh, capacity, ranks,
                          folder_.write("net.yaml", test::kSmallModel).string(), more)) {}

  [[nodiscard]] Sweep sweep(const std::string& rest) const {
    return read_sweep(parse_document(base_ + rest, "s.yaml"), ".");
  }

  [[nodiscard]] Rows run(const std::string& rest, unsigned jobs = 1) {
    const auto path = file();
    const Sweep it = sweep(rest);
    run_to_the_end(it, jobs, SweepResults::create(path, it, {}));
    return rows_of(path);
  }

  /// Stopped after so many rows, and gone on with.
  [[nodiscard]] Rows run_in_two(const std::string& rest, std::size_t first) {
    const auto path = file();
    const Sweep it = sweep(rest);
    const auto stop = [&](std::size_t done) {
      if (done == first) throw std::runtime_error("stopped");
    };
    {
      SweepResults results = SweepResults::create(path, it, {});
      CHECK_THROWS_AS(run_sweep(it, {}, 1, results, stop), std::runtime_error);
    }
    CHECK(rows_of(path).size() == first);
    run_to_the_end(it, 2, SweepResults::resume(path, it, {}));
    return rows_of(path);
  }

 private:
  [[nodiscard]] std::filesystem::path file() {
    return folder_ / fmt::format("{}.sqlite", files_++);
  }

  const test::TemporaryFolder folder_;
  const std::string base_;
  int files_ = 0;
};

std::vector<double> highest(const Rows& rows, std::size_t count) {
  std::vector<double> throughputs;
  for (const auto& [point, row] : rows)
    if (row.status == "ok") throughputs.push_back(row.throughput);
  std::ranges::sort(throughputs, std::ranges::greater{});
  throughputs.resize(std::min(throughputs.size(), count));
  return throughputs;
}

/// "4 ok, 20 slower".
std::string endings(const Rows& rows) {
  std::map<std::string, int> count;
  for (const auto& [point, row] : rows) ++count[row.status];
  std::string text;
  for (const auto& [status, runs] : count)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", runs, status);
  return text;
}

}  // namespace

TEST_CASE("the fastest points are those of the whole sweep") {
  for (const char* const capacity : {"unlimited", "400 kB", "150 kB"}) {
    CAPTURE(capacity);
    MeshSweep sweep(capacity);
    const Rows all = sweep.run("");
    for (const std::size_t count : {1U, 4U, 1000U}) {
      const Rows some = sweep.run(fmt::format("fastest: {}\n", count));
      REQUIRE(some.size() == all.size());
      const std::vector<double> fastest = highest(all, count);
      CHECK(highest(some, count) == fastest);
      for (const auto& [point, row] : some) {
        CAPTURE(point, row.status, row.message);
        const Row& run = all.at(point);
        if (row.status == "slower") {
          CHECK(run.throughput < fastest.back());
        } else if (row.status == "no-room") {
          CHECK(run.status == "oom");
        } else {
          CHECK(row == run);
        }
      }
    }
  }
}

TEST_CASE("points of a sweep without ranks that hold the same are as without sharding") {
  const auto rows = [](const std::string& sharding) {
    return MeshSweep("unlimited", 2, "  sharding: {" + sharding + "}\n").run("");
  };
  const Rows plain = rows("stage: 0");
  for (const char* const sharding :
       {"overlap: false", "bucket: 1 kB", "stage: 2, bucket: 1 kB, group: 2",
        "stage: 3, prefetch: 4, reshard: false"}) {
    CAPTURE(sharding);
    const Rows sharded = rows(sharding);
    int same = 0;
    for (const auto& [point, row] : sharded) {
      CAPTURE(point, row.message);
      CHECK(row.status == plain.at(point).status);
      same += row.status == "ok" && row == plain.at(point) ? 1 : 0;
    }
    // Of 2 ranks, either are on the data axis: tensor or pipeline 2, the latter with 1, 2, 4 or 8 microbatches, each
    // with and without recomputation.
    CHECK(same >= 16);
    // The network's gradients are one bucket of 1 MiB, so that nothing overlaps as it is.
    CHECK((sharded == plain) == (std::string_view(sharding) == "overlap: false"));
  }
}

TEST_CASE("points of a sweep without a tensor axis are as without what is about its ranks") {
  for (const char* const key : {"sequence", "overlap"}) {
    CAPTURE(key);
    const Rows rows =
        MeshSweep("unlimited").run(fmt::format("  parallel.{}: [false, true]\n", key));
    int same = 0;
    for (const auto& [point, row] : rows) {
      CAPTURE(point, row.message);
      CHECK(row.status != "error");
      // The axis of the tensor is the first of the grid, that of the key the last.
      if (point >= static_cast<std::int64_t>(rows.size()) / 3 || point % 2 == 0) continue;
      CHECK(row == rows.at(point - 1));
      same += row.status == "ok" ? 1 : 0;
    }
    CHECK(same > 0);
  }
}

TEST_CASE("few points of a sweep for the fastest are run") {
  MeshSweep sweep("400 kB");
  CHECK(endings(sweep.run("")) == "232 no-split, 20 ok, 36 oom");
  CHECK(endings(sweep.run("fastest: 3\n")) == "34 no-room, 232 no-split, 3 ok, 1 oom, 18 slower");
}

TEST_CASE("a sweep for the fastest does not depend on threads or interruptions") {
  MeshSweep sweep("400 kB");
  const Rows rows = sweep.run("fastest: 3\n");
  CHECK(sweep.run("fastest: 3\n", 4) == rows);
  const std::size_t done_at_once = rows.size() - 20;
  for (const std::size_t first : {std::size_t{5}, done_at_once, rows.size() - 1})
    CHECK(sweep.run_in_two("fastest: 3\n", first) == rows);
}

TEST_CASE("a sweep looks for the fastest, or for the end of a range") {
  const MeshSweep sweep("1 MB");
  CHECK_THROWS_WITH(
      sweep.sweep("fastest: 3\nlargest: {path: workload.batch, from: 16, to: 64, step: 16}\n"),
      Catch::Contains("found `fastest` and `largest`; expected one of them"));
  CHECK_THROWS_WITH(sweep.sweep("fastest: 0\n"), Catch::Contains("expected"));
}

TEST_CASE("a search has no value to find where a mesh cannot be divided at all") {
  MeshSweep sweep("unlimited");
  const Rows rows = sweep.run("largest: {path: workload.batch, from: 16, to: 48, step: 16}\n");
  CHECK(endings(rows) == "226 no-split, 62 ok");
  CHECK_THAT(rows.at(0).message, Catch::Contains("the mesh has 1 rank"));
}

}  // namespace plimsoll
