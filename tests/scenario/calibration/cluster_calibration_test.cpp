// Platforms fitted to whole runs: what is found, what it is worth, and what is refused.
#include "scenario/calibration/cluster_calibration.hpp"

#include "report/calibration/calibration_json.hpp"
#include "report/calibration/cluster_calibration_text.hpp"
#include "scenario/calibration/calibrated_platform.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace plimsoll {
namespace {

using Catch::Matchers::Contains;

/// Ranks behind a switch, whose gradients are reduced while nothing else happens.
constexpr const char* kNode = R"(platform: node
memories: {hbm: {capacity: unlimited}}
processors: {gpu: {memory: hbm, compute: {fp32: 1 TFLOP/s}}}
cluster: {count: 2, topology: switch, link: {name: nvswitch, bandwidth: 300 GB/s, latency: 1 us}}
)";

std::string ring_row(const std::string& use, int ranks, std::int64_t bytes, double time_us) {
  return fmt::format("      - [{}, {:.6f} us, {}, {}, {} B]\n", use, time_us, ranks, ranks, bytes);
}

/// 2(n-1) (a + B / (n b)), over the two links of a switch: a is 20 us then, b 100 GB/s.
double ring_us(int ranks, std::int64_t bytes) {
  return 2.0 * (ranks - 1) * (20 + static_cast<double>(bytes) / ranks / 1e5);
}

std::string ring_rows() {
  std::string rows;
  for (const int ranks : {2, 4})
    for (const std::int64_t bytes : {8'000'000LL, 800'000'000LL})
      rows += ring_row("fit", ranks, bytes, ring_us(ranks, bytes));
  return rows + ring_row("test", 8, 80'000'000, ring_us(8, 80'000'000)) +
         ring_row("test", 8, 8'000, 2 * ring_us(8, 8'000));
}

std::string calibration_text_of(const std::string& rows, const std::string& most = "300 GB/s") {
  return fmt::format(R"(calibration: fitted
platform: node
coefficients:
  - {{path: cluster.link.bandwidth, start: 50 GB/s, from: 10 GB/s, to: {}}}
  - {{path: cluster.link.latency, start: 2 us, from: 0.1 us, to: 100 us}}
tables:
  - name: rings
    scenario:
      workload: {{workload: gradients, chain: [{{name: s, forward: 0 s, backward: 0 s, saved: 0 B, parameters: 1 B}}]}}
      parallel: {{}}
      sharding: {{stage: 0, overlap: false}}
      policy: none
    columns: [use, step, cluster.count, parallel.data, workload.chain.0.parameters]
    rows:
{}    source: closed form
)",
                     most, rows);
}

class ClusterFiles {
 public:
  ClusterFiles() { folder_.write("node.yaml", kNode); }

  [[nodiscard]] std::unique_ptr<ClusterCalibration> found(
      const std::string& text, const ClusterOptions& options = {}) const {
    return calibrate_cluster(
        read_cluster_calibration(parse_document(text, "fit.yaml"), folder_.path()), folder_.path(),
        options);
  }

  [[nodiscard]] std::string refusal(const std::string& text) const {
    try {
      (void)found(text);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  test::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a calibration of whole runs finds the latency and bandwidth that all-reduces have") {
  const ClusterFiles files;
  const auto it = files.found(calibration_text_of(ring_rows()));
  // Each hop takes the latency of two links. The pull to the start leaves a thousandth.
  CHECK(it->fitted.at(0) == Approx(100).epsilon(0.003));
  CHECK(it->fitted.at(1) == Approx(10).epsilon(0.003));
  CHECK(errors_of(*it, false).rows == 4);
  CHECK(errors_of(*it, false).mean < 1e-3);
  const ClusterErrors tests = errors_of(*it, true);
  CHECK(tests.rows == 2);
  CHECK(tests.p95 == Approx(0.5).margin(2e-3));
  CHECK(tests.mean == Approx(0.25).margin(2e-3));

  const auto result = nlohmann::json::parse(cluster_calibration_json(*it));
  CHECK(result.at("coefficients").at(0).at("fitted") == it->fitted.at(0));
  CHECK(result.at("rows").size() == 6);
  CHECK(result.at("tables").at(0).at("errors").at("test").at("rows") == 2);
  CHECK_THAT(cluster_calibration_text(*it, {}), Contains("cluster.link.latency"));

  const auto target = files.folder_.path() / "fitted.yaml";
  const std::string platform = calibrated_platform(*it, files.folder_.path(), target);
  CHECK_THAT(platform, Contains("latency: " + value_text(it->fitted.at(1), "us")));
  files.folder_.write("fitted.yaml", platform);
  const auto judged = files.found(calibration_text_of(ring_rows()), {.judged = "fitted"});
  CHECK(judged->fitted.empty());
  for (std::size_t i = 0; i < judged->rows.size(); ++i)
    CHECK(judged->rows[i].ours == it->rows[i].ours);
  CHECK(files.found(calibration_text_of(ring_rows()), {.judged = "fitted", .every = 2})
            ->rows.size() == 3);
}

TEST_CASE("a calibration of whole runs leaves what is right as it is") {
  const ClusterFiles files;
  std::string text = calibration_text_of(ring_rows());
  text.replace(text.find("start: 50 GB/s"), 14, "start: 100 GB/s");
  text.replace(text.find("start: 2 us"), 11, "start: 10 us");
  const auto it = files.found(text);
  CHECK(it->fitted == std::vector<double>{100, 10});
  CHECK(errors_of(*it, false).mean < 1e-5);
  CHECK(it->mean_before == errors_of(*it, false).mean);
}

TEST_CASE("coefficients of whole runs stay within their bounds") {
  const ClusterFiles files;
  const auto it = files.found(calibration_text_of(ring_rows(), "80 GB/s"));
  CHECK(it->fitted.front() == 80);
  CHECK(errors_of(*it, false).mean > 0.05);
}

TEST_CASE("a calibration of whole runs says what is wrong with it") {
  const ClusterFiles files;
  const std::string good = calibration_text_of(ring_rows());
  const auto with = [&](const std::string& what, const std::string& by) {
    std::string text = good;
    return files.refusal(text.replace(text.find(what), what.size(), by));
  };
  CHECK_THAT(with("[fit, ", "[guess, "), Contains("fit.yaml:15:10") && Contains("`guess`"));
  CHECK_THAT(with("use, step,", "use, use,"),
             Contains("expected one column `step` or `throughput`"));
  CHECK_THAT(with(", 2, 2,", ", 2,"), Contains("expected a list of 5 values"));
  CHECK_THAT(with("start: 2 us", "start: 2 ms"), Contains("expected that of `start`, `ms`"));
  CHECK_THAT(with("start: 2 us", "start: 200 us"), Contains("between `from` and `to`"));
  CHECK_THAT(with("start: 2 us", "start: fast"), Contains("expected a number from 0.001 to 9999"));
  CHECK_THAT(with("path: cluster.link.latency", "path: cluster.link.latenzy"),
             Contains("did you mean `latency`"));
  CHECK_THAT(with("parallel: {}", "platform: node"), Contains("not a key of a table's scenario"));
  CHECK_THAT(with("platform: node\n", "platform: nodes\n"), Contains("did you mean `node`"));
  std::string full = good;
  full.replace(full.find("[use,"), 5, "[use, memories.hbm.capacity,");
  for (std::size_t at = 0; (at = full.find("[fit, ", at)) != std::string::npos; at += 6)
    full.insert(at + 6, "1 MB, ");
  for (std::size_t at = 0; (at = full.find("[test, ", at)) != std::string::npos; at += 7)
    full.insert(at + 7, "1 MB, ");
  CHECK_THAT(files.refusal(full), Contains("this row does not run: oom"));
}

TEST_CASE("all-reduces of NCCL are as far from what the fitted platform takes as its file says") {
  const std::filesystem::path folder =
      std::filesystem::path(PLIMSOLL_SOURCE_DIR) / "scenarios/calibration";
  const auto found = calibrate_cluster(
      read_cluster_calibration(read_document(folder / "a100-node-all-reduce.yaml"), folder), folder,
      {.judged = "a100-node-all-reduce"});
  CHECK(errors_of(*found, true).rows == 45);
  CHECK(errors_of(*found, true).mean == Approx(0.045).margin(0.001));
  CHECK(errors_of(*found, true).p95 == Approx(0.126).margin(0.001));
}

}  // namespace plimsoll
