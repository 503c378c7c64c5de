/// Which components are at work, for how long, and what they draw together.
#pragma once

#include "base/quantity.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace plimsoll {

/// Components may be at work for several reasons at once; they draw their active power once.
class PowerMeter {
 public:
  /// `extra` = active - idle power of each component (zero where unknown); `base` all idle powers.
  PowerMeter(std::vector<Power> extra, Power base) : components_(extra.size()), now_drawn_(base) {
    for (std::size_t i = 0; i < extra.size(); ++i) components_[i].extra = extra[i];
  }

  void begin(std::size_t component, Time now) {
    Component& it = components_[component];
    if (it.reasons++ > 0) return;
    it.since = now;
    now_drawn_ += it.extra;
  }
  void end(std::size_t component, Time now) {
    Component& it = components_[component];
    if (--it.reasons > 0) return;
    it.busy += now - it.since;
    now_drawn_ -= it.extra;
  }
  /// Before the clock moves on: what is drawn now is drawn for some time.
  void settle() { peak_ = std::max(peak_, now_drawn_); }

  [[nodiscard]] Time busy(std::size_t component, Time now) const {
    const Component& it = components_[component];
    return it.reasons > 0 ? it.busy + (now - it.since) : it.busy;
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
  std::vector<Component> components_;
  Power now_drawn_, peak_;
};

}  // namespace plimsoll
