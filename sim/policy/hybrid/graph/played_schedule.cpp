#include "policy/hybrid/graph/played_schedule.hpp"

#include "base/dense_id.hpp"
#include "policy/claims/timeline.hpp"
#include "policy/offload/copies/swap_timing.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

constexpr std::uint32_t kNobody = OperatorGraph::kNone;

/// A return of a value, by positions in the schedule.
struct ReturnAt {
  std::uint32_t value = 0;
  std::uint32_t stage_begin = 0;  ///< of its stage
  std::uint32_t previous = 0;     ///< the last use of the copy before
  std::uint32_t use = kNobody;    ///< the first of this one
  std::uint32_t in_after = 0;     ///< it is issued with this step
  bool is_last = true;            ///< of its value
};

/// Follows a schedule from step to step: which copy each step reads.
class ReturnTracker {
 public:
  ReturnTracker(const ScheduledGraph& of, const StagedSchedule& schedule)
      : graph_(of.graph),
        groups_(of.groups),
        nodes_(schedule.computations()),
        pending_(of.graph.values.size(), kNobody),
        latest_run_(of.graph.values.size(), kNobody),
        last_use_(of.graph.values.size(), 0),
        is_kept_(nodes_.size(), false) {
    for (const Rerun& it : schedule.all())
      if (const std::uint32_t value = groups_.groups[it.group].returns; value != kNobody)
        due_.emplace_back(it.stage, value);
    std::ranges::sort(due_);
    std::uint32_t stage = 0;
    std::size_t next = 0;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      if (i == 0 || StagedSchedule::stage_of(schedule.key_at(i)) != stage)
        stage = begin_stage(i, schedule, next);
      run(i);
    }
    finish();
  }

  /// Those that are used, in the order of their uses.
  [[nodiscard]] std::vector<ReturnAt>& returns() { return returns_; }
  [[nodiscard]] const std::vector<std::uint32_t>& nodes() const { return nodes_; }

  /// Bare where what only `keep` leaves is neither read from this run nor sent.
  [[nodiscard]] Form form(std::uint32_t position) const {
    if (is_kept_[position]) return Form::keep;
    const bool has_more =
        std::ranges::any_of(graph_.nodes[nodes_[position]].makes,
                            [&](std::uint32_t value) { return graph_.values[value].is_kept_only; });
    return has_more ? Form::bare : Form::keep;
  }

 private:
  std::uint32_t begin_stage(std::uint32_t position, const StagedSchedule& schedule,
                            std::size_t& next) {
    const std::uint32_t stage = StagedSchedule::stage_of(schedule.key_at(position));
    for (; next < due_.size() && due_[next].first <= stage; ++next) {
      pending_[due_[next].second] = static_cast<std::uint32_t>(returns_.size());
      returns_.push_back({.value = due_[next].second, .stage_begin = position});
    }
    return stage;
  }

  void run(std::uint32_t position) {
    const OperatorGraph::Node& node = graph_.nodes[nodes_[position]];
    for (const std::uint32_t value : node.reads) {
      if (const std::uint32_t pending = pending_[value]; pending != kNobody) {
        returns_[pending].use = position;
        returns_[pending].previous = last_use_[value];
        pending_[value] = kNobody;
        latest_run_[value] = kNobody;
      }
      last_use_[value] = position;
      if (graph_.values[value].is_kept_only && latest_run_[value] != kNobody)
        is_kept_[latest_run_[value]] = true;
    }
    for (const std::uint32_t value : node.makes) {
      if (first_run_.size() <= value) first_run_.resize(value + std::size_t{1}, kNobody);
      if (first_run_[value] == kNobody) first_run_[value] = position;
      latest_run_[value] = last_use_[value] = position;
      pending_[value] = kNobody;
    }
  }

  void finish() {
    std::erase_if(returns_, [](const ReturnAt& it) { return it.use == kNobody; });
    std::ranges::stable_sort(returns_, {}, &ReturnAt::use);
    std::vector<std::uint32_t> later(graph_.values.size(), kNobody);
    for (std::uint32_t r = 0; r < returns_.size(); ++r) {
      const std::uint32_t value = returns_[r].value;
      if (later[value] != kNobody) returns_[later[value]].is_last = false;
      later[value] = r;
      if (graph_.values[value].is_kept_only) is_kept_[first_run_[value]] = true;
    }
  }

  const OperatorGraph& graph_;
  const RerunGroups& groups_;
  const std::vector<std::uint32_t> nodes_;                    ///< by position
  std::vector<std::pair<std::uint32_t, std::uint32_t>> due_;  ///< stage, value
  std::vector<ReturnAt> returns_;
  std::vector<std::uint32_t> pending_;     ///< by value: its return that nobody has read yet
  std::vector<std::uint32_t> latest_run_;  ///< by value: where it is read from, if from a run
  std::vector<std::uint32_t> first_run_, last_use_;  ///< by value
  std::vector<bool> is_kept_;                        ///< by position
};

/// Chooses when returns are issued.
class ReturnMoments {
 public:
  ReturnMoments(const ScheduledGraph& of, const StagedSchedule& schedule,
                const std::vector<std::uint32_t>& nodes)
      : of_(of), timing_(of.problem, of.memories) {
    Time now;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      starts_.push_back(now);
      now += of.graph.nodes[nodes[i]].time;
      slack_.push_back(-schedule.above_room(i));
    }
    starts_.push_back(now);
  }

  void choose(std::vector<ReturnAt>& returns) {
    wish(returns);
    std::uint32_t not_before = 0;
    for (ReturnAt& it : returns) {
      const std::int64_t bytes = of_.graph.values[it.value].bytes.count();
      // At the start of its stage there is room: it is issued with the step before.
      std::uint32_t at = std::max(it.stage_begin, 1u) - 1;
      const std::uint32_t wish = std::max({it.in_after, it.previous, not_before});
      if (at > wish)
        while (at > wish && slack_[at] >= bytes) slack_[at--] -= bytes;
      else
        at = std::max(at, std::min(wish, it.use - 1));
      it.in_after = at;
      not_before = at;
    }
  }

 private:
  /// As late as none is late on a link that does nothing else.
  void wish(std::vector<ReturnAt>& returns) {
    Time busy_from = starts_.back();
    for (std::size_t r = returns.size(); r-- > 0;) {
      ReturnAt& it = returns[r];
      const Time back = std::min(starts_[it.use], busy_from);
      const Time copy = timing_.copy_in(of_.graph.values[it.value].bytes);
      busy_from = back > copy ? back - copy : Time{};
      const auto after = std::ranges::upper_bound(starts_, busy_from) - starts_.begin();
      it.in_after = static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(after, 1) - 1);
    }
  }

  const ScheduledGraph& of_;
  const SwapTiming timing_;
  std::vector<Time> starts_;         ///< by position, and the end of the last
  std::vector<std::int64_t> slack_;  ///< bytes of room, by position
};

/// Makes the plan, position by position.
class SchedulePlayer {
 public:
  SchedulePlayer(const ScheduledGraph& of, const StagedSchedule& schedule,
                 const std::string& policy)
      : of_(of),
        tracker_(of, schedule),
        runs_left_(of.graph.nodes.size(), 0),
        sends_(of.graph.nodes.size()),
        steps_(of.problem, of.memories, policy) {
    steps_.builder().keep_each_generator();
    ReturnMoments(of, schedule, tracker_.nodes()).choose(tracker_.returns());
    std::vector<bool> is_sent(of.graph.values.size(), false);
    for (const ReturnAt& it : tracker_.returns()) {
      if (is_sent[it.value]) continue;
      is_sent[it.value] = true;
      sends_[of.groups.groups[of.groups.return_of(it.value)].after].push_back(it.value);
    }
    for (const std::uint32_t node : tracker_.nodes()) ++runs_left_[node];
  }

  PlayedSchedule run(Bytes limit) {
    std::vector<StepId> out(of_.graph.values.size());
    std::size_t next = 0;
    const std::vector<ReturnAt>& returns = tracker_.returns();
    for (std::uint32_t i = 0; i < tracker_.nodes().size(); ++i) {
      const StepId step = compute(i);
      for (const std::uint32_t value : std::exchange(sends_[tracker_.nodes()[i]], {})) {
        out[value] = steps_.send(of_.graph.values[value].tensor);
        steps_.builder().after_end(out[value], step);
      }
      for (; next < returns.size() && returns[next].in_after == i; ++next)
        fetch(returns[next], step, out[returns[next].value]);
    }
    played_.plan = steps_.finish(limit);
    return std::move(played_);
  }

 private:
  StepId compute(std::uint32_t position) {
    const std::uint32_t node = tracker_.nodes()[position];
    const StepId step = steps_.compute(OperatorId{node}, tracker_.form(position));
    if (--runs_left_[node] > 0)
      for (const std::uint32_t value : of_.graph.nodes[node].makes)
        if (of_.graph.values[value].stays)
          steps_.builder().release(of_.graph.values[value].tensor, 0, of_.memories.home);
    return step;
  }

  void fetch(const ReturnAt& it, StepId step, StepId out) {
    const StepId in = steps_.fetch(of_.graph.values[it.value].tensor,
                                   it.is_last ? SourceRelease::whole : SourceRelease::keep);
    steps_.builder().after_start(in, step);
    played_.returns.push_back({it.value, out, in});
  }

  const ScheduledGraph& of_;
  ReturnTracker tracker_;
  std::vector<std::uint32_t> runs_left_;           ///< by node
  std::vector<std::vector<std::uint32_t>> sends_;  ///< values, by node
  TransferSteps steps_;
  PlayedSchedule played_;
};

/// Shares out the waits of operators.
class WaitSharing {
 public:
  WaitSharing(const Timeline& timeline, std::size_t values)
      : timeline_(timeline), waits_(values, 0) {}

  /// The copies of one channel, in their order.
  void share(const std::vector<std::pair<StepId, std::uint32_t>>& copies, Time begin, Time end) {
    const auto at = [&](std::size_t k) { return index(copies[k].first); };
    // The copy at whose end the wait ends; before it those without a break.
    std::size_t last = copies.size();
    for (std::size_t k = 0; k < copies.size(); ++k)
      if (timeline_.ends[at(k)].time == end && timeline_.starts[at(k)].time < end) last = k;
    if (last == copies.size()) return;
    std::size_t first = last;
    while (first > 0 && timeline_.ends[at(first - 1)].time == timeline_.starts[at(first)].time)
      --first;
    const Time busy = end - timeline_.starts[at(first)].time;
    for (std::size_t k = first; k <= last; ++k) {
      const Time copy = timeline_.ends[at(k)].time - timeline_.starts[at(k)].time;
      waits_[copies[k].second] += static_cast<std::int64_t>(
          static_cast<double>((end - begin).count()) *
          (static_cast<double>(copy.count()) / static_cast<double>(busy.count())));
    }
  }

  [[nodiscard]] std::vector<std::int64_t> waits() { return std::move(waits_); }

 private:
  const Timeline& timeline_;
  std::vector<std::int64_t> waits_;  ///< by value, ps
};

}  // namespace

PlayedSchedule play_schedule(const ScheduledGraph& of, const StagedSchedule& schedule, Bytes limit,
                             const std::string& policy) {
  return SchedulePlayer(of, schedule, policy).run(limit);
}

std::vector<std::int64_t> waits_by_value(const ScheduledGraph& of, const PlayedSchedule& played) {
  const Readers readers(played.plan);
  const std::optional<Timeline> timeline = timeline_of(played.plan, of.problem, readers);
  std::vector<std::int64_t> none(of.graph.values.size(), 0);
  if (!timeline) return none;
  std::vector<std::pair<StepId, std::uint32_t>> out, in;
  for (const PlayedReturn& it : played.returns) {
    out.emplace_back(it.out, it.value);
    in.emplace_back(it.in, it.value);
  }
  for (auto* copies : {&out, &in}) {
    std::ranges::sort(*copies);
    copies->erase(std::unique(copies->begin(), copies->end()), copies->end());
  }
  WaitSharing sharing(*timeline, of.graph.values.size());
  Time ended;
  for (std::size_t s = 0; s < played.plan.steps.size(); ++s) {
    if (played.plan.steps[s].kind != StepKind::compute) continue;
    if (const Time start = timeline->starts[s].time; start > ended) {
      sharing.share(in, ended, start);
      sharing.share(out, ended, start);
    }
    ended = timeline->ends[s].time;
  }
  return sharing.waits();
}

}  // namespace plimsoll
