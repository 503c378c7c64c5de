/// Which components of a platform are at work while a program runs, and what they draw. Internal
/// to this floor.
#pragma once

#include "execution/power_meter.hpp"
#include "execution/run_state.hpp"

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

  void begin_processor(std::uint32_t processor) { begin(processor); }
  void end_processor(std::uint32_t processor) { end(processor); }
  void begin_memory(std::uint32_t memory) { begin(memory_component(memory)); }
  void end_memory(std::uint32_t memory) { end(memory_component(memory)); }
  void begin_link(LinkId link) { begin(link_component(index(link))); }
  void end_link(LinkId link) { end(link_component(index(link))); }

  /// Before the clock moves on: what is drawn now is drawn for some time.
  void settle() {
    if (meter_) meter_->settle();
  }

  /// What the components did up to now.
  void write_to(Execution& execution) const {
    if (!meter_) return;
    for (std::size_t p = 0; p < run_.platform.processors.size(); ++p)
      execution.processors[p].powered = meter_->busy(p, run_.now);
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
    for (const Processor& processor : platform.processors) add(processor.power);
    for (const Memory& memory : platform.memories) add(memory.power);
    for (const Link& link : platform.links) add(link.power);
    const auto memory_of = [&](ProcessorId processor) {
      return platform.processors.size() + index(platform[processor].memory);
    };
    for (const Mirror& mirror : plan.mirrors) {
      extra[index(mirror.like)] += extra[index(mirror.processor)];
      extra[memory_of(mirror.like)] += extra[memory_of(mirror.processor)];
    }
    return {std::move(extra), base};
  }

  [[nodiscard]] std::size_t memory_component(std::size_t memory) const {
    return run_.platform.processors.size() + memory;
  }
  [[nodiscard]] std::size_t link_component(std::size_t link) const {
    return run_.platform.processors.size() + run_.platform.memories.size() + link;
  }

  void begin(std::size_t component) {
    if (!meter_) return;
    meter_->begin(component, run_.now);
    tell_drawn(component);
  }
  void end(std::size_t component) {
    if (!meter_) return;
    meter_->end(component, run_.now);
    tell_drawn(component);
  }

  void tell_drawn(std::size_t component) {
    run_.tell([&](Observer& it) {
      if (meter_->draws_more_at_work(component)) it.power_drawn(meter_->drawn(), run_.now);
    });
  }

  RunState<kObserved>& run_;
  std::optional<PowerMeter> meter_;
};

}  // namespace plimsoll
