#include "scenario/run/whole_training.hpp"

#include "base/quantity_text.hpp"
#include "execution/find_metrics.hpp"
#include "platform/core/copy_energy.hpp"
#include "platform/core/home_memory.hpp"
#include "scenario/run/checkpoint_copy.hpp"
#include "scenario/run/power_failures.hpp"
#include "scenario/run/unknown_energy.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr double kDay = 86'400;
/// Steps of a segment, at most, where the training itself has no end.
constexpr std::int64_t kLongestInterval = 1'000'000'000'000;

/// At the source, with processors that draw `drawn` and all else idle.
Power power_with(const Platform& platform, Power (*drawn)(const ProcessorPower&)) {
  Power load;
  for (const Processor& it : platform.processors)
    if (it.power) load += drawn(*it.power);
  for (const Memory& it : platform.memories)
    if (it.power) load += it.power->idle;
  for (const Link& it : platform.links)
    if (it.power) load += it.power->idle;
  return Power{static_cast<std::int64_t>(static_cast<double>(load.count()) /
                                         as_fraction(platform.regulator_efficiency))};
}

Power power_at_rest(const Platform& platform) {
  return power_with(platform,
                    [](const ProcessorPower& its) { return its.sleep.value_or(its.idle); });
}

Power power_of_restart(const Platform& platform) {
  return power_with(platform, [](const ProcessorPower& its) { return its.active; });
}

std::set<ProcessorId> processors_in(const Plan& plan) {
  std::set<ProcessorId> used;
  for (const Lane& lane : plan.lanes)
    if (lane.kind == Lane::Kind::stream) used.insert(lane.processor);
  for (const Mirror& mirror : plan.mirrors) used.insert(mirror.processor);
  return used;
}

class Course {
 public:
  Course(const TrainingOptions& options, const Metrics& metrics, const Workload& workload,
         const Plan& plan, const Platform& platform)
      : options_(options),
        metrics_(metrics),
        workload_(workload),
        plan_(plan),
        platform_(platform),
        busy_(in_seconds(*metrics.makespan)),
        pace_(busy_) {}

  WholeTraining run(std::vector<std::string>& notes) {
    set_pace(notes);
    if (options_.checkpoints) play_checkpoints(*options_.checkpoints, notes);
    if (options_.power_failures) set_failures(*options_.power_failures);
    steps_ = interval();
    if (!can_end(segment(steps_).seconds, rate_)) refuse_failures();
    told_.steps = options_.steps;
    tell_step();
    if (options_.steps) tell_whole(*options_.steps);
    if (platform_.battery && told_.step_j.value_or(0) > 0) tell_charge(*platform_.battery);
    if (options_.power_failures) tell_failures();
    if (options_.checkpoints) tell_checkpoints(*options_.checkpoints);
    tell_storages();
    return std::move(told_);
  }

 private:
  void set_pace(std::vector<std::string>& notes) {
    if (metrics_.energy) told_.rest = power_at_rest(platform_);
    if (!options_.steps_per_day) return;
    pace_ = kDay / static_cast<double>(*options_.steps_per_day);
    if (pace_ >= busy_) return;
    notes.push_back(
        fmt::format("a day is too short for {} steps of {} each: they run one after "
                    "the other, without a rest",
                    *options_.steps_per_day, to_text(*metrics_.makespan)));
    pace_ = busy_;
  }

  void play_checkpoints(const CheckpointOptions& checkpoints, std::vector<std::string>& notes) {
    const std::set<ProcessorId> used = processors_in(plan_);
    if (used.size() != 1)
      refuse(checkpoints.where,
             fmt::format("checkpoints are written by the one processor that trains; here {} do: "
                         "expected a policy of one processor, or no `checkpoints`",
                         used.size()));
    const MemoryId storage = *platform_.find_memory(checkpoints.to.value);
    if (storage == platform_[*used.begin()].memory)
      refuse(checkpoints.to.where,
             fmt::format("`{}` is the memory that loses what it holds when the power fails",
                         checkpoints.to.value));
    state_ = checkpoint_bytes(workload_);
    if (state_ == Bytes{})
      refuse(checkpoints.where,
             "the workload has no parameters, so that a checkpoint would hold nothing");
    check_room(checkpoints, storage);
    try {
      copies_ = play_checkpoint(state_, platform_, *used.begin(), storage);
    } catch (const std::invalid_argument& problem) {
      refuse(checkpoints.to.where, problem.what());
    }
    const MemoryId ram = platform_[*used.begin()].memory;
    if (metrics_.energy && !states_copy_energy(platform_, Topology(platform_), ram, storage))
      notes.push_back(
          "the energy of checkpoints leaves out " +
          unknown_use_in_words(fmt::format("`{}`", platform_[storage].name), platform_[storage]));
  }

  /// A new checkpoint is whole before the old one goes; the step may page to the same storage.
  void check_room(const CheckpointOptions& checkpoints, MemoryId storage) const {
    const Bytes usable = platform_[storage].usable();
    if (usable.is_unlimited()) return;
    const MemoryMetrics* paged = find_metrics(checkpoints.to.value);
    const Bytes needed = state_ * 2 + (paged != nullptr ? paged->peak_allocated : Bytes{});
    if (needed <= usable) return;
    std::string why =
        fmt::format("two checkpoints of {}, so that one is whole at any time", to_text(state_));
    if (needed > state_ * 2)
      why += fmt::format(", beside {} that the step pages", to_text(needed - state_ * 2));
    refuse(checkpoints.to.where,
           fmt::format("`{}` has {} and would need {}: {}", checkpoints.to.value, to_text(usable),
                       to_text(needed), why));
  }

  [[nodiscard]] const MemoryMetrics* find_metrics(const std::string& name) const {
    return find_memory(metrics_, name);
  }

  void set_failures(const PowerFailures& failures) {
    rate_.mean_seconds = in_seconds(failures.mean_time_between);
    rate_.restart.seconds = in_seconds(failures.restart);
    if (metrics_.energy)
      rate_.restart.joules = in_joules(power_of_restart(platform_) * failures.restart);
    if (!copies_) return;
    rate_.restart.seconds += in_seconds(copies_->read.time);
    if (copies_->read.energy) rate_.restart.joules += in_joules(*copies_->read.energy);
  }

  /// So many steps, and a checkpoint if there are any.
  [[nodiscard]] WorkSegment segment(std::int64_t steps) const {
    const auto n = static_cast<double>(steps);
    WorkSegment it{n * pace_, 0};
    if (metrics_.energy)
      it.joules = n * (in_joules(metrics_.energy->total) + in_watts(*told_.rest) * (pace_ - busy_));
    if (!copies_) return it;
    it.seconds += in_seconds(copies_->write.time);
    if (copies_->write.energy) it.joules += in_joules(*copies_->write.energy);
    return it;
  }

  /// What is to be least, a step.
  [[nodiscard]] double cost_per_step(std::int64_t steps) const {
    const WorkSegment it = segment(steps);
    if (!can_end(it.seconds, rate_)) return std::numeric_limits<double>::infinity();
    const SegmentCost cost = cost_of(it, rate_);
    return (metrics_.energy ? cost.joules : cost.seconds) / static_cast<double>(steps);
  }

  /// Steps of a segment. Without checkpoints and failures any number will do.
  [[nodiscard]] std::int64_t interval() const {
    if (!options_.checkpoints) return options_.power_failures ? *options_.steps : 1;
    const std::int64_t most = options_.steps.value_or(kLongestInterval);
    const CheckpointInterval& every = options_.checkpoints->every;
    const double write = in_seconds(copies_->write.time);
    switch (every.rule) {
      using enum CheckpointInterval::Rule;
      case steps:
        return std::min(every.steps, most);
      case young:
        return in_steps(young_interval(write, rate_.mean_seconds), most);
      case daly:
        return in_steps(daly_interval(write, rate_.mean_seconds), most);
      case best:
        break;
    }
    return best_interval(most, [this](std::int64_t n) { return cost_per_step(n); });
  }

  [[nodiscard]] std::int64_t in_steps(double seconds, std::int64_t most) const {
    if (pace_ == 0) return most;
    return static_cast<std::int64_t>(
        std::clamp(std::round(seconds / pace_), 1.0, static_cast<double>(most)));
  }

  [[noreturn]] void refuse_failures() const {
    const double seconds = segment(steps_).seconds;
    const bool restart_is_longer = rate_.restart.seconds > seconds;
    const std::string steps = fmt::format("{} step{}", steps_, steps_ == 1 ? "" : "s");
    std::string what = "a restart takes";
    const char* hint = "state a shorter `restart`, or a longer `mean_time_between`";
    if (!restart_is_longer && options_.checkpoints) {
      what = fmt::format("{} with the checkpoint after {} {}", steps, steps_ == 1 ? "it" : "them",
                         steps_ == 1 ? "takes" : "take");
      hint = steps_ == 1 ? "state a longer `mean_time_between`"
                         : "write checkpoints more often, or state a longer `mean_time_between`";
    } else if (!restart_is_longer) {
      what = fmt::format("a training of {} takes", steps);
      hint = "`checkpoints: {to: STORAGE}` keeps what has been done";
    }
    const double longest = std::max(seconds, rate_.restart.seconds);
    refuse(options_.power_failures->where,
           fmt::format("{} {:.3g} times as long as power holds on average, so that nothing ends",
                       what, longest / rate_.mean_seconds),
           hint);
  }

  void tell_step() {
    per_segment_ = cost_of(segment(steps_), rate_);
    const auto n = static_cast<double>(steps_);
    told_.step_s = per_segment_.seconds / n;
    told_.steps_per_day = told_.step_s > 0 ? kDay / told_.step_s : 0;
    if (metrics_.energy) told_.step_j = per_segment_.joules / n;
  }

  void tell_whole(std::int64_t steps) {
    const auto full = static_cast<double>(steps / steps_);
    SegmentCost rest;
    if (steps % steps_ > 0)
      rest = cost_of(segment(steps % steps_), rate_);
    else
      rest.repeats = 0;
    told_.days = (full * per_segment_.seconds + rest.seconds) / kDay;
    if (metrics_.energy) told_.energy_j = full * per_segment_.joules + rest.joules;
    failures_ = full * per_segment_.failures + rest.failures;
    step_runs_ = full * per_segment_.repeats * static_cast<double>(steps_) +
                 rest.repeats * static_cast<double>(steps % steps_);
    writes_ = full * per_segment_.repeats + rest.repeats;
  }

  void tell_charge(const Battery& battery) {
    const double usable = in_joules(battery.energy) * as_fraction(battery.usable);
    ChargeMetrics charge;
    charge.steps = usable / *told_.step_j;
    charge.samples = charge.steps * static_cast<double>(workload_.batch);
    charge.days = charge.steps * told_.step_s / kDay;
    if (told_.energy_j) charge.charges = *told_.energy_j / usable;
    told_.charge = charge;
  }

  void tell_failures() {
    FailureMetrics failures;
    failures.per_day = kDay / rate_.mean_seconds;
    failures.repeated = per_segment_.repeats - 1;
    if (options_.steps) failures.in_all = failures_;
    told_.failures = failures;
  }

  void tell_checkpoints(const CheckpointOptions& checkpoints) {
    CheckpointMetrics it;
    it.to = checkpoints.to.value;
    it.bytes = state_;
    it.every = steps_;
    it.write = copies_->write.time;
    it.read = copies_->read.time;
    it.write_energy = copies_->write.energy;
    it.read_energy = copies_->read.energy;
    if (rate_.mean_seconds > 0) {
      it.young_s = young_interval(in_seconds(it.write), rate_.mean_seconds);
      it.daly_s = daly_interval(in_seconds(it.write), rate_.mean_seconds);
    }
    const WorkSegment whole = segment(steps_);
    if (whole.seconds > 0) it.time_share = in_seconds(it.write) / whole.seconds;
    if (it.write_energy && whole.joules > 0)
      it.energy_share = in_joules(*it.write_energy) / whole.joules;
    told_.checkpoints = it;
  }

  void tell_storages() {
    for (const MemoryMetrics& memory : metrics_.memories) {
      const bool computes_there = is_home(platform_, *platform_.find_memory(memory.name));
      const bool has_checkpoints =
          options_.checkpoints && options_.checkpoints->to.value == memory.name;
      if (computes_there || (memory.bytes_written == Bytes{} && !has_checkpoints)) continue;
      tell_storage(memory, has_checkpoints ? copies_->write : PlayedCopy{});
    }
  }

  void tell_storage(const MemoryMetrics& memory, const PlayedCopy& checkpoint) {
    const auto bytes = static_cast<double>(memory.bytes_written.count());
    const auto of_checkpoint = static_cast<double>(checkpoint.written.count());
    const double checkpoints_per_step = 1 / static_cast<double>(steps_);
    StorageMetrics it;
    it.name = memory.name;
    it.written_per_step = per_segment_.repeats * (bytes + of_checkpoint * checkpoints_per_step);
    if (options_.steps) it.written = step_runs_ * bytes + writes_ * of_checkpoint;
    if (memory.wear) {
      const double wear =
          per_segment_.repeats * (*memory.wear + checkpoint.wear * checkpoints_per_step);
      if (options_.steps) it.wear = step_runs_ * *memory.wear + writes_ * checkpoint.wear;
      if (wear > 0 && told_.step_s > 0) it.lasts_days = told_.step_s / kDay / wear;
    }
    told_.storages.push_back(std::move(it));
  }

  const TrainingOptions& options_;
  const Metrics& metrics_;
  const Workload& workload_;
  const Plan& plan_;
  const Platform& platform_;
  const double busy_;  ///< seconds of a step at work
  double pace_;        ///< seconds from one step to the next
  Bytes state_;
  std::optional<CheckpointCopies> copies_;
  FailureRate rate_;
  std::int64_t steps_ = 1;  ///< of a segment
  SegmentCost per_segment_;
  double failures_ = 0, step_runs_ = 0, writes_ = 0;  ///< in the whole training
  WholeTraining told_;
};

}  // namespace

WholeTraining whole_training(const TrainingOptions& options, const Metrics& metrics,
                             const Workload& workload, const Plan& plan, const Platform& platform,
                             std::vector<std::string>& notes) {
  return Course(options, metrics, workload, plan, platform).run(notes);
}

}  // namespace plimsoll
