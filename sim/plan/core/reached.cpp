#include "plan/core/reached.hpp"

#include "plan/core/changes.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

class UsesOfSteps {
 public:
  UsesOfSteps(const Plan& plan, const Workload& workload, const Platform& platform)
      : plan_(plan),
        workload_(workload),
        platform_(platform),
        changes_(changes_of(plan, workload, platform)) {}

  std::vector<ReachedUse> run() {
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s)
      if (!is_move(plan_.steps[s].kind)) add(StepId{s});
    return std::move(uses_);
  }

 private:
  void add(StepId id) {
    const Step& step = plan_[id];
    const Processor& processor = platform_[plan_[step.lane].processor];
    const auto is_reached = [&](BufferId buffer) {
      const MemoryId memory = plan_[buffer].memory;
      return std::ranges::find(processor.reaches, memory) != processor.reaches.end();
    };
    first_ = uses_.size();
    for (const BufferId buffer : plan_.list(step.reads)) {
      if (!is_reached(buffer)) continue;
      read(id, buffer);
      if (std::ranges::binary_search(changes_, std::pair(buffer, id))) write(id, buffer);
    }
    for (const BufferId buffer : plan_.list(step.writes))
      if (is_reached(buffer)) write(id, buffer);
  }

  void read(StepId id, BufferId buffer) {
    ReachedUse& use = use_of(id, buffer);
    use.read += bytes(buffer);
    use.time += time_to_read(platform_[use.memory], bytes(buffer));
  }
  void write(StepId id, BufferId buffer) {
    ReachedUse& use = use_of(id, buffer);
    use.written += bytes(buffer);
    use.time += time_to_write(platform_[use.memory], bytes(buffer));
  }

  /// That of the step and the memory of `buffer`.
  ReachedUse& use_of(StepId id, BufferId buffer) {
    const MemoryId memory = plan_[buffer].memory;
    const auto begin = uses_.begin() + static_cast<std::ptrdiff_t>(first_);
    const auto found =
        std::find_if(begin, uses_.end(), [&](const ReachedUse& it) { return it.memory == memory; });
    if (found != uses_.end()) return *found;
    return uses_.emplace_back(ReachedUse{id, memory, {}, {}, {}});
  }

  [[nodiscard]] Bytes bytes(BufferId buffer) const { return workload_[plan_[buffer].tensor].bytes; }

  const Plan& plan_;
  const Workload& workload_;
  const Platform& platform_;
  const Changes changes_;
  std::vector<ReachedUse> uses_;
  std::size_t first_ = 0;  ///< of the step that is looked at
};

}  // namespace

Time time_to_read(const Memory& memory, Bytes bytes) {
  return memory.read.latency + transfer_time(bytes, memory.read.bandwidth);
}

Time time_to_write(const Memory& memory, Bytes bytes) {
  return memory.write.latency + transfer_time(bytes, memory.write.bandwidth);
}

std::vector<ReachedUse> reached_uses(const Plan& plan, const Workload& workload,
                                     const Platform& platform) {
  const bool any = std::ranges::any_of(platform.processors,
                                       [](const Processor& it) { return !it.reaches.empty(); });
  return any ? UsesOfSteps(plan, workload, platform).run() : std::vector<ReachedUse>{};
}

}  // namespace plimsoll
