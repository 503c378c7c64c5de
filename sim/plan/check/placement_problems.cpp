#include "plan/check/placement_problems.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// An arena with offsets.
struct Places {
  std::int64_t alignment = 1;
  std::int64_t end = 0;  ///< of its last whole unit
};

class PlacementChecker {
 public:
  PlacementChecker(const Plan& plan, const Workload& workload, const Platform& platform,
                   std::size_t most)
      : plan_(plan), workload_(workload), platform_(platform), most_(most) {
    for (std::uint32_t m = 0; m < platform.memories.size(); ++m) {
      std::optional<Places>& places = places_.emplace_back();
      const PlanArena* arena = arena_in(plan, MemoryId{m});
      if (arena == nullptr || !arena->has_offsets) continue;
      const std::int64_t bytes = usable(plan, platform, MemoryId{m}).count();
      places = {arena->alignment.count(), bytes - bytes % arena->alignment.count()};
    }
  }

  std::vector<std::string> run() {
    for (const Buffer& buffer : plan_.buffers)
      if (buffer.offset)
        check(*buffer.offset, workload_[buffer.tensor].bytes, buffer.memory,
              fmt::format("`{}`", workload_[buffer.tensor].name));
    for (const Step& step : plan_.steps) {
      if (!step.workspace_offset) continue;
      const auto s = StepId{static_cast<std::uint32_t>(&step - plan_.steps.data())};
      const std::string name = "the workspace of " + describe(plan_, s, workload_, platform_);
      if (is_move(step.kind)) {
        refuse(name + " has a place, but only what computes has workspace");
        continue;
      }
      check(*step.workspace_offset, workspace_of(step, workload_),
            platform_[plan_[step.lane].processor].memory, name);
    }
    return std::move(problems_);
  }

 private:
  void check(Bytes offset, Bytes bytes, MemoryId memory, const std::string& name) {
    const std::optional<Places>& places = places_[static_cast<std::size_t>(memory)];
    if (!places)
      return refuse(fmt::format("{} has a place in `{}`, where the plan has no arena with offsets",
                                name, platform_[memory].name));
    if (offset < Bytes{} || offset.count() % places->alignment != 0)
      return refuse(fmt::format("{} is placed at {} B; expected a multiple of {} B", name,
                                offset.count(), places->alignment));
    // The end is a whole number of units: what is rounded up ends within it if this does.
    if (offset.count() > places->end || bytes.count() > places->end - offset.count())
      refuse(fmt::format("{}, {} B, is placed at {} B; the arena in `{}` ends at {} B", name,
                         bytes.count(), offset.count(), platform_[memory].name, places->end));
  }

  void refuse(std::string problem) {
    if (problems_.size() < most_) problems_.push_back(std::move(problem));
  }

  const Plan& plan_;
  const Workload& workload_;
  const Platform& platform_;
  const std::size_t most_;
  std::vector<std::optional<Places>> places_;  ///< by memory
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> placement_problems(const Plan& plan, const Workload& workload,
                                            const Platform& platform, std::size_t most) {
  return PlacementChecker(plan, workload, platform, most).run();
}

}  // namespace plimsoll
