/// Which components are at work, for how long, and what they draw together.
#pragma once

#include "base/quantity.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace plimsoll {

/// How a component sleeps while it is not at work.
struct Sleep {
  std::size_t component = 0;
  Time after;   ///< of being idle
  Power saved;  ///< against idle
};

/// Components may be at work for several reasons at once; they draw their active power once. What a
/// reason draws by itself (`begin_drawing`) adds up.
class PowerMeter {
 public:
  /// `extra` = active - idle power of each component (zero where unknown); `base` all idle powers.
  /// Each component sleeps in one way at most.
  PowerMeter(std::vector<Power> extra, Power base, std::vector<Sleep> sleeps)
      : components_(extra.size()), now_drawn_(base) {
    for (std::size_t i = 0; i < extra.size(); ++i) components_[i].extra = extra[i];
    for (const Sleep& sleep : sleeps) sleepers_.push_back({sleep, {}, false, {}});
  }

  void begin(std::size_t component, Time now) {
    Component& it = components_[component];
    if (it.reasons++ > 0) return;
    wake(component, now);
    it.since = now;
    now_drawn_ += it.extra;
  }
  void end(std::size_t component, Time now) {
    Component& it = components_[component];
    if (--it.reasons > 0) return;
    it.busy += now - it.since;
    now_drawn_ -= it.extra;
    for (Sleeper& sleeper : sleepers_)
      if (sleeper.sleep.component == component) sleeper.idle_since = now;
  }
  /// More that one of the reasons draws.
  void begin_drawing(Power power) { now_drawn_ += power; }
  void end_drawing(Power power) { now_drawn_ -= power; }

  /// Before the clock moves on to `next`: what is drawn now is drawn for some time. Calls
  /// `fell_asleep(when)` after each component that sleeps from then on.
  template <class FellAsleep>
  void settle(Time now, Time next, const FellAsleep& fell_asleep) {
    fall_asleep(now + Time{1}, fell_asleep);
    peak_ = std::max(peak_, now_drawn_);
    fall_asleep(next, fell_asleep);
  }

  [[nodiscard]] Time busy(std::size_t component, Time now) const {
    const Component& it = components_[component];
    return it.reasons > 0 ? it.busy + (now - it.since) : it.busy;
  }
  /// Of a component, up to now.
  [[nodiscard]] Time slept(std::size_t component, Time now) const {
    for (const Sleeper& it : sleepers_)
      if (it.sleep.component == component)
        return it.asleep ? it.slept + (now - (it.idle_since + it.sleep.after)) : it.slept;
    return Time{};
  }
  [[nodiscard]] Power peak() const { return peak_; }
  [[nodiscard]] Power drawn() const { return now_drawn_; }
  /// Whether it draws more at work than idle.
  [[nodiscard]] bool draws_more_at_work(std::size_t component) const {
    return components_[component].extra != Power{};
  }

 private:
  struct Component {
    Power extra;
    Time busy, since;
    std::uint32_t reasons = 0;
  };
  struct Sleeper {
    Sleep sleep;
    Time idle_since;
    bool asleep = false;
    Time slept;
  };

  void wake(std::size_t component, Time now) {
    for (Sleeper& it : sleepers_) {
      if (it.sleep.component != component || !it.asleep) continue;
      it.slept += now - (it.idle_since + it.sleep.after);
      it.asleep = false;
      now_drawn_ += it.sleep.saved;
    }
  }

  /// Those that do before `limit`, in the order of time.
  template <class FellAsleep>
  void fall_asleep(Time limit, const FellAsleep& fell_asleep) {
    for (;;) {
      Sleeper* first = nullptr;
      Time when = limit;
      for (Sleeper& it : sleepers_) {
        if (it.asleep || components_[it.sleep.component].reasons > 0) continue;
        const Time sleeps = it.idle_since + it.sleep.after;
        if (sleeps >= when) continue;
        first = &it;
        when = sleeps;
      }
      if (first == nullptr) return;
      first->asleep = true;
      now_drawn_ -= first->sleep.saved;
      fell_asleep(when);
    }
  }

  std::vector<Component> components_;
  std::vector<Sleeper> sleepers_;
  Power now_drawn_, peak_;
};

}  // namespace plimsoll
