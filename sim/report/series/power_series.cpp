#include "plan/core/mirror_problems.hpp"
#include "platform/core/regulator.hpp"
#include "report/series/series.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

constexpr Time kSecond{1'000'000'000'000};

/// An action begins, or ends and is charged.
struct ActionChange {
  Time time;
  Power more, less;  ///< drawn from now on
  Energy charge;
};

class DrawnCurve {
 public:
  DrawnCurve(const Program& program, const Recording& recording)
      : platform_(*program.platform), recording_(recording) {
    for (const ChargedEnergy& charge : recording.charges)
      add_action(charge, replicas_of(*program.plan));
    std::ranges::stable_sort(actions_, {}, &ActionChange::time);
  }

  std::vector<PowerPoint> run() {
    auto state = recording_.power.begin();
    auto action = actions_.begin();
    for (Time now;; now = next_time(state, action)) {
      used_ += drawn_ * (now - since_);
      since_ = now;
      for (; state != recording_.power.end() && state->time == now; ++state) drawn_ = state->power;
      for (; action != actions_.end() && action->time == now; ++action) apply(*action);
      keep(now);
      if (now >= recording_.end) return std::move(points_);
    }
  }

 private:
  /// What a step is charged is spread evenly over it.
  void add_action(const ChargedEnergy& charge, std::int64_t replicas) {
    const Energy energy{charge.energy.count() * replicas};
    const Time length = charge.end - charge.start;
    const Power power = length == Time{}
                            ? Power{}
                            : Power{static_cast<std::int64_t>(energy.count() / length.count())};
    actions_.push_back({.time = charge.start, .more = power});
    actions_.push_back({.time = charge.end, .less = power, .charge = energy});
  }

  [[nodiscard]] Time next_time(auto state, auto action) const {
    Time next = recording_.end;
    if (state != recording_.power.end()) next = std::min(next, state->time);
    if (action != actions_.end()) next = std::min(next, action->time);
    return next;
  }

  void apply(const ActionChange& change) {
    acting_ += change.more;
    acting_ -= change.less;
    used_ += change.charge;
  }

  void keep(Time now) {
    const Energy in_a_second = at_source(platform_, (drawn_ + acting_) * kSecond);
    points_.push_back({now, Power{static_cast<std::int64_t>(in_a_second.count() / kSecond.count())},
                       at_source(platform_, used_)});
  }

  const Platform& platform_;
  const Recording& recording_;
  std::vector<ActionChange> actions_;
  Power drawn_, acting_;  ///< by states; by actions
  Energy used_;
  Time since_;
  std::vector<PowerPoint> points_;
};

}  // namespace

std::vector<PowerPoint> power_series(const Program& program, const Recording& recording) {
  if (program.operator_energy.empty()) return {};
  return DrawnCurve(program, recording).run();
}

}  // namespace plimsoll
