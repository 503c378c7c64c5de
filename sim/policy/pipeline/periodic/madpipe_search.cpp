#include "policy/pipeline/periodic/madpipe_search.hpp"

#include "policy/interface/entry.hpp"
#include "policy/pipeline/partition/placement.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr int kTargets = 16;
constexpr std::size_t kMostSharedSlots = 24;
/// The most devices x stages^2 that the program looks at.
constexpr std::size_t kMostRuns = 100'000;

class AllocationSearch {
 public:
  AllocationSearch(const PeriodicSetting& setting, const Location& where)
      : setting_(setting),
        costs_(setting.problem, setting.devices, setting.parameters, setting.microbatches),
        kinds_of_(processors_of(setting.devices, {0, setting.devices.size() > 1 ? 1U : 0U, 0})),
        kinds_(setting.problem, kinds_of_, setting.parameters, setting.microbatches),
        contiguous_(costs_, setting.limits, {}) {
    require_alike(where);
    const std::size_t stages = costs_.stages();
    if (costs_.slots() > kMostRuns / stages / stages)
      refuse(where, fmt::format("`madpipe` looks at every run of {} stages on {} devices "
                                "for every state; it does so for at most {}",
                                stages, costs_.slots(), kMostRuns));
  }

  std::variant<ScheduledAllocation, Bytes> run() {
    take_contiguous();
    const Bytes limit = *std::ranges::min_element(setting_.limits);
    const MadPipe program = program_within(limit);
    if (!best_) take(program.allocation_for(unhurried()));
    if (!best_) return least_limit();
    Time low = costs_.bound() - Time{1}, high = best_->pattern.period;
    for (int target = 0; target < kTargets && low + Time{1} < high; ++target) {
      const Time middle{low.count() + (high.count() - low.count()) / 2};
      const auto found = program.allocation_for(middle);
      take(found);
      take(program.allocation_for(middle, true));
      (found || best_->pattern.period <= middle ? high : low) = middle;
      high = std::min(high, best_->pattern.period);
    }
    best_->bound = best_->model_bound = costs_.bound();
    return *best_;
  }

 private:
  void require_alike(const Location& where) const {
    for (std::size_t d = 1; d < costs_.slots(); ++d)
      for (std::size_t s = 0; s < costs_.stages(); ++s)
        if (costs_.forward(d, s, s + 1) != costs_.forward(0, s, s + 1) ||
            costs_.backward(d, s, s + 1) != costs_.backward(0, s, s + 1) ||
            costs_.load(d, s, s + 1) != costs_.load(0, s, s + 1))
          refuse(where,
                 fmt::format("`madpipe` takes devices that are alike; stage {} takes another "
                             "time on `{}` than on `{}`",
                             s, setting_.problem.platform[setting_.devices[d]].name,
                             setting_.problem.platform[setting_.devices[0]].name));
  }

  /// So long that a period holds a whole microbatch, and that loads do not tell states apart.
  Time unhurried() const { return costs_.whole() * 16; }

  MadPipe program_within(Bytes limit) const {
    return {kinds_, costs_.slots(), limit, most_shared_slots(costs_.slots(), costs_.stages())};
  }

  void take_contiguous() {
    const auto period = contiguous_.least_period();
    if (!period) return;
    const auto cuts = *contiguous_.cuts_for(*period);
    const SharedAllocation allocation{
        cuts, loop_placement(static_cast<std::uint32_t>(costs_.slots()), 1)};
    if (costs_.shared_link())
      take(allocation);  // Next-Fit knows of no turns between cuts: its period is but a hope
    else
      best_ = {allocation, contiguous_.pattern(cuts, *period), Time{}, Time{},
               contiguous_.memories(cuts, *period)};
    if (!is_exact(cuts)) take(allocation);
  }

  /// Whether Next-Fit is: it takes a half-duplex link for one item more, and the values that a
  /// recomputed slot sends for longer on their way than they are.
  bool is_exact(const std::vector<std::size_t>& cuts) const {
    for (std::size_t slot = 1; slot < costs_.slots(); ++slot)
      if (costs_.cut(slot, cuts[slot]).one_at_a_time || setting_.parameters.recomputes(slot - 1))
        return false;
    return true;
  }

  void take(const std::optional<SharedAllocation>& allocation) {
    if (!allocation || std::ranges::find(seen_, *allocation) != seen_.end()) return;
    seen_.push_back(*allocation);
    auto found = schedule(setting_, *allocation);
    if (found && (!best_ || found->pattern.period < best_->pattern.period))
      best_ = std::move(*found);
  }

  /// With which either finds an allocation.
  Bytes least_limit() const {
    Bytes low, high = *contiguous_.least_cap(costs_.whole());
    while (low < high) {
      const Bytes middle{low.count() + (high.count() - low.count()) / 2};
      if (program_within(middle).allocation_for(unhurried()))
        high = middle;
      else
        low = middle + Bytes{1};
    }
    return high;
  }

  const PeriodicSetting& setting_;
  const PeriodicCosts costs_;
  const std::vector<ProcessorId> kinds_of_;
  const PeriodicCosts kinds_;
  const NextFit contiguous_;
  std::optional<ScheduledAllocation> best_;
  std::vector<SharedAllocation> seen_;
};

}  // namespace

std::size_t most_shared_slots(std::size_t devices, std::size_t stages) {
  return std::min({2 * devices, stages, kMostSharedSlots});
}

std::variant<ScheduledAllocation, Bytes> search_allocations(const PeriodicSetting& setting,
                                                            const Location& where) {
  return AllocationSearch(setting, where).run();
}

}  // namespace plimsoll
