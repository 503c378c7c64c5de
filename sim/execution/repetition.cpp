#include "execution/repetition.hpp"

#include "execution/execution.hpp"
#include "execution/observer.hpp"
#include "plan/core/mirror_problems.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <span>

namespace plimsoll {

namespace {

constexpr std::size_t kPeriods = 3;

/// What the memories hold just before the last periods begin, and when they are over.
class Levels final : public Observer {
 public:
  Levels(std::size_t memories, Time from, Time period)
      : from_(from), period_(period), alive_(memories) {}

  /// By memory, what each period adds; nothing where periods differ in that, or take away.
  [[nodiscard]] std::optional<std::vector<Bytes>> growth() const {
    std::vector<Bytes> growth;
    for (const auto& at : alive_) {
      Bytes sum;
      for (std::size_t c = 0; c < kTensorClasses; ++c) {
        const Bytes added = at[1][c] - at[0][c];
        if (added < Bytes{} || at[2][c] - at[1][c] != added) return std::nullopt;
        sum += added;
      }
      growth.push_back(sum);
    }
    return growth;
  }

  void memory_used(MemoryId memory, const MemoryPoint& now, bool /*is_peak*/) override {
    for (std::size_t i = 0; i < kPeriods; ++i)
      if (now.time < from_ + period_ * static_cast<std::int64_t>(i))
        alive_[index(memory)][i] = now.alive;
  }

 private:
  Time from_, period_;
  /// By memory, and by period.
  std::vector<std::array<std::array<Bytes, kTensorClasses>, kPeriods>> alive_;
};

/// When the first stream begins with one microbatch after the other.
std::vector<Time> beginnings(const Program& program, const Execution& execution) {
  const Plan& plan = *program.plan;
  std::vector<Time> times;
  std::optional<LaneId> stream;
  OperatorId first = kNoOperator;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    if (plan[step.lane].kind != Lane::Kind::stream || (stream && *stream != step.lane)) continue;
    if (!stream) {
      stream = step.lane;
      first = step.op;
    }
    if (step.op == first && step.instance == 0) times.push_back(execution.start[s]);
  }
  return times;
}

class RepetitionSearch {
 public:
  RepetitionSearch(const Program& program, const Execution& execution, const Period& period)
      : program_(program),
        plan_(*program.plan),
        execution_(execution),
        every_(period.every),
        period_(period.time),
        keeps_memory_(period.keeps_memory),
        lanes_(plan_.lanes.size()) {
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s)
      lanes_[index(plan_.steps[s].lane)].push_back(s);
    for (std::vector<std::uint32_t>& lane : lanes_)
      std::ranges::stable_sort(lane, {}, [&](std::uint32_t s) { return execution_.start[s]; });
  }

  std::optional<Repetition> run() {
    if (period_ <= Time{} || hides_state()) return std::nullopt;
    for (const Time from : beginnings(program_, execution_)) {
      if (from + period_ * std::int64_t{kPeriods} > execution_.makespan) break;
      if (!are_alike(from) || !gaps_are_alike(from) || !shares_begin_anew(from)) continue;
      const Time until = from + period_ * std::int64_t{kPeriods};
      if (!keeps_memory_) return Repetition{until, {}};
      if (auto growth = growth_after(from + period_)) return Repetition{until, std::move(*growth)};
    }
    return std::nullopt;
  }

 private:
  bool hides_state() const {
    const auto has_addresses = [](const Memory& memory) {
      return memory.allocator != AllocatorKind::ideal;
    };
    return !program_.issued.steps.empty() || !plan_.arenas.empty() ||
           std::ranges::any_of(program_.platform->memories, has_addresses);
  }

  std::span<const std::uint32_t> of_period(const std::vector<std::uint32_t>& lane,
                                           Time from) const {
    const auto place = [&](Time time) {
      return std::ranges::lower_bound(lane, time, {},
                                      [&](std::uint32_t s) { return execution_.start[s]; });
    };
    return {place(from), place(from + period_)};
  }

  bool are_alike(Time from) const {
    return std::ranges::all_of(lanes_, [&](const std::vector<std::uint32_t>& lane) {
      auto before = of_period(lane, from);
      if (!all_end_within_a_period(lane, from)) return false;
      for (std::size_t i = 1; i < kPeriods; ++i) {
        const auto now = of_period(lane, from + period_ * static_cast<std::int64_t>(i));
        if (!std::ranges::equal(before, now, [&](auto a, auto b) { return repeats(a, b); }))
          return false;
        before = now;
      }
      return true;
    });
  }

  /// Whether the same rounds wait for the same times.
  bool gaps_are_alike(Time from) const {
    const auto of_period = [&](std::int64_t i) {
      const auto place = [&](Time time) {
        return std::ranges::lower_bound(execution_.gaps, time, {}, &RoundGap::end);
      };
      return std::span(place(from + period_ * i), place(from + period_ * (i + 1)));
    };
    const auto repeats_gap = [&](const RoundGap& a, const RoundGap& b) {
      return b.begin - a.begin == period_ && b.end - a.end == period_ && repeats(a.step, b.step);
    };
    for (std::int64_t i = 1; i < std::int64_t{kPeriods}; ++i)
      if (!std::ranges::equal(of_period(i - 1), of_period(i), repeats_gap)) return false;
    return true;
  }

  /// Whether each way of fair links is idle at some time of the first period. While it is not, what its flows have
  /// received holds fractions that times in whole picoseconds do not show (engine/virtual_clock.hpp).
  bool shares_begin_anew(Time from) const {
    std::map<std::vector<PortId>, std::vector<std::uint32_t>> by_way;
    for (std::size_t l = 0; l < lanes_.size(); ++l) {
      const ProgramLane& lane = program_.lanes[l];
      if (!lane.is_channel || !lane.route.is_fair) continue;
      auto& steps = by_way[lane.route.shared];
      steps.insert(steps.end(), lanes_[l].begin(), lanes_[l].end());
    }
    return std::ranges::all_of(by_way, [&](auto& way) { return is_idle_once(way.second, from); });
  }

  bool is_idle_once(std::vector<std::uint32_t>& steps, Time from) const {
    std::ranges::stable_sort(steps, {}, [&](std::uint32_t s) { return execution_.start[s]; });
    Time busy_until = from;
    for (const std::uint32_t s : steps) {
      if (execution_.start[s] >= from + period_) break;
      if (execution_.start[s] >= from && execution_.start[s] >= busy_until) return true;
      busy_until = std::max(busy_until, execution_.end[s]);
    }
    return busy_until < from + period_;
  }

  /// So that what runs when the second period begins has started in the first.
  bool all_end_within_a_period(const std::vector<std::uint32_t>& lane, Time from) const {
    return std::ranges::all_of(lane, [&](std::uint32_t s) {
      const Time start = execution_.start[s], end = execution_.end[s];
      if (start < from) return end <= from + period_;
      return start >= from + period_ * std::int64_t{kPeriods} || end - start <= period_;
    });
  }

  bool repeats(std::uint32_t a, std::uint32_t b) const {
    if (execution_.start[b] - execution_.start[a] != period_ ||
        execution_.end[b] - execution_.end[a] != period_)
      return false;
    const Step &first = plan_.steps[a], &second = plan_.steps[b];
    if (first.kind != second.kind) return false;
    if (is_move(first.kind)) return moves_alike(first, second);
    return first.op == second.op && first.second == second.second && first.form == second.form &&
           first.second_form == second.second_form && first.instance == second.instance &&
           second.microbatch == first.microbatch + every_ &&
           (first.kind != StepKind::pair ||
            second.second_microbatch == first.second_microbatch + every_);
  }

  bool moves_alike(const Step& first, const Step& second) const {
    const auto reads = plan_.list(first.reads), then = plan_.list(second.reads);
    if (reads.size() != then.size() || first.source != second.source) return false;
    for (std::size_t i = 0; i < reads.size(); ++i) {
      const Buffer &a = plan_[reads[i]], &b = plan_[then[i]];
      const bool is_the_same = reads[i] == then[i];
      if (a.tensor != b.tensor || a.memory != b.memory ||
          (!is_the_same && b.microbatch != a.microbatch + every_))
        return false;
    }
    return first.kind != StepKind::reduce ||
           plimsoll::are_alike(plan_.reductions[first.reduction],
                               plan_.reductions[second.reduction]);
  }

  /// Plays the program once more.
  std::optional<std::vector<Bytes>> growth_after(Time from) const {
    Levels levels(program_.platform->memories.size(), from, period_);
    execute(program_, levels);
    auto growth = levels.growth();
    if (growth) copy_to_mirrors(plan_, *program_.platform, *growth);
    return growth;
  }

  const Program& program_;
  const Plan& plan_;
  const Execution& execution_;
  const std::uint32_t every_;
  const Time period_;
  const bool keeps_memory_;
  std::vector<std::vector<std::uint32_t>> lanes_;  ///< steps by lane, in the order of their starts
};

}  // namespace

std::optional<Cycle> find_cycle(const Program& program, const Execution& execution) {
  const std::vector<Time> starts = beginnings(program, execution);
  const std::size_t n = starts.size();
  std::optional<Cycle> best;
  for (std::size_t every = 1; every * kPeriods < n; ++every) {
    const Time period = starts[n - 1] - starts[n - 1 - every];
    std::size_t first = n - every;
    while (first > 0 && starts[first - 1 + every] - starts[first - 1] == period) --first;
    const std::size_t end = first + every * kPeriods;
    if (end <= n && (!best || end < best->first + best->every * kPeriods))
      best = Cycle{static_cast<std::uint32_t>(every), static_cast<std::uint32_t>(first), period};
  }
  return best;
}

std::optional<Repetition> find_repetition(const Program& program, const Execution& execution,
                                          const Period& period) {
  return RepetitionSearch(program, execution, period).run();
}

}  // namespace plimsoll
