#include "policy/pipeline/periodic/periodic_allocation.hpp"

#include <algorithm>
#include <limits>

namespace plimsoll {

namespace {

constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();

}  // namespace

PeriodicAllocation::PeriodicAllocation(const PeriodicCosts& costs, std::vector<std::size_t> cuts,
                                       std::vector<std::uint32_t> placement,
                                       const std::vector<Bytes>& limits)
    : costs_(costs),
      cuts_(std::move(cuts)),
      placement_(std::move(placement)),
      at_home_(placement_.size()),
      messages_(placement_.size()) {
  tasks_.work = costs.work();
  add_lasts();
  find_moved();
  keep_apart();
  for (std::size_t slot = 0; slot < slots(); ++slot) count_messages(slot);
  for (std::size_t slot = 0; slot < slots(); ++slot) add_room(slot, limits[placement_[slot]]);
}

void PeriodicAllocation::add_lasts() {
  tasks_.lasts.resize(4 * slots() - 2);
  turns_.resize(tasks_.lasts.size());
  const auto links_from = *std::ranges::max_element(placement_) + 1;
  const auto of_links = [&](std::vector<std::uint32_t> turns) {
    for (std::uint32_t& turn : turns) turn += links_from;
    return turns;
  };
  for (std::size_t slot = 0; slot < slots(); ++slot) {
    tasks_.lasts[forward(slot)] = costs_.forward(slot, cuts_[slot], cuts_[slot + 1]);
    tasks_.lasts[backward(slot)] = costs_.backward(slot, cuts_[slot], cuts_[slot + 1]);
    turns_[forward(slot)] = turns_[backward(slot)] = {placement_[slot]};
    if (slot == 0) continue;
    const PeriodicCosts::Cut cut = costs_.cut(slot, cuts_[slot]);
    tasks_.lasts[value(slot - 1)] = cut.value;
    tasks_.lasts[gradient(slot - 1)] = cut.gradient;
    turns_[value(slot - 1)] = of_links(costs_.turns(slot, true));
    turns_[gradient(slot - 1)] = of_links(costs_.turns(slot, false));
  }
}

/// In periods of the least length, in which most is there; a pause is shorter than a period.
void PeriodicAllocation::find_moved() {
  const Time period = shortest();
  Time behind;
  for (std::size_t slot = slots(); slot-- > 0;) {
    behind += tasks_.lasts[forward(slot)] + tasks_.lasts[backward(slot)];
    if (const auto copies = costs_.moved().copies(slot, cuts_[slot], cuts_[slot + 1])) {
      const KeptTimes times{
          .arrived = slot > 0 ? tasks_.lasts[value(slot - 1)] + period : Time{},
          .sent = tasks_.lasts[forward(slot)] + period + tasks_.lasts[value(slot)],
          .backward = tasks_.lasts[backward(slot)]};
      const KeptCounts kept =
          without_moved({.saved = kAny, .received = kAny}, *copies, times, period);
      if (kept.saved <= periods_of(behind, period)) at_home_[slot] = kept;
    }
    if (slot > 0) behind += tasks_.lasts[value(slot - 1)] + tasks_.lasts[gradient(slot - 1)];
  }
}

void PeriodicAllocation::keep_apart() {
  for (std::uint32_t a = 0; a < turns_.size(); ++a)
    for (std::uint32_t b = a + 1; b < turns_.size(); ++b) {
      if (std::ranges::find_first_of(turns_[a], turns_[b]) == turns_[a].end()) continue;
      pairs_.emplace(std::pair(a, b), static_cast<std::uint32_t>(tasks_.apart.size()));
      tasks_.apart.push_back({a, b});
    }
}

Bytes PeriodicAllocation::bytes(std::size_t slot, const KeptCounts& kept) const {
  return costs_.memory(slot, cuts_[slot], cuts_[slot + 1], kept, Bytes{});
}

std::uint32_t PeriodicAllocation::count(std::uint32_t first, std::uint32_t second) const {
  return pairs_.at({first, second});
}

void PeriodicAllocation::count_messages(std::size_t slot) {
  const Bytes none = bytes(slot, {});
  const auto add = [&](const KeptCounts& one, std::uint32_t from, std::uint32_t to) {
    const Bytes each = bytes(slot, one) - none;
    if (each == Bytes{}) return;
    const auto index = static_cast<std::uint32_t>(tasks_.counts());
    tasks_.spans.push_back({from, to});
    messages_[slot].push_back({each, 0, {index}, {}});
  };
  if (slot > 0) {
    if (!at_home_[slot]) add({.received = 1}, value(slot - 1), backward(slot));
    add({.sent_gradients = 1}, backward(slot), gradient(slot - 1));
  }
  if (slot + 1 == slots()) return;
  add({.received_gradients = 1}, gradient(slot), backward(slot));
  add({.sent_values = 1}, forward(slot), value(slot));
}

ModularTasks::Kept PeriodicAllocation::alive(std::size_t slot, std::size_t at) const {
  const KeptCounts one{.in_flight = 1, .saved = at_home_[slot] ? 0 : 1};
  ModularTasks::Kept kept{bytes(slot, one) - bytes(slot, {}), 0, {}, {}};
  kept.plus.push_back(count(forward(at), backward(slot)));
  // One that starts now counts; of an earlier slot, one more has started than periods are between.
  if (slot <= at) kept.alive = 1;
  if (slot < at) kept.plus.push_back(count(forward(slot), forward(at)));
  if (slot > at) kept.minus.push_back(count(forward(at), forward(slot)));
  return kept;
}

void PeriodicAllocation::add_room(std::size_t at, Bytes limit) {
  ModularTasks::Room room{limit, {}, {}};
  Bytes passing;
  for (std::size_t slot = 0; slot < slots(); ++slot) {
    if (placement_[slot] != placement_[at]) continue;
    room.fixed += bytes(slot, at_home_[slot].value_or(KeptCounts{}));
    const Bytes again = costs_.recomputed(slot, cuts_[slot], cuts_[slot + 1]);
    for (std::size_t s = cuts_[slot]; s < cuts_[slot + 1]; ++s)
      passing = std::max(passing, costs_.passing(s) + again);
    room.kept.push_back(alive(slot, at));
    room.kept.insert(room.kept.end(), messages_[slot].begin(), messages_[slot].end());
  }
  room.fixed += passing;
  tasks_.rooms.push_back(std::move(room));
}

Time PeriodicAllocation::bound() const {
  std::map<std::uint32_t, Time> busy;
  for (std::size_t task = 0; task < turns_.size(); ++task)
    for (const std::uint32_t turn : turns_[task]) busy[turn] += tasks_.lasts[task];
  Time greatest;
  for (const auto& [turn, time] : busy) greatest = std::max(greatest, time);
  std::map<std::uint32_t, Time> loads;
  for (std::size_t slot = 0; slot < slots(); ++slot)
    greatest = std::max(greatest,
                        loads[placement_[slot]] += costs_.load(slot, cuts_[slot], cuts_[slot + 1]));
  return greatest;
}

Time PeriodicAllocation::shortest() const {
  std::map<std::uint32_t, Time> busy;
  for (std::size_t slot = 0; slot < slots(); ++slot) {
    const auto copies = costs_.moved().copies(slot, cuts_[slot], cuts_[slot + 1]);
    if (!copies) continue;
    for (const std::uint32_t turn : costs_.moved().turns(slot, true)) busy[turn] += copies->out;
    for (const std::uint32_t turn : costs_.moved().turns(slot, false)) busy[turn] += copies->back;
  }
  Time greatest = bound();
  for (const auto& [turn, time] : busy) greatest = std::max(greatest, time);
  return greatest;
}

bool PeriodicAllocation::is_memory_exact() const {
  for (std::size_t slot = 0; slot < slots(); ++slot)
    if (!costs_.is_memory_exact(slot, cuts_[slot], cuts_[slot + 1])) return false;
  return true;
}

std::vector<Bytes> PeriodicAllocation::counted(const PeriodCounts& counts) const {
  std::vector<Bytes> by_device(std::size_t{*std::ranges::max_element(placement_)} + 1);
  for (std::size_t slot = 0; slot < slots(); ++slot) {
    Bytes& its = by_device[placement_[slot]];
    its = std::max(its, bytes_in(tasks_.rooms[slot], counts));
  }
  return by_device;
}

PeriodicPattern PeriodicAllocation::pattern(const PeriodCounts& counts, Time period) const {
  const std::vector<Time> starts = *earliest_starts(tasks_, counts, period);
  const auto busy = [&](std::uint32_t task) {
    return PeriodicPattern::Busy{starts[task], starts[task] + tasks_.lasts[task]};
  };
  PeriodicPattern pattern{period, {}, {}, {}, {}};
  for (std::size_t slot = 0; slot < slots(); ++slot) {
    pattern.forward.push_back(busy(forward(slot)));
    pattern.backward.push_back(busy(backward(slot)));
    if (slot + 1 == slots()) break;
    pattern.cuts.push_back({busy(value(slot)), busy(gradient(slot)), costs_.turns(slot + 1, true),
                            costs_.turns(slot + 1, false)});
  }
  add_moves(pattern, costs_, cuts_);
  return pattern;
}

}  // namespace plimsoll
