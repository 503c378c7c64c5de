#include "policy/pipeline/periodic/next_fit.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// Of Work, for a run of stages whose lifetime and memory are looked at.
constexpr std::size_t kStepsARun = 32;

/// The least lifetime not below `least` in which two parts of `load` in all, one at each end, stay
/// clear of those of other periods.
Time clear_of_itself(Time least, Time load, Time period) {
  const Time full = period * (periods_of(least, period) - 1);
  return least - full >= load ? least : full + load;
}

}  // namespace

NextFit::NextFit(const PeriodicCosts& costs, const std::vector<Bytes>& limits,
                 std::vector<std::size_t> cuts)
    : costs_(costs), limits_(limits), cuts_(std::move(cuts)) {}

std::optional<NextFit::Lifetimes> NextFit::lifetimes(const Run& run, Time behind,
                                                     Time period) const {
  const Time load =
      costs_.forward(run.slot, run.begin, run.end) + costs_.backward(run.slot, run.begin, run.end);
  if (load > period || costs_.load(run.slot, run.begin, run.end) > period) return std::nullopt;
  Lifetimes it;
  it.slot = it.with_cut = clear_of_itself(behind + load, load, period);
  if (run.slot == 0) return it;
  const PeriodicCosts::Cut cut = costs_.cut(run.slot, run.begin);
  if (cut.load() > period) return std::nullopt;
  it.with_cut += cut.value + cut.gradient;
  if (cut.one_at_a_time) it.with_cut = clear_of_itself(it.with_cut, cut.load(), period);
  return it;
}

Bytes NextFit::memory(const Run& run, const Lifetimes& lifetimes, Time period) const {
  const Time backward = costs_.backward(run.slot, run.begin, run.end);
  KeptTimes times{.backward = backward};
  KeptCounts kept;
  kept.in_flight = kept.saved = periods_of(lifetimes.slot, period);
  if (run.slot > 0) {
    const PeriodicCosts::Cut cut = costs_.cut(run.slot, run.begin);
    kept.received = periods_of(lifetimes.with_cut - cut.gradient, period);
    kept.sent_gradients = periods_of(backward + cut.gradient, period);
    times.arrived = cut.one_at_a_time ? cut.value + cut.load() : cut.value;
  }
  if (run.slot + 1 < costs_.slots()) {
    kept.received_gradients =
        periods_of(costs_.cut(run.slot + 1, run.end).gradient + backward, period);
    // A forward ends a pause before its value leaves, of up to forward and backward: which of them
    // does not fall as the period grows, so the longest counts.
    const Time forward = costs_.forward(run.slot, run.begin, run.end);
    const Time value = costs_.cut(run.slot + 1, run.end).value;
    times.sent = forward + value + forward + backward;
    kept.sent_values = periods_of(times.sent, period);
  }
  if (const auto copies = costs_.moved().copies(run.slot, run.begin, run.end))
    kept = without_moved(kept, *copies, times, period);
  return costs_.memory(run.slot, run.begin, run.end, kept, passing(run));
}

Bytes NextFit::passing(const Run& run) const {
  return run.passing + costs_.recomputed(run.slot, run.begin, run.end);
}

std::optional<Time> NextFit::reach(const Run& run, Time behind, Time period, Bytes cap) const {
  const auto found = lifetimes(run, behind, period);
  if (!found) return std::nullopt;
  if (!cap.is_unlimited() && memory(run, *found, period) > cap) return std::nullopt;
  return found->with_cut;
}

NextFit::Run NextFit::run_of(const std::vector<std::size_t>& cuts, std::size_t slot) const {
  Run run{slot, cuts[slot], cuts[slot + 1], Bytes{}};
  for (std::size_t s = run.begin; s < run.end; ++s)
    run.passing = std::max(run.passing, costs_.passing(s));
  return run;
}

std::optional<std::vector<std::size_t>> NextFit::cuts_for(Time period, Bytes cap) const {
  if (cuts_.empty()) return free_cuts_for(period, cap);
  costs_.work().add(costs_.stages() + kStepsARun * costs_.slots());
  Time behind;
  for (std::size_t slot = costs_.slots(); slot-- > 0;) {
    const auto found = reach(run_of(cuts_, slot), behind, period, std::min(cap, limits_[slot]));
    if (!found) return std::nullopt;
    behind = *found;
  }
  return cuts_;
}

std::optional<std::vector<std::size_t>> NextFit::free_cuts_for(Time period, Bytes cap) const {
  const std::size_t slots = costs_.slots(), stages = costs_.stages();
  // By slot and its first stage: the least lifetime with the cut before it, and where it ends.
  std::vector<std::vector<Time>> least(slots + 1, std::vector<Time>(stages + 1, Time::unlimited()));
  std::vector<std::vector<std::size_t>> ends(slots, std::vector<std::size_t>(stages));
  least[slots][stages] = Time{};
  for (std::size_t slot = slots; slot-- > 0;)
    for (std::size_t begin = slot; begin < (slot == 0 ? 1 : stages); ++begin) {
      Run run{slot, begin, begin, Bytes{}};
      for (std::size_t end = begin + 1; end <= stages; ++end) {
        run.end = end;
        if (costs_.forward(slot, begin, end) + costs_.backward(slot, begin, end) > period) break;
        run.passing = std::max(run.passing, costs_.passing(end - 1));
        const Time behind = least[slot + 1][end];
        if (behind.is_unlimited()) continue;
        const auto found = reach(run, behind, period, std::min(cap, limits_[slot]));
        if (!found || *found >= least[slot][begin]) continue;
        least[slot][begin] = *found;
        ends[slot][begin] = end;
      }
      costs_.work().add(kStepsARun * (run.end - begin));
    }
  if (least[0][0].is_unlimited()) return std::nullopt;
  std::vector<std::size_t> cuts{0};
  for (std::size_t slot = 0; slot < slots; ++slot) cuts.push_back(ends[slot][cuts.back()]);
  return cuts;
}

std::optional<Time> NextFit::least_period() const {
  Time high = costs_.whole();
  if (!cuts_for(high)) return std::nullopt;
  Time low{1};
  while (low < high) {
    const Time middle{low.count() + (high.count() - low.count()) / 2};
    if (cuts_for(middle))
      high = middle;
    else
      low = middle + Time{1};
  }
  return low;
}

std::optional<Bytes> NextFit::least_cap(Time period) const {
  const std::vector<Bytes> none(costs_.slots(), Bytes::unlimited());
  const NextFit unlimited(costs_, none, cuts_);
  const auto cuts = unlimited.cuts_for(period);
  if (!cuts) return std::nullopt;
  Bytes low, high = std::ranges::max(unlimited.memories(*cuts, period));
  while (low < high) {
    const Bytes middle{low.count() + (high.count() - low.count()) / 2};
    if (unlimited.cuts_for(period, middle))
      high = middle;
    else
      low = middle + Bytes{1};
  }
  return low;
}

std::vector<Bytes> NextFit::memories(const std::vector<std::size_t>& cuts, Time period) const {
  std::vector<Bytes> memories(costs_.slots());
  Time behind;
  for (std::size_t slot = costs_.slots(); slot-- > 0;) {
    const Run run = run_of(cuts, slot);
    const Lifetimes found = *lifetimes(run, behind, period);
    memories[slot] = memory(run, found, period);
    behind = found.with_cut;
  }
  return memories;
}

PeriodicPattern NextFit::pattern(const std::vector<std::size_t>& cuts, Time period) const {
  const std::size_t slots = costs_.slots();
  PeriodicPattern pattern{period, std::vector<PeriodicPattern::Busy>(slots), {}, {}, {}};
  pattern.backward = pattern.forward;
  pattern.cuts.resize(slots - 1);
  // Backwards and gradients follow each other without a pause; forwards are early enough.
  Time behind, now;
  for (std::size_t slot = slots; slot-- > 0;) {
    const Run run = run_of(cuts, slot);
    const Lifetimes found = *lifetimes(run, behind, period);
    behind = found.with_cut;
    now += costs_.backward(slot, run.begin, run.end);
    pattern.backward[slot] = {now - costs_.backward(slot, run.begin, run.end), now};
    const Time start = now - found.slot;
    pattern.forward[slot] = {start, start + costs_.forward(slot, run.begin, run.end)};
    if (slot == 0) break;
    const PeriodicCosts::Cut cut = costs_.cut(slot, run.begin);
    now += cut.gradient;
    const Time sent = now - found.with_cut;
    pattern.cuts[slot - 1] = {{sent, sent + cut.value},
                              {now - cut.gradient, now},
                              costs_.turns(slot, true),
                              costs_.turns(slot, false)};
  }
  add_moves(pattern, costs_, cuts);
  return pattern;
}

}  // namespace plimsoll
