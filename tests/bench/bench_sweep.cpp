// How fast a sweep runs, and how much memory it takes: the VGG-19 offload chain over capacities and
// links, every point another platform, results written to a file as the command does. A line a
// number of threads.
//
//   bench_sweep [SIDE]        SIDE x SIDE points; default 100
//   bench_sweep FILE          another sweep, such as scenarios/sweeps/llama3-70b-splits.yaml
#include "cpu_clock.hpp"
#include "scenario/sweep/sweep_jobs.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace plimsoll;

Sweep vgg19_sweep(const std::string& side) {
  const std::string text =
      "{sweep: bench, base: vgg19-offload, policies: [offload/eager], grid: {"
      "memories.hbm.capacity: {from: 8 GiB, to: 32 GiB, count: " +
      side +
      "}, "
      "links.pcie.bandwidth: {from: 4 GB/s, to: 64 GB/s, count: " +
      side + ", scale: log}}}";
  return read_sweep(parse_document(text, "bench"), ".");
}

/// Of this process so far.
long peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

void measure_jobs(const Sweep& sweep, unsigned jobs) {
  const std::filesystem::path out =
      std::filesystem::temp_directory_path() / ("bench_sweep_" + std::to_string(getpid()));
  SweepResults results = SweepResults::create(out, sweep, {});
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = bench::cpu_seconds();
  run_sweep(sweep, {}, jobs, results, [](std::size_t) {});
  const double cpu = bench::cpu_seconds() - cpu_start;
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::filesystem::remove(out);
  const auto points = static_cast<double>(sweep.points());
  std::printf("| %zu | %u | %.2f s | %.2f s | %.0f | %.0f | %ld MiB |\n", sweep.points(), jobs,
              wall, cpu, points / wall, points / cpu, peak_mib());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string argument = argc > 1 ? argv[1] : "100";
  const Sweep sweep = argument.ends_with(".yaml") ? load_sweep(argument) : vgg19_sweep(argument);
  std::printf("| runs | threads | wall | cpu | runs/s | runs/s of cpu | most memory so far |\n");
  std::printf("|--:|--:|--:|--:|--:|--:|--:|\n");
  for (unsigned jobs = 1; jobs <= std::thread::hardware_concurrency(); jobs *= 2)
    measure_jobs(sweep, jobs);
}
