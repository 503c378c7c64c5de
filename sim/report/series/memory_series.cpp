#include "engine/drain.hpp"
#include "plan/core/readers.hpp"
#include "report/series/series.hpp"

#include <algorithm>
#include <tuple>

namespace plimsoll {

namespace {

/// Of a source that leaves byte by byte: into how many steps its line is cut for a step function.
constexpr std::int64_t kDrainSteps = 16;

class Stays {
 public:
  Stays(const Program& program, const Execution& execution)
      : program_(program), plan_(*program.plan), execution_(execution), readers_(plan_) {}

  std::vector<Stay> run() {
    stay_of_.assign(plan_.buffers.size(), kNone);
    add_initial();
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s)
      if (!start(s).is_unlimited()) add_step(s);
    for (const Release& release : plan_.releases) end_stay(release.buffer, plan_.after(release));
    for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b)
      if (readers_.taken_by(BufferId{b}) != kNoStep)
        end_stay(BufferId{b}, readers_.of(BufferId{b}));
    return std::move(stays_);
  }

 private:
  [[nodiscard]] Time start(std::uint32_t step) const { return execution_.start[step]; }
  [[nodiscard]] Time end(std::uint32_t step) const { return execution_.end[step]; }

  /// As the engine places them: up to the first that does not fit.
  void add_initial() {
    std::vector<Bytes> placed(program_.platform->memories.size());
    for (const BufferId buffer : plan_.initial) {
      const std::uint32_t memory = program_.memory(buffer);
      placed[memory] += program_.bytes(buffer);
      if (placed[memory] > usable(plan_, *program_.platform, MemoryId{memory})) return;
      add_buffer(buffer, kNoStep, Time{}, Time{});
    }
  }

  void add_buffer(BufferId id, StepId step, Time begin, Time valid) {
    const Buffer& buffer = plan_[id];
    stay_of_[index(id)] = static_cast<std::uint32_t>(stays_.size());
    stays_.push_back({.memory = buffer.memory,
                      .tensor = buffer.tensor,
                      .step = step,
                      .microbatch = buffer.microbatch,
                      .tensor_class = program_.tensor(id).tensor_class,
                      .bytes = program_.bytes(id),
                      .begin = begin,
                      .valid = valid,
                      .end = Time::unlimited(),
                      .freed_by = kNoStep});
  }

  void add_step(std::uint32_t s) {
    const bool is_copy = plan_.steps[s].kind == StepKind::copy;
    for (const BufferId buffer : program_.writes(s))
      add_buffer(buffer, StepId{s}, start(s), is_copy ? end(s) : start(s));
    if (const Bytes workspace = program_.workspace(s); workspace > Bytes{})
      stays_.push_back({.memory = MemoryId{program_.memory(s)},
                        .step = StepId{s},
                        .microbatch = plan_.steps[s].microbatch,
                        .tensor_class = TensorClass::workspace,
                        .bytes = workspace,
                        .begin = start(s),
                        .valid = start(s),
                        .end = end(s),
                        .freed_by = end(s) == start(s) ? StepId{s} : kNoStep});
  }

  void end_stay(BufferId buffer, std::span<const StepId> after) {
    if (stay_of_[index(buffer)] == kNone) return;
    Stay& stay = stays_[stay_of_[index(buffer)]];
    Time last;
    for (const StepId step : after) last = std::max(last, end(index(step)));
    stay.end = last;
    for (const StepId step : after)
      if (start(index(step)) == last) stay.freed_by = step;
  }

  const Program& program_;
  const Plan& plan_;
  const Execution& execution_;
  const Readers readers_;
  std::vector<std::uint32_t> stay_of_;  ///< by buffer
  std::vector<Stay> stays_;
};

/// A source on its way out.
struct Leaving {
  Drain drain;
  std::size_t tensor_class = 0;
  Bytes counted;  ///< as gone, at the latest point
};

/// In which turn of its instant each step starts: in the first all that wait for nothing of this
/// instant, in the next what steps of no duration among them have cleared, and so on. O(edges).
class Turns {
 public:
  Turns(const Program& program, const Execution& execution)
      : execution_(execution), turns_(program.plan->steps.size(), 0) {
    for (std::uint32_t s = 0; s < turns_.size(); ++s) {
      if (execution.start[s].is_unlimited()) continue;
      const ProgramStep& step = program.steps[s];
      const std::uint32_t last = program.steps[s + 1].start_edges;
      for (std::uint32_t e = step.start_edges; e < step.end_edges; ++e)
        follow_start(s, program.edges[e]);
      for (std::uint32_t e = step.end_edges; e < last; ++e) follow_end(s, program.edges[e]);
      if (step.next_in_lane == kNone) continue;
      if (program.lanes[step.lane].is_channel)
        follow_start(s, step.next_in_lane);
      else
        follow_end(s, step.next_in_lane);
    }
  }

  [[nodiscard]] std::uint32_t of(StepId step) const { return turns_[index(step)]; }

 private:
  void follow_start(std::uint32_t from, std::uint32_t edge) {
    if ((edge & kReleaseBit) == 0 && execution_.start[edge] == execution_.start[from])
      turns_[edge] = std::max(turns_[edge], turns_[from]);
  }
  void follow_end(std::uint32_t from, std::uint32_t edge) {
    if ((edge & kReleaseBit) == 0 && execution_.start[edge] == execution_.start[from])
      turns_[edge] = std::max(turns_[edge], turns_[from] + 1);
  }

  const Execution& execution_;
  std::vector<std::uint32_t> turns_;  ///< by step
};

/// A change of what is alive, in the order in which the engine has them at one instant.
struct Change {
  Time time;
  /// 0: what ends or arrives; then for each turn its starts (odd), and what they free if they take
  /// no time (even).
  std::uint32_t phase = 0;
  std::uint32_t step = 0;  ///< of a start
  std::size_t tensor_class = 0;
  std::int64_t bytes = 0;
  std::uint32_t leaving = kNone;  ///< the drain that begins or, with negative bytes, is over

  [[nodiscard]] std::tuple<Time, std::uint32_t, std::uint32_t> key() const {
    return {time, phase, step};
  }
};

std::size_t place(TensorClass c) {
  return static_cast<std::size_t>(c);
}

/// The series of one memory.
class Curve {
 public:
  void add(const Stay& stay, const Turns& turns) {
    if (stay.bytes == Bytes{}) return;
    const bool flies = stay.valid > stay.begin;
    const std::size_t as = place(flies ? TensorClass::in_flight : stay.tensor_class);
    const bool is_initial = stay.step == kNoStep;
    change({.time = stay.begin,
            .phase = is_initial ? 0 : 2 * turns.of(stay.step) + 1,
            .step = is_initial ? 0 : index(stay.step),
            .tensor_class = as,
            .bytes = stay.bytes.count()});
    if (flies) {
      change({.time = stay.valid, .tensor_class = as, .bytes = -stay.bytes.count()});
      change({.time = stay.valid,
              .tensor_class = place(stay.tensor_class),
              .bytes = stay.bytes.count()});
    }
    change({.time = stay.end,
            .phase = stay.freed_by == kNoStep ? 0 : 2 * turns.of(stay.freed_by) + 2,
            .tensor_class = place(stay.tensor_class),
            .bytes = -stay.bytes.count()});
  }

  /// A stay that leaves byte by byte before its end; call after add().
  void add_drain(const Drain& drain, TensorClass tensor_class, Time opened) {
    const auto id = static_cast<std::uint32_t>(leaving_.size());
    leaving_.push_back({drain, place(tensor_class), Bytes{}});
    const Time from = std::max(opened, drain.begin);
    if (from >= drain.end) return;
    changes_.push_back({.time = from, .leaving = id});
    for (std::int64_t k = 1; k < kDrainSteps; ++k)
      change({.time = Time{from.count() + (drain.end - from).count() / kDrainSteps * k}});
    changes_.push_back({.time = drain.end, .bytes = -1, .leaving = id});
  }

  std::vector<MemoryPoint> run() {
    std::ranges::stable_sort(changes_, {}, &Change::key);
    for (std::size_t c = 0; c < changes_.size();) {
      const Time now = changes_[c].time;
      most_ = Bytes{-1};
      for (; c < changes_.size() && changes_[c].time == now; ++c) {
        apply(changes_[c]);
        const bool is_last = c + 1 == changes_.size() || changes_[c + 1].time > now;
        if (is_last) settle(now);
        const bool started = changes_[c].phase % 2 == 1;
        const bool complete = is_last || changes_[c].key() != changes_[c + 1].key();
        if (started && complete) keep_if_most(now);
        if (is_last) keep_last(now);
      }
    }
    return std::move(points_);
  }

 private:
  void change(const Change& it) {
    if (!it.time.is_unlimited()) changes_.push_back(it);
  }

  void apply(const Change& change) {
    if (change.leaving == kNone) {
      alive_[change.tensor_class] += Bytes{change.bytes};
      return;
    }
    Leaving& it = leaving_[change.leaving];
    if (change.bytes < 0) {  // its stay takes all of it away
      alive_[it.tensor_class] += it.counted;
      std::erase(under_way_, change.leaving);
    } else {
      it.drain.open = true;
      under_way_.push_back(change.leaving);
    }
  }

  /// What has left up to now.
  void settle(Time now) {
    for (const std::uint32_t id : under_way_) {
      Leaving& it = leaving_[id];
      const Bytes gone = it.drain.free_by(now);
      alive_[it.tensor_class] -= gone - it.counted;
      it.counted = gone;
    }
  }

  void keep_if_most(Time now) {
    settle(now);
    const MemoryPoint point{now, alive_};
    if (point.total() <= most_) return;
    if (most_ >= Bytes{}) points_.pop_back();
    most_ = point.total();
    points_.push_back(point);
  }

  /// What the instant leaves, where that is not its most.
  void keep_last(Time now) {
    const bool has_most = most_ >= Bytes{};
    if (has_most && points_.back().alive == alive_) return;
    if (!points_.empty() && points_.back().alive == alive_) return;
    points_.push_back({now, alive_});
  }

  std::vector<Change> changes_;
  std::vector<Leaving> leaving_;
  std::vector<std::uint32_t> under_way_;
  std::array<Bytes, kTensorClasses> alive_{};
  std::vector<MemoryPoint> points_;
  Bytes most_{-1};  ///< of the points of this instant; negative before the first
};

/// When all other readers of a source that leaves byte by byte have ended.
Time opening_of(const Execution& execution, const Readers& readers, const ProgramDrain& drain) {
  if (drain.open) return Time{};
  Time opened;
  for (const StepId step : readers.of(BufferId{drain.buffer}))
    if (index(step) != drain.copy) opened = std::max(opened, execution.end[index(step)]);
  return opened;
}

}  // namespace

Bytes MemoryPoint::total() const {
  Bytes sum;
  for (const Bytes bytes : alive) sum += bytes;
  return sum;
}

std::vector<Stay> stays_of(const Program& program, const Execution& execution) {
  return Stays(program, execution).run();
}

std::vector<MemorySeries> memory_series(const Program& program, const Execution& execution,
                                        const std::vector<Stay>& stays) {
  std::vector<Curve> curves(program.platform->memories.size());
  const Turns turns(program, execution);
  for (const Stay& stay : stays) curves[index(stay.memory)].add(stay, turns);
  if (!program.drains.empty()) {
    const Readers readers(*program.plan);
    for (const ProgramDrain& it : program.drains) {
      const Time start = execution.start[it.copy], end = execution.end[it.copy];
      if (start.is_unlimited() || end.is_unlimited()) continue;
      const BufferId buffer{it.buffer};
      const ProgramLane& lane = program.lanes[program.steps[it.copy].lane];
      const Time transfer = transfer_time(program.transferred(it.copy), lane.route.bandwidth);
      const Drain drain{.begin = end - transfer, .end = end, .bytes = program.bytes(buffer)};
      curves[program.memory(buffer)].add_drain(drain, program.tensor(buffer).tensor_class,
                                               opening_of(execution, readers, it));
    }
  }
  std::vector<MemorySeries> all;
  for (std::uint32_t m = 0; m < curves.size(); ++m)
    if (auto points = curves[m].run(); !points.empty())
      all.push_back({MemoryId{m}, std::move(points)});
  return all;
}

}  // namespace plimsoll
