#include "plan/core/mirror_problems.hpp"
#include "report/series/series.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

constexpr Time kSecond{1'000'000'000'000};

/// A component begins or ends to be at work, or an action draws more or less.
struct PowerChange {
  Time time;
  std::uint32_t component = kNone;  ///< or kNone: an action
  int sign = 1;
  Power power;    ///< of the action
  Energy charge;  ///< at the end of an action
};

/// A component draws its active power while it has at least one reason to work.
struct Component {
  Power extra;  ///< active - idle
  std::uint32_t reasons = 0;
};

class PowerCurve {
 public:
  PowerCurve(const Program& program, const Execution& execution)
      : program_(program), platform_(*program.platform), execution_(execution) {
    const auto add = [&](const std::optional<PowerStates>& power) {
      components_.push_back({power ? power->active - power->idle : Power{}});
      if (power) drawn_ += power->idle;
    };
    for (const Processor& processor : platform_.processors) add(processor.power);
    for (const Memory& memory : platform_.memories) add(memory.power);
    for (const Link& link : platform_.links) add(link.power);
    for (const Mirror& mirror : program_.plan->mirrors) {
      const MemoryId memory = platform_[mirror.processor].memory;
      extra(index(mirror.like)) += extra(index(mirror.processor));
      extra(memory_component(platform_[mirror.like].memory)) += extra(memory_component(memory));
    }
  }

  std::vector<PowerPoint> run() {
    for (std::uint32_t s = 0; s < program_.plan->steps.size(); ++s) {
      if (execution_.start[s].is_unlimited()) continue;
      if (is_move(program_.steps[s].kind))
        add_copy(s);
      else
        add_operator(s);
    }
    std::ranges::stable_sort(changes_, {}, &PowerChange::time);
    Time now;
    std::size_t c = 0;
    do {
      now = c < changes_.size() ? changes_[c].time : execution_.makespan;
      advance(now);
      for (; c < changes_.size() && changes_[c].time == now; ++c) apply(changes_[c]);
      keep(now);
    } while (c < changes_.size() || now < execution_.makespan);
    return std::move(points_);
  }

 private:
  [[nodiscard]] std::size_t memory_component(MemoryId memory) const {
    return platform_.processors.size() + index(memory);
  }
  [[nodiscard]] std::size_t link_component(LinkId link) const {
    return platform_.processors.size() + platform_.memories.size() + index(link);
  }

  /// Up to its end, or to that of a run that ended before.
  [[nodiscard]] Time end(std::uint32_t s) const {
    return std::min(execution_.end[s], execution_.makespan);
  }

  Power& extra(std::size_t component) { return components_[component].extra; }

  void work(std::size_t component, Time from, Time to) {
    if (components_[component].extra == Power{} || from >= to) return;
    const auto id = static_cast<std::uint32_t>(component);
    changes_.push_back({.time = from, .component = id, .sign = 1});
    changes_.push_back({.time = to, .component = id, .sign = -1});
  }

  /// `energy` is charged to an action of a step that ended, in every replica.
  void act(std::uint32_t s, Energy energy) {
    if (energy == Energy{} || execution_.end[s].is_unlimited()) return;
    energy = Energy{energy.count() * replicas_of(*program_.plan)};
    const Time length = end(s) - execution_.start[s];
    const Power power = length == Time{}
                            ? Power{}
                            : Power{static_cast<std::int64_t>(energy.count() / length.count())};
    changes_.push_back({.time = execution_.start[s], .sign = 1, .power = power});
    changes_.push_back({.time = end(s), .sign = -1, .power = power, .charge = energy});
  }

  void add_operator(std::uint32_t s) {
    const ProgramLane& lane = program_.lanes[program_.steps[s].lane];
    work(lane.processor, execution_.start[s], end(s));
    work(memory_component(MemoryId{lane.memory}), execution_.start[s], end(s));
    act(s, program_.energy(s));
  }

  void add_copy(std::uint32_t s) {
    const ProgramLane& lane = program_.lanes[program_.steps[s].lane];
    const Time start = execution_.start[s];
    for (const MemoryId memory : {lane.from, lane.written})
      work(memory_component(memory), start, end(s));
    // A fair link carries nothing while the latency elapses.
    const Time carries = lane.route.is_fair ? start + program_.steps[s].duration : start;
    for (const Hop& hop : lane.hops) work(link_component(hop.link), carries, end(s));

    const Bytes moved = program_.transferred(s);
    Energy energy;
    if (const auto cost = platform_[lane.from].read.energy) energy += *cost * moved;
    if (const auto cost = platform_[lane.written].write.energy) energy += *cost * moved;
    for (const Hop& hop : lane.hops)
      if (const auto cost = platform_[hop.link].energy) energy += *cost * moved;
    act(s, energy);
  }

  void advance(Time now) {
    used_ += drawn_ * (now - since_);
    since_ = now;
  }

  void apply(const PowerChange& change) {
    if (change.component == kNone) {
      acting_ += change.sign > 0 ? change.power : Power{} - change.power;
      used_ += change.charge;
      return;
    }
    Component& it = components_[change.component];
    const bool was_working = it.reasons > 0;
    it.reasons = change.sign > 0 ? it.reasons + 1 : it.reasons - 1;
    if (was_working == (it.reasons > 0)) return;
    drawn_ += was_working ? Power{} - it.extra : it.extra;
  }

  void keep(Time now) {
    const Energy in_a_second = with_losses((drawn_ + acting_) * kSecond);
    points_.push_back({now, Power{static_cast<std::int64_t>(in_a_second.count() / kSecond.count())},
                       with_losses(used_)});
  }

  /// What the source gives for a load, as the metrics charge it.
  [[nodiscard]] Energy with_losses(Energy load) const {
    const Ratio efficiency = platform_.regulator_efficiency;
    if (efficiency == kWhole) return load;
    return load + Energy{load.count() / efficiency.count() * (kWhole - efficiency).count()};
  }

  const Program& program_;
  const Platform& platform_;
  const Execution& execution_;
  std::vector<Component> components_;
  std::vector<PowerChange> changes_;
  Power drawn_, acting_;  ///< by states; by actions
  Energy used_;
  Time since_;
  std::vector<PowerPoint> points_;
};

}  // namespace

std::vector<PowerPoint> power_series(const Program& program, const Execution& execution) {
  if (program.operator_energy.empty()) return {};
  return PowerCurve(program, execution).run();
}

}  // namespace plimsoll
