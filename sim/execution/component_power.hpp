/// Which components of a platform are at work while a program runs, and what they draw. Internal
/// to this floor.
#pragma once

#include "execution/power_meter.hpp"
#include "execution/run_state.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace plimsoll {

/// Does nothing on a platform that states no power and no energy.
template <bool kObserved>
class ComponentPower {
 public:
  explicit ComponentPower(RunState<kObserved>& run) : run_(run) {
    if (run.platform.has_energy()) meter_.emplace(meter_of(run.plan, run.platform));
    run.tell([&](Observer& it) { it.power_drawn(meter_ ? meter_->drawn() : Power{}, run_.now); });
  }

  /// At the start of a step on a stream.
  void begin_processor(std::uint32_t processor, std::uint32_t step) {
    begin(processor, drawn_by(processor, step));
  }
  /// At its end: its energy beyond idling is that of its processor.
  void end_processor(std::uint32_t processor, std::uint32_t step) {
    const auto above = meter_ ? run_.program.power_above_idle(step) : std::nullopt;
    if (above)
      run_.execution.processors[processor].energy_at_work +=
          *above * (run_.now - run_.execution.start[step]);
    end(processor, drawn_by(processor, step));
  }
  void begin_memory(std::uint32_t memory) { begin(memory_component(memory)); }
  void end_memory(std::uint32_t memory) { end(memory_component(memory)); }
  void begin_link(LinkId link) { begin(link_component(index(link))); }
  void end_link(LinkId link) { end(link_component(index(link))); }

  /// Before the clock moves on to `next`: what is drawn now is drawn for some time.
  void settle(Time next) {
    if (!meter_) return;
    meter_->settle(run_.now, next, [&](Time when) {
      run_.tell([&](Observer& it) { it.power_drawn(meter_->drawn(), when); });
    });
  }

  /// What the components did up to now.
  void write_to(Execution& execution) const {
    if (!meter_) return;
    for (std::size_t p = 0; p < run_.platform.processors.size(); ++p) {
      execution.processors[p].powered = meter_->busy(p, run_.now);
      execution.processors[p].slept = meter_->slept(p, run_.now);
    }
    for (std::size_t m = 0; m < run_.platform.memories.size(); ++m)
      execution.memories[m].busy = meter_->busy(memory_component(m), run_.now);
    execution.peak_power = meter_->peak();
  }

 private:
  /// Components of the meter: processors, then memories, then links. Those that mirrors do not play
  /// draw their extra power with the ones that are played.
  static PowerMeter meter_of(const Plan& plan, const Platform& platform) {
    std::vector<Power> extra;
    Power base;
    const auto add = [&](const std::optional<PowerStates>& power) {
      extra.push_back(power ? power->active - power->idle : Power{});
      if (power) base += power->idle;
    };
    for (const Processor& processor : platform.processors) {
      add(processor.power);
      if (processor.draws_by_operator()) extra.back() = Power{};
    }
    for (const Memory& memory : platform.memories) add(memory.power);
    for (const Link& link : platform.links) add(link.power);
    const auto place_of = [&](MemoryId memory) {
      return platform.processors.size() + index(memory);
    };
    for (const Mirror& mirror : plan.mirrors) {
      extra[index(mirror.like)] += extra[index(mirror.processor)];
      extra[place_of(platform[mirror.like].memory)] +=
          extra[place_of(platform[mirror.processor].memory)];
    }
    for (const MemoryMirror& mirror : plan.memory_mirrors)
      extra[place_of(mirror.like)] += extra[place_of(mirror.memory)];
    return {std::move(extra), base, sleeps_of(plan, platform)};
  }

  /// Of the processors that are played; each sleeps with those that mirror it.
  static std::vector<Sleep> sleeps_of(const Plan& plan, const Platform& platform) {
    std::vector<Sleep> sleeps;
    for (std::size_t p = 0; p < platform.processors.size(); ++p) {
      const auto& power = platform.processors[p].power;
      if (!power || !power->sleep_after) continue;
      const auto is_mirror = [&](const Mirror& it) { return index(it.processor) == p; };
      if (std::ranges::any_of(plan.mirrors, is_mirror)) continue;
      sleeps.push_back({p, *power->sleep_after, (power->idle - *power->sleep) * count_of(plan, p)});
    }
    return sleeps;
  }

  /// Processors that do as `processor` does.
  static std::int64_t count_of(const Plan& plan, std::size_t processor) {
    return 1 + std::ranges::count_if(plan.mirrors,
                                     [&](const Mirror& it) { return index(it.like) == processor; });
  }

  /// Of a step whose power is its own, together with what mirrors draw.
  [[nodiscard]] Power drawn_by(std::uint32_t processor, std::uint32_t step) const {
    if (!meter_) return Power{};
    const auto above = run_.program.power_above_idle(step);
    return above ? *above * count_of(run_.plan, processor) : Power{};
  }

  [[nodiscard]] std::size_t memory_component(std::size_t memory) const {
    return run_.platform.processors.size() + memory;
  }
  [[nodiscard]] std::size_t link_component(std::size_t link) const {
    return run_.platform.processors.size() + run_.platform.memories.size() + link;
  }

  void begin(std::size_t component, Power drawing = {}) {
    if (!meter_) return;
    const Power before = meter_->drawn();
    meter_->begin(component, run_.now);
    meter_->begin_drawing(drawing);
    tell_drawn(component, before);
  }
  void end(std::size_t component, Power drawing = {}) {
    if (!meter_) return;
    const Power before = meter_->drawn();
    meter_->end(component, run_.now);
    meter_->end_drawing(drawing);
    tell_drawn(component, before);
  }

  void tell_drawn(std::size_t component, Power before) {
    run_.tell([&](Observer& it) {
      if (meter_->draws_more_at_work(component) || meter_->drawn() != before)
        it.power_drawn(meter_->drawn(), run_.now);
    });
  }

  RunState<kObserved>& run_;
  std::optional<PowerMeter> meter_;
};

}  // namespace plimsoll
