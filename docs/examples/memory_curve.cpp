/// Uses the library: runs a scenario's policies and prints how full a memory is over time, as CSV.
///
///   memory_curve SCENARIO MEMORY [PATH=VALUE]...
#include "scenario/run/run.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace plimsoll;

std::size_t index_of(auto id) {
  return static_cast<std::size_t>(id);
}

/// Bytes that come (or go, if negative) at each moment.
class MemoryCurve {
 public:
  MemoryCurve(const RunResult& run, const Platform& platform, MemoryId memory)
      : run_(run), platform_(platform), memory_(memory), last_read_(run.plan.buffers.size()) {
    for (std::size_t s = 0; s < run_.plan.steps.size(); ++s)
      for (const BufferId buffer : run_.plan.list(run_.plan.steps[s].reads))
        last_read_[index_of(buffer)] = std::max(last_read_[index_of(buffer)], end(s));
    for (const BufferId buffer : run_.plan.initial) add_buffer(buffer, Time{});
    for (std::size_t s = 0; s < run_.plan.steps.size(); ++s) add_step(s);
    for (const Release& release : run_.plan.releases) {
      Time freed;
      for (const StepId step : run_.plan.after(release))
        freed = std::max(freed, end(index_of(step)));
      free_buffer(release.buffer, freed);
    }
  }

  [[nodiscard]] const std::map<Time, std::int64_t>& changes() const { return changes_; }

 private:
  [[nodiscard]] Time start(std::size_t step) const { return run_.execution.start[step]; }
  [[nodiscard]] Time end(std::size_t step) const { return run_.execution.end[step]; }

  void change(Time time, Bytes bytes, int sign) {
    if (!time.is_unlimited()) changes_[time] += sign * bytes.count();  // it did happen
  }
  void add_buffer(BufferId id, Time time) {
    const Buffer& buffer = run_.plan[id];
    if (buffer.memory == memory_) change(time, run_.workload_as_run[buffer.tensor].bytes, 1);
  }
  void free_buffer(BufferId id, Time time) {
    const Buffer& buffer = run_.plan[id];
    if (buffer.memory == memory_) change(time, run_.workload_as_run[buffer.tensor].bytes, -1);
  }

  void add_step(std::size_t s) {
    const Step& step = run_.plan.steps[s];
    for (const BufferId buffer : run_.plan.list(step.writes)) add_buffer(buffer, start(s));
    if (step.kind == StepKind::copy) return add_source_release(s);
    if (platform_[run_.plan[step.lane].processor].memory != memory_) return;
    change(start(s), run_.workload_as_run[step.op].workspace, 1);
    change(end(s), run_.workload_as_run[step.op].workspace, -1);
  }

  /// A copy that takes its source away frees it at its end, or at that of its last reader.
  void add_source_release(std::size_t s) {
    const Step& copy = run_.plan.steps[s];
    const BufferId source = run_.plan.list(copy.reads).front();
    if (copy.source == SourceRelease::whole) free_buffer(source, last_read_[index_of(source)]);
  }

  const RunResult& run_;
  const Platform& platform_;
  const MemoryId memory_;
  std::vector<Time> last_read_;  ///< by buffer: the end of its last reader
  std::map<Time, std::int64_t> changes_;
};

int print_curves(const Scenario& scenario, const std::string& memory) {
  const auto id = scenario.platform.find_memory(memory);
  if (!id) {
    std::fprintf(stderr, "memory_curve: there is no memory `%s`\n", memory.c_str());
    return 2;
  }
  std::printf("policy,time_ps,bytes\n");
  for (const RunResult& run : run(scenario)) {
    std::int64_t bytes = 0;
    const MemoryCurve curve(run, scenario.platform, *id);
    for (const auto& [time, change] : curve.changes())
      std::printf("%s,%lld,%lld\n", run.policy.c_str(), static_cast<long long>(time.count()),
                  static_cast<long long>(bytes += change));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: memory_curve SCENARIO MEMORY [PATH=VALUE]...\n");
    return 2;
  }
  Overrides overrides;
  for (int i = 3; i < argc; ++i) {
    const std::string assignment = argv[i];
    const std::size_t equals = std::min(assignment.find('='), assignment.size() - 1);
    overrides.set.emplace_back(assignment.substr(0, equals), assignment.substr(equals + 1));
  }
  try {
    return print_curves(load_scenario(argv[1], overrides), argv[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
