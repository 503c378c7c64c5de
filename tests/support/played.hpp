/// Platforms and workloads from text, and plans played on them, for tests.
#pragma once

#include "base/document.hpp"
#include "execution/rank_metrics.hpp"
#include "plan/build/plan_builder.hpp"
#include "plan/check/plan_checker.hpp"
#include "platform/file/platform_file.hpp"
#include "workload/workload_file.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include <catch2/catch.hpp>

namespace plimsoll::test {

inline Platform platform_of(const std::string& yaml) {
  Diagnostics diagnostics;
  Platform platform = read_platform(parse_document(yaml, "platform.yaml"), diagnostics);
  diagnostics.throw_if_errors();
  return platform;
}

inline Workload workload_of(const std::string& yaml, const WorkloadOptions& options = {}) {
  return build(read_workload(parse_document(yaml, "workload.yaml")), options);
}

inline Time seconds(std::int64_t count) {
  return Time{count * 1'000'000'000'000};
}

/// Names to ids.
class Named {
 public:
  Named(const Workload& workload, const Platform& platform)
      : workload_(workload), platform_(platform) {}

  [[nodiscard]] OperatorId op(const std::string& name) const {
    return OperatorId{place(workload_.operators, name)};
  }
  [[nodiscard]] TensorId tensor(const std::string& name) const {
    return TensorId{place(workload_.tensors, name)};
  }
  [[nodiscard]] MemoryId memory(const std::string& name) const {
    return MemoryId{place(platform_.memories, name)};
  }
  [[nodiscard]] ProcessorId processor(const std::string& name) const {
    return ProcessorId{place(platform_.processors, name)};
  }

 private:
  template <class Part>
  static std::uint32_t place(const std::vector<Part>& parts, const std::string& name) {
    const auto found = std::ranges::find(parts, name, &Part::name);
    if (found == parts.end()) throw std::invalid_argument(name);
    return static_cast<std::uint32_t>(found - parts.begin());
  }

  const Workload& workload_;
  const Platform& platform_;
};

/// A plan that was checked and executed. Refers to the workload and the platform.
struct Played {
  Plan plan;
  Execution execution;
  Metrics metrics;
  std::vector<CollectiveSum> collectives;  ///< by name, then by memory of what is played

  [[nodiscard]] Time start(StepId step) const {
    return execution.start[static_cast<std::size_t>(step)];
  }
  [[nodiscard]] Time end(StepId step) const {
    return execution.end[static_cast<std::size_t>(step)];
  }
  [[nodiscard]] std::int64_t peak(MemoryId memory) const {
    return execution.memories[static_cast<std::size_t>(memory)].peak.requested.count();
  }
};

inline Played play(Plan plan, const Workload& workload, const Platform& platform,
                   std::int64_t iterations = 1) {
  const Topology topology(platform);
  const std::vector<std::string> problems = check_plan(plan, workload, platform, topology);
  CAPTURE(problems);
  REQUIRE(problems.empty());
  const Program program = lower(plan, workload, platform, topology);
  Execution execution = execute(program);
  Metrics metrics = measure(program, execution, step_sums(program, execution), iterations);
  std::vector<CollectiveSum> collectives = collective_sums(program, execution);
  return {std::move(plan), std::move(execution), std::move(metrics), std::move(collectives)};
}

}  // namespace plimsoll::test
