#include "execution/rank_metrics.hpp"

#include "plan/core/mirror_problems.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace plimsoll {

namespace {

using Interval = std::pair<Time, Time>;

const char* name_of(MeshAxis axis) {
  return axis == MeshAxis::expert    ? "experts"
         : axis == MeshAxis::context ? "blocks"
                                     : "activations";
}

/// Sorted, and those that meet as one.
std::vector<Interval> united(std::vector<Interval> all) {
  std::ranges::sort(all);
  std::vector<Interval> result;
  for (const Interval& it : all)
    if (!result.empty() && it.first <= result.back().second)
      result.back().second = std::max(result.back().second, it.second);
    else
      result.push_back(it);
  return result;
}

Time length(const std::vector<Interval>& united) {
  Time sum;
  for (const auto& [from, to] : united) sum += to - from;
  return sum;
}

/// What two lists of united intervals have in common.
std::vector<Interval> common(const std::vector<Interval>& a, const std::vector<Interval>& b) {
  std::vector<Interval> both;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Time from = std::max(a[i].first, b[j].first), to = std::min(a[i].second, b[j].second);
    if (from < to) both.emplace_back(from, to);
    (a[i].second < b[j].second ? i : j)++;
  }
  return both;
}

/// By name, of the ranks that are played.
class Collectives {
 public:
  Collectives(const Program& program, const Execution& execution)
      : program_(program), plan_(*program.plan), execution_(execution) {}

  std::vector<CollectiveSum> run() {
    gather();
    std::vector<CollectiveSum> all;
    for (auto& [name, by_memory] : moves_)
      for (auto& [memory, moved] : by_memory) all.push_back(sum_of(name, memory, moved));
    return all;
  }

 private:
  struct Moved {
    Bytes bytes;
    std::vector<Interval> times;
    /// Of state that comes, by memory in which another processor made it or let it go.
    std::map<MemoryId, std::vector<Interval>> from_others;
  };

  struct UnderWay {
    std::string name;
    Time start;
    std::map<MemoryId, Time> end;  ///< by rank
  };

  void gather() {
    find_ranks();
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      if (execution_.end[s].is_unlimited()) continue;
      const Interval time{execution_.start[s], execution_.end[s]};
      const Lane& lane = plan_[step.lane];
      if (lane.kind == Lane::Kind::stream) {
        computes_[(*program_.platform)[lane.processor].memory].push_back(time);
      } else if (step.kind == StepKind::reduce) {
        const std::string name = name_of(step);
        const MemoryId rank = rank_of(step);
        Moved& of = moves_[name][rank];
        of.bytes += program_.transferred_in_all(s);
        if (const std::uint32_t number = plan_.reductions[step.reduction].collective; number > 0)
          note_collective(number, name, lane, time);
        else
          of.times.push_back(time);
        if (lane.from != rank) of.from_others[lane.from].push_back(time);
      }
    }
    for (const auto& [number, of] : collectives_)
      for (const auto& [memory, end] : of.end)
        moves_[of.name][memory].times.emplace_back(of.start, end);
    for (auto& [memory, times] : computes_) times = united(std::move(times));
  }

  /// Memories of processors that train come before those of processors that only update.
  void find_ranks() {
    const std::vector<bool> only_updates = streams_of_updates(plan_, *program_.workload);
    for (std::size_t l = 0; l < plan_.lanes.size(); ++l)
      if (const Lane& lane = plan_.lanes[l]; lane.kind == Lane::Kind::stream)
        (only_updates[l] ? updates_in_ : trains_in_)
            .insert((*program_.platform)[lane.processor].memory);
  }

  /// By its memory, whose the move is: state comes to a rank, too, from a memory that others share.
  MemoryId rank_of(const Step& step) const {
    const Lane& lane = plan_[step.lane];
    if (!moves_state(plan_, step, *program_.workload)) return lane.from;
    for (const auto* ranks : {&trains_in_, &updates_in_})
      for (const MemoryId memory : {lane.from, lane.to})
        if (ranks->contains(memory)) return memory;
    return lane.from;
  }

  /// A collective is on its way at a rank from the start of its first round, on whatever rank, to the end
  /// of the last that leaves this one or comes in: between rounds it waits for links.
  void note_collective(std::uint32_t number, const std::string& name, const Lane& lane,
                       const Interval& time) {
    UnderWay& of = collectives_.try_emplace(number, UnderWay{name, time.first, {}}).first->second;
    of.start = std::min(of.start, time.first);
    Time& end = of.end[lane.from];
    end = std::max(end, time.second);
    Time& end_there = of.end[lane.arrives_in()];
    end_there = std::max(end_there, time.second);
  }

  /// Of values, and of the gradients of values, what they are moved for: whatever is not moved over the
  /// data axis; and of what the optimizer makes.
  const char* name_of(const Step& step) const {
    const Workload& workload = *program_.workload;
    if (moves_state(plan_, step, workload)) return "state";
    if (const OperatorId id = plan_.reductions[step.reduction].op; id != kNoOperator) {
      const Operator& op = workload[id];
      if (op.phase == Phase::optimizer) return "directions";
      if (op.collective.axis != MeshAxis::data) return plimsoll::name_of(op.collective.axis);
    }
    const TensorId moved = plan_[plan_.list(step.reads).front()].tensor;
    return workload[moved].tensor_class == TensorClass::parameter ? "parameters" : "gradients";
  }

  CollectiveSum sum_of(const std::string& name, MemoryId memory, Moved& moved) {
    const std::vector<Interval> times = united(std::move(moved.times));
    const Time busy = length(times);
    std::vector<Interval> hidden = common(times, computes_[memory]);
    for (auto& [from, its] : moved.from_others)
      std::ranges::copy(common(united(std::move(its)), computes_[from]),
                        std::back_inserter(hidden));
    return {name, memory, moved.bytes, busy, busy - length(united(std::move(hidden)))};
  }

  const Program& program_;
  const Plan& plan_;
  const Execution& execution_;
  std::map<std::uint32_t, UnderWay> collectives_;  ///< by number
  std::map<std::string, std::map<MemoryId, Moved>> moves_;
  std::map<MemoryId, std::vector<Interval>> computes_;
  std::set<MemoryId> trains_in_, updates_in_;
};

/// Of all processors together, in FLOP/s; nothing where one does not say.
std::optional<double> peak_rate(const Program& program, std::int64_t processors) {
  const auto dtype = static_cast<std::size_t>(main_dtype(*program.workload));
  double sum = 0;
  std::int64_t played = 0;
  const std::vector<bool> only_updates = streams_of_updates(*program.plan, *program.workload);
  for (std::size_t l = 0; l < only_updates.size(); ++l) {
    const Lane& lane = program.plan->lanes[l];
    if (lane.kind != Lane::Kind::stream || lane.stream != 0 || only_updates[l]) continue;
    const auto& rate = (*program.platform)[lane.processor].compute[dtype];
    if (!rate || rate->is_unlimited()) return std::nullopt;
    sum += static_cast<double>(rate->count());
    ++played;
  }
  if (played == 0) return std::nullopt;
  return sum * static_cast<double>(processors) / static_cast<double>(played);
}

void measure_utilization(const Program& program, std::int64_t processors, Metrics& metrics) {
  const Workload& workload = *program.workload;
  const auto rate = peak_rate(program, processors);
  if (workload.macs == 0 || !rate || metrics.makespan.value_or(Time{}) == Time{}) return;
  const double seconds = in_seconds(*metrics.makespan);
  const double runs = static_cast<double>(program.plan->microbatches) *
                      static_cast<double>(replicas_of(*program.plan));
  const double model =
      (6.0 * static_cast<double>(workload.macs) - 2.0 * static_cast<double>(workload.frozen_macs)) *
      runs;
  double again = 0;
  for (const ProcessorMetrics& processor : metrics.processors)
    again += static_cast<double>(processor.recomputed_products.count());
  metrics.mfu = model / seconds / *rate;
  metrics.hfu = (model + again) / seconds / *rate;
}

/// Of the rank that waits longest.
std::vector<CollectiveMetrics> longest(const std::vector<CollectiveSum>& sums) {
  std::vector<CollectiveMetrics> all;
  for (const CollectiveSum& it : sums) {
    const CollectiveMetrics metrics{it.name, it.bytes, it.busy, it.exposed};
    if (all.empty() || all.back().name != it.name)
      all.push_back(metrics);
    else if (it.exposed > all.back().exposed)
      all.back() = metrics;
  }
  return all;
}

}  // namespace

std::vector<CollectiveSum> collective_sums(const Program& program, const Execution& execution) {
  return Collectives(program, execution).run();
}

void measure_ranks(const Program& program, const StepSums& sums, std::int64_t processors,
                   Metrics& metrics) {
  metrics.collectives = longest(sums.collectives);
  if (metrics.throughput && program.workload->tokens > 0)
    metrics.tokens_per_s = *metrics.throughput * static_cast<double>(program.workload->tokens);
  measure_utilization(program, processors, metrics);
}

}  // namespace plimsoll
