#include "policy/offload/search/polish.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

using Kind = OffloadAction::Kind;

/// A sequence apart: the copies out in their order, and all else.
struct Parts {
  std::vector<std::uint32_t> outs;
  OffloadSequence rest;
};

Parts apart(const OffloadSequence& sequence) {
  Parts parts;
  for (const OffloadAction& it : sequence) {
    if (it.kind == Kind::out)
      parts.outs.push_back(it.stage);
    else
      parts.rest.push_back(it);
  }
  return parts;
}

/// Every copy out as early as its order allows.
OffloadSequence together(const Parts& parts) {
  OffloadSequence sequence;
  std::size_t next = 0;
  for (const OffloadAction& it : parts.rest) {
    sequence.push_back(it);
    if (it.kind != Kind::forward) continue;
    for (; next < parts.outs.size() && parts.outs[next] <= it.stage; ++next)
      sequence.push_back({Kind::out, parts.outs[next]});
  }
  return sequence;
}

/// Every copy back lies behind its copy out and the next forward, and before the backward there.
bool is_valid(const OffloadSequence& sequence, std::size_t stages) {
  std::vector<bool> away(stages, false);
  std::size_t forwards = 0;
  for (const auto [kind, s] : sequence) {
    if (kind == Kind::forward) ++forwards;
    if (kind == Kind::out) away[s] = true;
    if (kind == Kind::in) {
      if (!away[s] || forwards < s + 2) return false;
      away[s] = false;
    }
    if (kind == Kind::backward && (away[s] || (s > 0 && away[s - 1]))) return false;
  }
  return true;
}

class Polish {
 public:
  Polish(const OffloadModel& model, Timed& run, Time bound, std::size_t actions)
      : model_(model),
        run_(run),
        bound_(bound),
        actions_left_(actions),
        may_move_(everything(model)) {}

  void run() {
    while (!is_done() && (shift_a_copy_back() || swap_copies_out() || move_more_or_less()))
      ;
  }

 private:
  [[nodiscard]] bool is_done() const {
    return run_.makespan <= bound_ || actions_left_ < run_.sequence.size();
  }

  bool improves(const Parts& parts) {
    if (is_done()) return false;
    OffloadSequence sequence = together(parts);
    if (!is_valid(sequence, model_.stages.size())) return false;
    actions_left_ -= std::min(actions_left_, sequence.size());
    model_.work.add(sequence.size());
    const auto makespan = play(model_, sequence);
    if (!makespan || *makespan >= run_.makespan) return false;
    run_ = {std::move(sequence), *makespan};
    return true;
  }

  bool shift_a_copy_back() {
    const Parts parts = apart(run_.sequence);
    const auto places = static_cast<std::ptrdiff_t>(parts.rest.size());
    for (std::ptrdiff_t p = 0; p < places; ++p) {
      if (parts.rest[static_cast<std::size_t>(p)].kind != Kind::in) continue;
      for (const std::ptrdiff_t by : {-1, 1, -2, 2, -3, 3}) {
        if (p + by < 0 || p + by >= places) continue;
        Parts changed = parts;
        const auto at = changed.rest.begin() + p;
        if (by < 0)
          std::rotate(at + by, at, at + 1);
        else
          std::rotate(at, at + 1, at + by + 1);
        if (improves(changed)) return true;
        if (is_done()) return false;
      }
    }
    return false;
  }

  bool swap_copies_out() {
    const Parts parts = apart(run_.sequence);
    for (std::size_t i = 1; i < parts.outs.size() && !is_done(); ++i) {
      Parts changed = parts;
      std::swap(changed.outs[i - 1], changed.outs[i]);
      if (improves(changed)) return true;
    }
    return false;
  }

  bool move_more_or_less() {
    const Parts parts = apart(run_.sequence);
    for (std::uint32_t s = 0; s < model_.candidates && !is_done(); ++s) {
      if (!may_move_[s]) continue;
      const auto out = std::ranges::find(parts.outs, s);
      if (improves(out == parts.outs.end() ? with(parts, s) : without(parts, s))) return true;
    }
    return false;
  }

  static Parts without(Parts parts, std::uint32_t s) {
    std::erase(parts.outs, s);
    std::erase(parts.rest, OffloadAction{Kind::in, s});
    return parts;
  }

  /// Out in production order, back at the last moment but one.
  static Parts with(Parts parts, std::uint32_t s) {
    parts.outs.insert(std::ranges::find_if(parts.outs, [&](std::uint32_t o) { return o > s; }), s);
    const auto needed = std::ranges::find(parts.rest, OffloadAction{Kind::backward, s + 1});
    parts.rest.insert(needed, {Kind::in, s});
    return parts;
  }

  const OffloadModel& model_;
  Timed& run_;
  const Time bound_;
  std::size_t actions_left_;
  const OffloadSet may_move_;
};

}  // namespace

void polish(const OffloadModel& model, Timed& run, Time bound, std::size_t actions) {
  Polish(model, run, bound, actions).run();
}

}  // namespace plimsoll
