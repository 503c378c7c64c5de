#include "plan/check/placement_overlaps.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Steps count from 1: this is before all of them.
constexpr std::uint32_t kFromStart = 0;
constexpr std::uint32_t kForEver = 0xFFFFFFFF;

/// What is certainly at one place, as one stream sees it.
struct PlacedStay {
  std::uint32_t from = kFromStart;  ///< taken when this step starts
  std::uint32_t until = kForEver;   ///< left no sooner than this step has ended
  std::int64_t begin = 0, end = 0;  ///< in whole units
  std::string_view tensor;          ///< its name; of the workspace of `from` none
};

class OverlapFinder {
 public:
  OverlapFinder(const Plan& plan, const Readers& readers, const Workload& workload,
                const Platform& platform, std::size_t most)
      : plan_(plan),
        readers_(readers),
        workload_(workload),
        platform_(platform),
        most_(most),
        steps_of_(plan.lanes.size()),
        release_of_(plan.buffers.size(), kNone) {
    for (std::uint32_t s = 0; s < plan.steps.size(); ++s)
      if (!is_move(plan.steps[s].kind))
        steps_of_[static_cast<std::size_t>(plan.steps[s].lane)].push_back(StepId{s});
    for (std::uint32_t r = 0; r < plan.releases.size(); ++r)
      release_of_[static_cast<std::size_t>(plan.releases[r].buffer)] = r;
  }

  std::vector<std::string> run() {
    for (const PlanArena& arena : plan_.arenas)
      if (arena.has_offsets) look_at(arena.memory, arena.alignment.count());
    return std::move(problems_);
  }

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  void look_at(MemoryId memory, std::int64_t unit) {
    memory_ = memory;
    unit_ = unit;
    const auto lanes = static_cast<std::uint32_t>(plan_.lanes.size());
    gather_initial(LaneId{lanes});
    const std::size_t initial = stays_.size(), before = problems_.size();
    go_along();
    for (std::uint32_t l = 0; l < lanes && problems_.size() == before; ++l) {
      if (steps_of_[l].empty()) continue;
      gather_initial(LaneId{l});
      for (const StepId step : steps_of_[l]) add_made(step);
      if (stays_.size() > initial) go_along();
    }
  }

  void gather_initial(LaneId lane) {
    stays_.clear();
    for (const BufferId buffer : plan_.initial) add_buffer(buffer, lane, kFromStart);
  }

  void add_made(StepId id) {
    const Step& step = plan_[id];
    const std::uint32_t from = static_cast<std::uint32_t>(id) + 1;
    for (const BufferId buffer : plan_.list(step.writes)) add_buffer(buffer, step.lane, from);
    if (step.workspace_offset && platform_[plan_[step.lane].processor].memory == memory_)
      add(from, from, *step.workspace_offset, workspace_of(step, workload_), {});
  }
  void add_buffer(BufferId id, LaneId lane, std::uint32_t from) {
    const Buffer& buffer = plan_[id];
    if (buffer.memory != memory_ || !buffer.offset) return;
    const Tensor& tensor = workload_[buffer.tensor];
    add(from, last_use(id, lane, from), *buffer.offset, tensor.bytes, tensor.name);
  }
  void add(std::uint32_t from, std::uint32_t until, Bytes offset, Bytes bytes,
           std::string_view tensor) {
    const std::int64_t units = (bytes.count() + unit_ - 1) / unit_;
    if (units > 0)
      stays_.push_back({from, until, offset.count(), offset.count() + units * unit_, tensor});
  }

  /// The last step of the lane that ends before the buffer goes; at least that which makes it.
  [[nodiscard]] std::uint32_t last_use(BufferId buffer, LaneId lane, std::uint32_t from) const {
    const std::uint32_t release = release_of_[static_cast<std::size_t>(buffer)];
    if (release == kNone && readers_.taken_by(buffer) == kNoStep) return kForEver;
    std::uint32_t last = from;
    const auto wait_for = [&](std::span<const StepId> steps) {
      for (const StepId s : steps)
        if (plan_[s].lane == lane) last = std::max(last, static_cast<std::uint32_t>(s) + 1);
    };
    wait_for(readers_.of(buffer));
    if (release != kNone) wait_for(plan_.after(plan_.releases[release]));
    return last;
  }

  /// Along the stream, with a map of what is taken.
  void go_along() {
    std::map<std::int64_t, const PlacedStay*> taken;  // by begin; no two overlap
    std::multimap<std::uint32_t, std::int64_t> left;  // begins, by `until`
    for (const PlacedStay& due : stays_) {
      for (; !left.empty() && left.begin()->first < due.from; left.erase(left.begin()))
        taken.erase(left.begin()->second);
      auto other = taken.upper_bound(due.begin);
      if (other != taken.begin() && std::prev(other)->second->end > due.begin) --other;
      if (other != taken.end() && other->first < due.end) {
        refuse(*other->second, due);
      } else {
        taken.emplace(due.begin, &due);
        left.emplace(due.until, due.begin);
      }
    }
  }

  void refuse(const PlacedStay& there, const PlacedStay& due) {
    if (problems_.size() == most_) return;
    const std::string when =
        due.from == kFromStart ? "from the start" : "when " + name(due.from) + " starts";
    const std::string until = there.until == kForEver
                                  ? "stays to the end"
                                  : "is there until " + name(there.until) + " has ended";
    problems_.push_back(fmt::format("{} is due at {} B in `{}` {}; {}, at {} B to {} B, {}",
                                    name(due), due.begin, platform_[memory_].name, when,
                                    name(there), there.begin, there.end, until));
  }
  [[nodiscard]] std::string name(const PlacedStay& stay) const {
    return stay.tensor.empty() ? "the workspace of " + name(stay.from)
                               : fmt::format("`{}`", stay.tensor);
  }
  [[nodiscard]] std::string name(std::uint32_t step) const {
    return step == kFromStart ? "the start"
                              : describe(plan_, StepId{step - 1}, workload_, platform_);
  }

  const Plan& plan_;
  const Readers& readers_;
  const Workload& workload_;
  const Platform& platform_;
  const std::size_t most_;
  std::vector<std::vector<StepId>> steps_of_;  ///< by lane: what computes
  std::vector<std::uint32_t> release_of_;      ///< by buffer
  MemoryId memory_{};                          ///< what is looked at
  std::int64_t unit_ = 1;                      ///< of its arena
  std::vector<PlacedStay> stays_;              ///< of one stream, by `from`
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> placement_overlaps(const Plan& plan, const Readers& readers,
                                            const Workload& workload, const Platform& platform,
                                            std::size_t most) {
  if (std::ranges::none_of(plan.arenas, &PlanArena::has_offsets)) return {};
  return OverlapFinder(plan, readers, workload, platform, most).run();
}

}  // namespace plimsoll
