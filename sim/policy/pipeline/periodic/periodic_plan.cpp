#include "policy/pipeline/periodic/periodic_plan.hpp"

#include "plan/build/plan_builder.hpp"
#include "policy/claims/claims.hpp"
#include "policy/pipeline/periodic/inputs_apart.hpp"
#include "policy/pipeline/schedule/data_loading.hpp"
#include "policy/pipeline/schedule/optimizer_steps.hpp"
#include "policy/pipeline/schedule/slot_savings.hpp"
#include "policy/pipeline/schedule/slot_store.hpp"
#include "policy/pipeline/schedule/task_runs.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace plimsoll {

namespace {

/// Intervals over which the period is measured are a multiple of this: a pattern whose critical
/// circuit spans c microbatches repeats exactly only after c of them.
constexpr std::uint32_t kIntervals = 12;

class PeriodicPlanner {
 public:
  PeriodicPlanner(const Problem& problem, const PipelineParameters& parameters, const Slots& slots,
                  const std::vector<ProcessorId>& devices, const PeriodicPattern& pattern,
                  std::int64_t microbatches)
      : problem_(problem),
        slots_(slots),
        pattern_(pattern),
        microbatches_(static_cast<std::uint32_t>(microbatches)),
        builder_(problem.workload, problem.platform, parameters.name),
        recomputed_(recomputed_slots(parameters, slots.count())),
        runs_(problem.workload, slots, recomputed_),
        store_(stores_, recomputed_, builder_),
        ended_(kParts * slots.count(), std::vector<std::optional<StepId>>(microbatches_)) {
    for (const ProcessorId device : devices) streams_.push_back(builder_.stream(device));
    if (parameters.offloads()) stores_ = stores_of(problem, parameters, devices);
    if (parameters.load_from) loading_.emplace(problem, parameters, devices.size(), builder_);
  }

  Plan run() {
    for (const Event& event : events()) emit(event);
    add_optimizer_steps(builder_, problem_, {&slots_}, streams_);
    Plan plan = builder_.finish();
    mark_steady(plan);
    if (problem_.workload.microbatches != microbatches_)
      plan.mini_batch = static_cast<std::uint32_t>(problem_.workload.microbatches);
    return plan;
  }

 private:
  enum class Part : std::uint8_t { forward, value, out, gradient, back, backward };
  static constexpr std::size_t kParts = 6;

  /// In a microbatch, positions are in order of dependency.
  struct Event {
    Time start;
    bool takes_time = true;
    std::uint32_t microbatch = 0, position = 0;
    Part part = Part::forward;
    std::uint32_t slot = 0;  ///< of a message: the cut
  };

  /// In the order of the pattern; of what starts at one time, first what takes none, since the rest
  /// of its device or link waits for nothing that ends then.
  std::vector<Event> events() const {
    std::vector<Event> once;
    const auto slots = static_cast<std::uint32_t>(slots_.count());
    const auto add = [&](Part part, std::uint32_t slot, const PeriodicPattern::Busy& busy) {
      once.push_back({busy.start, busy.end > busy.start, 0, static_cast<std::uint32_t>(once.size()),
                      part, slot});
    };
    for (std::uint32_t s = 0; s < slots; ++s) {
      add(Part::forward, s, pattern_.forward[s]);
      if (s + 1 < slots) add(Part::value, s, pattern_.cuts[s].value);
      if (pattern_.away[s]) add(Part::out, s, pattern_.away[s]->out);
    }
    for (std::uint32_t s = slots; s-- > 0;) {
      if (pattern_.away[s]) add(Part::back, s, pattern_.away[s]->back);
      add(Part::backward, s, pattern_.backward[s]);
      if (s > 0) add(Part::gradient, s - 1, pattern_.cuts[s - 1].gradient);
    }
    std::vector<Event> all;
    for (std::uint32_t k = 0; k < microbatches_; ++k)
      for (Event event : once) {
        event.microbatch = k;
        event.start += pattern_.period * k;
        all.push_back(event);
      }
    std::ranges::sort(all, {}, [](const Event& e) {
      return std::tuple(e.start, e.takes_time, e.microbatch, e.position);
    });
    return all;
  }

  void emit(const Event& event) {
    switch (event.part) {
      case Part::forward:
      case Part::backward:
        return emit_task(event);
      case Part::value:
      case Part::gradient:
        return emit_messages(event);
      case Part::out:
      case Part::back:
        return emit_moves(event);
    }
  }

  void emit_task(const Event& event) {
    std::optional<StepId> first, last;
    const auto run = [&](Task::Kind kind) {
      for (const TaskRuns::Part& part : runs_.parts({kind, event.slot, event.microbatch})) {
        last = builder_.compute(streams_[slots_.device(event.slot)], part.op, part.microbatch,
                                part.form);
        if (!first) first = last;
      }
    };
    if (event.part == Part::forward) {
      if (loading_) loading_->load(slots_, event.slot, event.microbatch);
      run(Task::Kind::forward);
    } else {
      if (is_recomputed(event.slot)) run(Task::Kind::recompute);
      run(Task::Kind::backward);
    }
    if (loading_ && first) loading_->has_run(slots_.device(event.slot), {*first, *last});
    ended(event.part, event.slot, event.microbatch) = last;
    if (first) wait_for_messages(event, *first);
  }

  bool is_recomputed(std::uint32_t slot) const { return !recomputed_.empty() && recomputed_[slot]; }

  /// What a task makes for another slot waits for the room of what it made before: gradients, and
  /// values that the slot does not keep itself; and what leaves for that of what has left.
  void wait_for_messages(const Event& event, StepId first) {
    const std::uint32_t slot = event.slot;
    if (event.part == Part::backward && slot > 0)
      wait_for_room(first, Part::gradient, slot - 1, event.microbatch,
                    pattern_.cuts[slot - 1].gradient.end - pattern_.backward[slot].start);
    if (event.part == Part::forward && is_recomputed(slot) && slot + 1 < slots_.count())
      wait_for_room(first, Part::value, slot, event.microbatch,
                    pattern_.cuts[slot].value.end - pattern_.forward[slot].start);
    if (event.part == Part::forward && pattern_.away[slot])
      wait_for_room(first, Part::out, slot, event.microbatch,
                    pattern_.away[slot]->out.end - pattern_.forward[slot].start);
  }

  void emit_messages(const Event& event) {
    const std::uint32_t cut = event.slot;
    const bool forward = event.part == Part::value;
    const std::uint32_t from = forward ? cut : cut + 1, to = forward ? cut + 1 : cut;
    const PeriodicPattern::Cut& times = pattern_.cuts[cut];
    const Time start = (forward ? times.value : times.gradient).start;
    for (const Message& message : slots_.messages(from, forward)) {
      const StepId copy = builder_.copy(
          builder_.channel(slots_.memory(slots_.device(from)), slots_.memory(message.to_device)),
          message.tensor, event.microbatch, SourceRelease::keep);
      const bool leaves = forward && pattern_.away[to];
      wait_for_room(copy, leaves ? Part::out : Part::backward, to, event.microbatch,
                    (leaves ? pattern_.away[to]->out : pattern_.backward[to]).end - start);
      take_turns(copy, forward ? times.value_turns : times.gradient_turns);
      ended(event.part, cut, event.microbatch) = copy;
    }
  }

  void emit_moves(const Event& event) {
    const auto [slot, k] = std::pair(event.slot, event.microbatch);
    const PeriodicPattern::Away& its = *pattern_.away[slot];
    if (event.part == Part::out) {
      for (const StepId copy : store_.leave(slots_, slot, k)) {
        take_turns(copy, its.out_turns);
        ended(Part::out, slot, k) = copy;
      }
      return;
    }
    for (const StepId copy : store_.come_back(slots_, slot, k)) {
      wait_for_room(copy, Part::backward, slot, k, pattern_.backward[slot].end - its.back.start);
      take_turns(copy, its.back_turns);
    }
  }

  void take_turns(StepId copy, const std::vector<std::uint32_t>& turns) {
    for (const std::uint32_t turn : turns) {
      if (const auto before = last_of_turn_.find(turn); before != last_of_turn_.end())
        builder_.after_end(copy, before->second);
      last_of_turn_.insert_or_assign(turn, copy);
    }
  }

  /// What `step` makes lives for `span`: the same thing of so many microbatches earlier must be
  /// gone, which `part` of that microbatch brings about.
  void wait_for_room(StepId step, Part part, std::uint32_t slot, std::uint32_t microbatch,
                     Time span) {
    const std::int64_t earlier = microbatch - periods_of(span, pattern_.period);
    if (earlier < 0) return;
    if (const auto& on = ended(part, slot, static_cast<std::uint32_t>(earlier)))
      builder_.after_end(step, *on);
  }

  std::optional<StepId>& ended(Part part, std::uint32_t slot, std::uint32_t microbatch) {
    return ended_[kParts * slot + static_cast<std::size_t>(part)][microbatch];
  }

  /// Until the first forward that is not there any more would have been waited for; from where a
  /// third of the plan has been played.
  void mark_steady(Plan& plan) const {
    std::int64_t alive = 1;
    for (std::size_t s = 0; s < slots_.count(); ++s) alive = std::max(alive, pattern_.in_flight(s));
    const auto until = static_cast<std::uint32_t>(microbatches_ - 1 - alive);
    const std::uint32_t rounds = until * 2 / 3 / kIntervals;
    plan.steady_until_microbatch = until;
    plan.steady_from_microbatch = until - rounds * kIntervals;
  }

  const Problem& problem_;
  const Slots& slots_;
  const PeriodicPattern& pattern_;
  const std::uint32_t microbatches_;
  PlanBuilder builder_;
  const std::vector<bool> recomputed_;  ///< by slot; empty where none is
  const TaskRuns runs_;
  std::optional<DataLoading> loading_;  ///< where inputs come from another memory
  std::vector<LaneId> streams_;
  std::vector<MemoryId> stores_;  ///< by device, where anything leaves
  SlotStore store_;
  /// By kParts * slot + part, and microbatch: the last step.
  std::vector<std::vector<std::optional<StepId>>> ended_;
  std::map<std::uint32_t, StepId> last_of_turn_;
};

}  // namespace

std::int64_t periods_of(Time span, Time period) {
  if (span <= Time{}) return 1;
  return (span.count() - 1) / period.count() + 1;
}

std::int64_t PeriodicPattern::in_flight(std::size_t slot) const {
  return periods_of(backward[slot].end - forward[slot].start, period);
}

std::int64_t microbatches_for_period(std::size_t slots) {
  return 8 * static_cast<std::int64_t>(slots) + 3 * kIntervals;
}

std::int64_t played_microbatches(const Problem& problem, PipelineParameters parameters,
                                 std::size_t slots) {
  parameters.microbatches = std::max(parameters.microbatches, microbatches_for_period(slots));
  refuse_too_many_steps(problem, parameters);
  return parameters.microbatches;
}

Plan periodic_plan(const Problem& problem, const PipelineParameters& parameters, const Slots& slots,
                   const std::vector<ProcessorId>& devices, const PeriodicPattern& pattern,
                   std::int64_t microbatches) {
  if (parameters.load_from) require_inputs_apart(problem, *parameters.load_from, slots);
  problem.work.add(kWorkOfTiming * problem.workload.operators.size() *
                   static_cast<std::size_t>(microbatches));
  Plan plan = PeriodicPlanner(problem, parameters, slots, devices, pattern, microbatches).run();
  plan.claims = claims_of(plan, problem);
  for (std::size_t s = 0; s < slots.count(); ++s)
    plan.claims.in_flight.push_back(pattern.in_flight(s));
  return plan;
}

}  // namespace plimsoll
