#include "scenario/run/long_run.hpp"

#include "base/quantity_text.hpp"
#include "plan/core/mirror_problems.hpp"
#include "scenario/run/extrapolation.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Runs of fewer microbatches than so many times those of the short runs are not worth while.
constexpr std::uint32_t kLong = 3;
/// Microbatches, or groups of them, beyond those that fill a pipeline, within which it mostly runs evenly.
constexpr std::uint32_t kSome = 4;
/// How often the runs that look for a repetition fill the pipeline, one after the other.
constexpr std::array<std::uint32_t, 2> kProbeFills = {4, 6};
/// Sizes of runs among which the one is taken that looks for a repetition.
constexpr std::uint32_t kProbes = 10;

/// What repeats: `every` microbatches, in so many tasks of each device.
struct Pattern {
  std::uint32_t few = 0, every = 1;
  std::uint32_t more = 0;  ///< repetitions that the long run has beyond `few + every`
};

/// The same task, `later` microbatches on.
bool is_later(const Outline::Task& task, const Outline::Task& than, std::uint32_t later) {
  Outline::Task moved = than;
  moved.microbatch += later;
  return task == moved;
}

/// By device, before which task of the short run the long one may repeat what came before; nothing where
/// the long run is not the short one with tasks repeated.
std::optional<std::vector<std::size_t>> repeated_before(const Outline& few, const Outline& many,
                                                        const Pattern& pattern) {
  if (few.rest != many.rest || few.orders.size() != many.orders.size()) return std::nullopt;
  std::vector<std::size_t> places;
  for (std::size_t d = 0; d < few.orders.size(); ++d) {
    const auto &is = few.orders[d], &becomes = many.orders[d];
    if (becomes.size() < is.size()) return std::nullopt;
    const std::size_t added = becomes.size() - is.size();
    if (added % pattern.more != 0) return std::nullopt;
    const std::size_t period = added / pattern.more;
    const auto place =
        static_cast<std::size_t>(std::ranges::mismatch(is, becomes).in1 - is.begin());
    if (place < period) return std::nullopt;
    for (std::size_t t = place; t < place + added; ++t)
      if (!is_later(becomes[t], becomes[t - period], pattern.every)) return std::nullopt;
    for (std::size_t t = place - period; t < is.size(); ++t)
      if (!is_later(becomes[t + added], is[t], pattern.more * pattern.every)) return std::nullopt;
    places.push_back(place);
  }
  return places;
}

/// Where the long run may go on otherwise than the short one: before the first step of a task.
struct Turn {
  std::size_t steps = 0;                    ///< that the device's stream has run before
  std::optional<std::uint32_t> microbatch;  ///< of the task, where there is one
};

std::vector<Turn> turns_of(const Outline& outline, const std::vector<std::size_t>& places) {
  std::vector<Turn> turns;
  for (std::size_t d = 0; d < places.size(); ++d) {
    const auto& order = outline.orders[d];
    Turn turn;
    for (std::size_t t = 0; t < places[d]; ++t) turn.steps += order[t].steps;
    if (places[d] < order.size()) turn.microbatch = order[places[d]].microbatch;
    turns.push_back(turn);
  }
  return turns;
}

/// A step that a stream has run.
struct Begun {
  Time start;
  std::uint32_t microbatch = 0;
};

/// By stream: those that it has run, in its order. Streams are in the order of the devices.
std::vector<std::vector<Begun>> begun_by_stream(const Program& program,
                                                const Execution& execution) {
  const Plan& plan = *program.plan;
  std::vector<std::size_t> stream(plan.lanes.size());
  std::size_t streams = 0;
  for (std::size_t l = 0; l < plan.lanes.size(); ++l)
    if (plan.lanes[l].kind == Lane::Kind::stream) stream[l] = streams++;
  std::vector<std::vector<Begun>> begun(streams);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    if (!is_move(step.kind))
      begun[stream[index(step.lane)]].push_back({execution.start[s], step.microbatch});
  }
  return begun;
}

/// Whether all devices come to their turns no earlier than `time`.
bool turn_later(const std::vector<std::vector<Begun>>& begun, const std::vector<Turn>& turns,
                Time time) {
  if (begun.size() != turns.size()) return false;
  for (std::size_t d = 0; d < turns.size(); ++d) {
    const Turn& turn = turns[d];
    if (!turn.microbatch || turn.steps >= begun[d].size()) continue;
    const Begun& it = begun[d][turn.steps];
    if (it.microbatch != *turn.microbatch || it.start < time) return false;
  }
  return true;
}

/// What is in each memory before the first step: the inputs of all microbatches, among others.
std::vector<Bytes> initial_bytes(const Program& program) {
  const Platform& platform = *program.platform;
  std::vector<Bytes> bytes(platform.memories.size());
  for (const BufferId buffer : program.plan->initial)
    bytes[program.memory(buffer)] += program.bytes(buffer);
  copy_to_mirrors(*program.plan, platform, bytes);
  return bytes;
}

bool is_known(const Outline& outline) {
  return outline.count == 1 && outline.is_whole;
}

/// By device; nothing where the long run is not a shorter one with tasks repeated.
std::optional<std::vector<Turn>> turns_of(const Microbatches& all, const Outline& many,
                                          const Pattern& pattern) {
  const Outline fewest = all.outline(pattern.few);
  const Outline few = all.outline(pattern.few + pattern.every);
  if (!is_known(fewest) || !is_known(few)) return std::nullopt;
  if (!repeated_before(fewest, few, {pattern.few, pattern.every, 1})) return std::nullopt;
  const auto places = repeated_before(few, many, pattern);
  return places ? std::optional(turns_of(few, *places)) : std::nullopt;
}

/// What a short run adds up to.
struct Sums {
  Program frame;  ///< without steps, plan and workload
  ExecutionSums execution;
  StepSums steps;
  Claims claims;
  Bounds bounds;
  std::vector<Bytes> initial, usable;  ///< by memory
};

/// How a run repeats itself.
struct Repeats {
  std::uint32_t every = 1;  ///< microbatches of a period
  Time period;
  Repetition repetition;
  std::vector<std::vector<Begun>> begun;  ///< by stream
};

/// Keeps what there is to know of a run that ended well and never waited for memory.
class Sample final : public RunInspector {
 public:
  /// Looks for no repetition.
  Sample() = default;
  /// Looks for one after so many microbatches, or where there are none given, after those after which the
  /// first device repeats itself.
  Sample(std::optional<std::uint32_t> every, bool keeps_memory)
      : looks_(true), every_(every), keeps_memory_(keeps_memory) {}

  void see(const Program& program, const Execution& execution, const StepSums& sums) override {
    if (execution.status != RunStatus::ok || execution.waited_for_memory) return;
    Sums& it = found.emplace();
    it.frame.lanes = program.lanes;
    it.frame.reached = program.reached;
    it.frame.operator_energy = program.operator_energy;
    it.execution = execution;
    it.steps = sums;
    it.claims = program.plan->claims;
    it.bounds = program.plan->bounds;
    it.initial = initial_bytes(program);
    for (std::uint32_t m = 0; m < it.initial.size(); ++m)
      it.usable.push_back(usable(*program.plan, *program.platform, MemoryId{m}));
    if (looks_) look(program, execution);
  }

  std::optional<Sums> found;
  std::optional<Repeats> repeats;
  /// The microbatch from which on the first device does, where it does.
  std::optional<std::uint32_t> repeats_from;

 private:
  void look(const Program& program, const Execution& execution) {
    const auto cycle = find_cycle(program, execution);
    if (!cycle) return;
    const std::uint32_t every = every_.value_or(cycle->every);
    if (every % cycle->every != 0) return;
    repeats_from = cycle->first;
    const Time period = cycle->period * std::int64_t{every / cycle->every};
    auto repetition = find_repetition(program, execution, {every, period, keeps_memory_});
    if (repetition)
      repeats = {every, period, std::move(*repetition), begun_by_stream(program, execution)};
  }

  bool looks_ = false;
  std::optional<std::uint32_t> every_;
  bool keeps_memory_ = true;
};

std::optional<LongRun> extended(const Pattern& pattern, const Sums& few, Sums more,
                                std::vector<Bytes> added) {
  for (std::size_t m = 0; m < added.size(); ++m) added[m] += more.initial[m] - few.initial[m];
  Extrapolation further(pattern.more, std::move(added));
  LongRun run;
  run.played = pattern.few + pattern.every;
  run.every = pattern.every;
  run.period = more.execution.makespan - few.execution.makespan;
  run.frame = std::move(more.frame);
  run.execution = further.of(few.execution, std::move(more.execution));
  run.sums = further.of(few.steps, std::move(more.steps));
  run.claims = further.of(few.claims, std::move(more.claims));
  run.bounds = further.of(few.bounds, std::move(more.bounds));
  bool fits = further.holds();
  for (std::size_t m = 0; fits && m < more.usable.size(); ++m)
    fits = run.execution.memories[m].peak.reserved <= more.usable[m];
  return fits ? std::optional(std::move(run)) : std::nullopt;
}

/// The first pattern with so many microbatches or more in the shorter run; nothing where two such runs are
/// not worth while.
std::optional<Pattern> pattern_of(std::uint32_t few, std::uint32_t every, std::uint32_t all) {
  Pattern pattern{.few = few, .every = every};
  if (all < few + 2 * every) return std::nullopt;
  pattern.few += (all - few) % every;
  pattern.more = (all - pattern.few) / every - 1;
  const bool is_worth_while = kLong * (pattern.few + every) <= all;
  return is_worth_while ? std::optional(pattern) : std::nullopt;
}

/// A pattern of the long run's tasks, and where it may go on otherwise.
struct Trial {
  Pattern pattern;
  std::vector<Turn> turns;
};

/// Nothing where the long run is not one of so many microbatches with tasks repeated.
std::optional<Trial> trial_of(const Microbatches& all, const Outline& many, std::uint32_t few,
                              std::uint32_t every) {
  const auto pattern = pattern_of(few, every, all.count);
  if (!pattern) return std::nullopt;
  auto turns = turns_of(all, many, *pattern);
  return turns ? std::optional(Trial{*pattern, std::move(*turns)}) : std::nullopt;
}

/// Whether the longer of two short runs shows that the pattern repeats itself.
bool shows(const Sample& more, const Trial& trial) {
  return more.repeats && more.repeats->every == trial.pattern.every &&
         turn_later(more.repeats->begun, trial.turns, more.repeats->repetition.until);
}

/// Precondition of this and the next: shows(more, trial).
std::optional<LongRun> run_by(const Microbatches& all, const Trial& trial, Sample& more) {
  const Pattern& pattern = trial.pattern;
  Sample few;
  all.play(pattern.few, few);
  if (!few.found ||
      more.found->execution.makespan - few.found->execution.makespan != more.repeats->period)
    return std::nullopt;
  return extended(pattern, *few.found, std::move(*more.found),
                  std::move(more.repeats->repetition.growth));
}

/// Each repetition lasts one period.
std::optional<Time> makespan_by(const Microbatches& /*all*/, const Trial& trial, Sample& more) {
  return more.found->execution.makespan + more.repeats->period * std::int64_t{trial.pattern.more};
}

/// What is made of a trial that the longer run shows to hold.
template <class Made>
struct By {
  std::optional<Made> (*make)(const Microbatches&, const Trial&, Sample& more);
  bool keeps_memory = true;  ///< what it is made of
  /// Whether runs mostly repeat themselves after the fewest microbatches after which their tasks do.
  bool begins_short = true;
};

/// Plays patterns until one is shown to repeat itself, or as many microbatches as half of the long run has.
class PatternSearch {
 public:
  explicit PatternSearch(const Microbatches& all)
      : all_(all), many_(all.outline(all.count)), left_(all.count / 2) {}

  /// What `by` makes of the first trial of which it makes something.
  template <class Made>
  std::optional<Made> run(By<Made> by) {
    if (!is_known(many_)) return std::nullopt;
    const auto devices = static_cast<std::uint32_t>(many_.orders.size());
    std::uint32_t unit = 1;  // microbatches after which the order of tasks is the same
    auto trial = trial_of(all_, many_, devices + kSome, unit);
    if (!trial) {
      unit = devices;
      trial = trial_of(all_, many_, devices + kSome * unit, unit);
    }
    // Of the first size, where that has been asked.
    std::optional<bool> is_possible;
    if (!by.begins_short) is_possible = can_probe(probe_size(kProbeFills.front() * devices, unit));
    if (!is_possible.value_or(false))
      if (auto made = play(trial, by)) return made;
    for (const std::uint32_t fills : kProbeFills) {
      const std::uint32_t size = probe_size(fills * devices, unit);
      const auto known = std::exchange(is_possible, std::nullopt);
      if (!(known ? *known : can_probe(size))) break;
      Sample probe(std::nullopt, by.keeps_memory);
      if (!play(size, probe)) break;
      if (auto made = by_probe(probe, size, unit, by)) return made;
      if (!probe.repeats_from) break;
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] bool can_probe(std::uint32_t size) const {
    return kLong * size <= all_.count && is_known(all_.outline(size));
  }

  /// `probe`: of a run of so many microbatches. Plays as many as what repeats itself in it asks for.
  template <class Made>
  std::optional<Made> by_probe(Sample& probe, std::uint32_t size, std::uint32_t unit, By<Made> by) {
    if (!probe.repeats) return std::nullopt;
    const auto devices = static_cast<std::uint32_t>(many_.orders.size());
    const std::uint32_t every = std::lcm(probe.repeats->every, unit);
    const std::uint32_t few = std::max(*probe.repeats_from + 2 * every, devices) + kSome;
    const auto trial = trial_of(all_, many_, size - every, every);
    if (trial && trial->pattern.few + every == size && shows(probe, *trial))
      return by.make(all_, *trial, probe);
    if (auto made = play(trial_of(all_, many_, few, every), by)) return made;
    return play(trial_of(all_, many_, size + 2 * every, every), by);
  }

  /// Microbatches, enough to fill a pipeline several times. After how many of them it repeats itself is not known, so the
  /// number is one to which the long run adds a multiple of as many numbers as possible, and rather of the number of devices,
  /// as where what goes forth and back through all of them paces the pipeline.
  [[nodiscard]] std::uint32_t probe_size(std::uint32_t least, std::uint32_t unit) const {
    const auto devices = static_cast<std::uint32_t>(many_.orders.size());
    constexpr std::uint32_t kRather = 3;
    std::uint32_t best = least, most = 0;
    for (std::uint32_t size = least; size < least + kProbes * unit && size < all_.count;
         size += unit) {
      std::uint32_t divisors = 0;
      for (std::uint32_t every = 1; every <= 2 * devices; ++every)
        if ((all_.count - size) % every == 0) divisors += every == devices ? kRather : 1;
      if (divisors > most) {
        best = size;
        most = divisors;
      }
    }
    return best;
  }

  template <class Made>
  std::optional<Made> play(const std::optional<Trial>& trial, By<Made> by) {
    if (!trial) return std::nullopt;
    Sample more(trial->pattern.every, by.keeps_memory);
    if (!play(trial->pattern.few + trial->pattern.every, more)) return std::nullopt;
    if (!shows(more, *trial)) return std::nullopt;
    return by.make(all_, *trial, more);
  }

  /// Whether so many may still be played.
  bool play(std::uint32_t count, Sample& sample) {
    if (count > left_) return false;
    left_ -= count;
    all_.play(count, sample);
    return true;
  }

  const Microbatches& all_;
  const Outline many_;
  std::uint32_t left_;  ///< microbatches that may be played until one is shown
};

}  // namespace

std::optional<LongRun> run_long(const Microbatches& all) {
  return PatternSearch(all).run(By<LongRun>{run_by});
}

std::optional<Time> makespan_of_long(const Microbatches& all) {
  // Without recomputation backwards wait for their gradients: what goes forth and back through the pipeline
  // paces it, and it repeats itself after about as many microbatches as are in it.
  return PatternSearch(all).run(By<Time>{makespan_by, false, false});
}

std::string note_on(const LongRun& run, std::uint32_t microbatches) {
  const std::string of = run.every == 1
                             ? std::string("further microbatch does what the one")
                             : fmt::format("further {} do what the {}", run.every, run.every);
  return fmt::format("of {} microbatches {} were played: each {} before did, {} later",
                     microbatches, run.played, of, to_text(run.period));
}

}  // namespace plimsoll
