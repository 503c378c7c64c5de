// The ring all-reduce against times of a library on one node, through the formats that users see.
#include "support/oracles.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::json;

struct Row {
  double bytes = 0, nanoseconds = 0;
};

/// Of one step of a ring.
struct Fit {
  std::int64_t latency_ps = 0, bytes_per_second = 0;
};

/// The line A + B bytes of least squared relative error, as latency and bandwidth of the 2(n-1)
/// steps of bytes / n that a ring takes.
Fit fit(const std::vector<Row>& rows, double n) {
  double a11 = 0, a12 = 0, a22 = 0, b1 = 0, b2 = 0;
  for (const auto& [bytes, time] : rows) {
    a11 += 1 / time / time;
    a12 += bytes / time / time;
    a22 += bytes / time * (bytes / time);
    b1 += 1 / time;
    b2 += bytes / time;
  }
  const double det = a11 * a22 - a12 * a12;
  const double constant = (b1 * a22 - b2 * a12) / det, slope = (a11 * b2 - a12 * b1) / det;
  const double steps = 2 * (n - 1);
  return {std::llround(constant * 1000 / steps), std::llround(steps / n / slope * 1e9)};
}

/// Seconds that n replicas take to reduce gradients of so many bytes: a step without computation.
double reduced_in(const Fit& it, std::int64_t n, std::int64_t bytes) {
  const std::string platform = fmt::format(
      "platform: node\nmemories: {{hbm: {{capacity: unlimited}}}}\nprocessors: {{gpu: {{memory: "
      "hbm}}}}\ncluster: {{count: {}, topology: {}, link: {{name: l, bandwidth: {} B/s, latency: "
      "{} ps}}}}\n",
      n, n == 2 ? "chain" : "ring", it.bytes_per_second, it.latency_ps);
  const std::string workload = fmt::format(
      "workload: gradients\nchain:\n  - {{name: s, forward: 0 s, backward: 0 s, saved: 0 B, "
      "parameters: {} B}}\n",
      bytes);
  const json result = test::run_scenario(
      platform, workload,
      fmt::format("{{name: pipeline/gpipe, microbatches: {0}, data_parallel: {0}}}", n));
  REQUIRE(result.at("status") == "ok");
  return result.at("makespan_s");
}

}  // namespace

// Latency and bandwidth are fitted on half of the rows of each number of GPUs. Of the other half,
// all above 1 MiB, the mean error is 4.0 %, and 64 of 70 are within 10 %. The worst, 23 %, is 3 MiB
// on 8 V100: there the library changes its protocol, which no line follows.
TEST_CASE("measured all-reduces of 3 MiB and more: 4 % off in the mean, 9 of 10 within 10 %") {
  std::vector<double> errors;
  const json data = test::oracle("all_reduce_times.json");
  for (const auto& [gpu, by_count] : data.at("gpus").items())
    for (const auto& [count, rows] : by_count.items()) {
      CAPTURE(gpu, count);
      const std::int64_t n = std::stoll(count);
      std::vector<Row> calibration;
      for (std::size_t r = 0; r < rows.size(); r += 2)
        calibration.push_back({rows[r].at(0), rows[r].at(1)});
      const Fit of_step = fit(calibration, static_cast<double>(n));
      for (std::size_t r = 1; r < rows.size(); r += 2) {
        const double measured = rows[r].at(1).get<double>() * 1e-9;
        errors.push_back(std::abs(reduced_in(of_step, n, rows[r].at(0)) / measured - 1));
      }
    }
  REQUIRE(errors.size() == 70);
  double sum = 0;
  for (const double error : errors) sum += error;
  CHECK(sum / 70 < 0.041);
  CHECK(std::ranges::count_if(errors, [](double e) { return e <= 0.1; }) >= 64);
  CHECK(*std::ranges::max_element(errors) < 0.23);
}

}  // namespace plimsoll
