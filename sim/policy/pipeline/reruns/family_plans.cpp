#include "policy/pipeline/reruns/family_plans.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace plimsoll {

namespace {

/// The grid divides what a device needs without reruns into so many parts.
constexpr std::int64_t kPlaces = 128;
/// Rooms of the grid that are planned well: so many from the largest within a budget downwards, and
/// so many of those below that are anchors.
constexpr std::int64_t kWindow = 2, kAnchors = 3;
/// Every so many rooms of the grid are tried for the leanest plan.
constexpr std::int64_t kLean = 4;
/// Shares of what slots keep are counted in so many parts. At every kRoot-th room of the grid these
/// are tried, and then neighbours of the best, ever nearer ones; at anchors, every kAnchor-th,
/// neighbours of what is best at the root above; at others nearer ones of what is best at the anchor
/// above.
constexpr std::int64_t kParts = 256, kRoot = 8, kAnchor = 2;
constexpr std::int64_t kShares[] = {4, 8, 16, 32, 64, 96, 128, 176, 224, 256};
constexpr std::int64_t kSteps[] = {16, 5, 2}, kNear = 5;

std::int64_t rounded_up(std::int64_t place, std::int64_t step) {
  return (place + step - 1) / step * step;
}

/// whole * parts / all, without overflow.
std::int64_t share_of(std::int64_t whole, std::int64_t parts, std::int64_t all) {
  return whole / all * parts + whole % all * parts / all;
}

}  // namespace

bool FamilyPlan::fits(std::span<const std::int64_t> room) const {
  for (std::size_t i = 0; i < counted.size(); ++i)
    if (counted[i] > room[i]) return false;
  return true;
}

FamilyPlans::FamilyPlans(const DeviceFamily& family, const Slots& slots, const Loads& loads,
                         const Workload& workload)
    : family_(family), slots_(slots), loads_(loads) {
  add_rules(workload);
}

void FamilyPlans::add_rules(const Workload& workload) {
  std::vector<SlotPlan> plain, full, selective;
  bool is_any = false;
  for (const std::uint32_t slot : family_.slots) {
    plain.push_back(slots_[slot]->plain());
    full.push_back(slots_[slot]->full().value_or(plain.back()));
    const auto cores = slots_[slot]->selective(workload);
    is_any = is_any || cores;
    selective.push_back(cores.value_or(plain.back()));
  }
  rules_.push_back(counted(std::move(plain)));
  if (!slots_[family_.slots.front()]->may_run_again()) return;
  rules_.push_back(counted(std::move(full)));
  if (is_any) rules_.push_back(counted(std::move(selective)));
}

const FamilyPlan* FamilyPlans::best(std::span<const std::int64_t> room) {
  const FamilyPlan* best = nullptr;
  const auto attempt = [&](const FamilyPlan& plan) {
    if (!plan.fits(room)) return;
    if (best == nullptr || std::tie(plan.time, plan.counted) < std::tie(best->time, best->counted))
      best = &plan;
  };
  for (const FamilyPlan& rule : rules_) attempt(rule);
  const std::int64_t most = place_below(room);
  std::int64_t anchors = kAnchors;
  for (std::int64_t place = most; place > 0 && anchors > 0; --place) {
    if (best != nullptr && best->time == 0) break;
    const bool is_anchor = place % kAnchor == 0;
    if (place <= most - kWindow && !is_anchor) continue;
    if (is_anchor) --anchors;
    const std::optional<FamilyPlan>& plan = at(place);
    if (!plan) break;  // with less room there is none either
    attempt(*plan);
  }
  return best;
}

const FamilyPlan* FamilyPlans::first(std::span<const std::int64_t> room) {
  const std::int64_t place = place_below(room);
  if (place == 0) return nullptr;
  const std::optional<First>& first = first_at(place);
  return first ? &first->plan : nullptr;
}

const FamilyPlan& FamilyPlans::leanest() {
  std::int64_t too_little = 0, enough = kPlaces / kLean;
  while (enough - too_little > 1) {
    const std::int64_t middle = too_little + (enough - too_little) / 2;
    (has_plan(middle * kLean) ? enough : too_little) = middle;
  }
  const FamilyPlan* least = &rules_.front();
  const auto need = [](const FamilyPlan& plan) { return std::ranges::max(plan.counted); };
  for (const FamilyPlan& rule : rules_)
    if (need(rule) < need(*least)) least = &rule;
  if (const auto& plan = at(enough * kLean); plan && need(*plan) < need(*least)) least = &*plan;
  return *least;
}

std::int64_t FamilyPlans::grid_room(std::size_t device, std::int64_t place) const {
  return share_of(plain().counted[device], place, kPlaces);
}

/// The largest whose rooms are within `room`, on every device.
std::int64_t FamilyPlans::place_below(std::span<const std::int64_t> room) const {
  std::int64_t place = kPlaces;
  const auto fits = [&] {
    for (std::size_t i = 0; i < room.size(); ++i)
      if (grid_room(i, place) > room[i]) return false;
    return true;
  };
  while (place > 0 && !fits()) --place;
  return place;
}

/// What the other microbatches keep while a device runs `slot`, at the most; `kept` by slot of the
/// family. Nothing is said of a slot that the device does not run.
std::int64_t FamilyPlans::others(std::size_t device, std::uint32_t slot,
                                 std::span<const std::int64_t> kept) const {
  std::int64_t most = 0;
  for (const DeviceLoad& load : loads_[family_.devices[device]]) {
    if (load.slot != slot) continue;
    std::int64_t sum = 0;
    for (const SlotCounts& it : load.others) {
      const auto place = std::ranges::lower_bound(family_.slots, it.slot) - family_.slots.begin();
      sum += it.kept * kept[static_cast<std::size_t>(place)] +
             it.held * slots_[it.slot]->slot().held.count();
    }
    most = std::max(most, sum);
  }
  return most;
}

FamilyPlan FamilyPlans::counted(std::vector<SlotPlan> slots) const {
  FamilyPlan plan{std::move(slots), std::vector<std::int64_t>(family_.devices.size(), 0), 0};
  std::vector<std::int64_t> kept;
  for (const SlotPlan& slot : plan.slots) {
    kept.push_back(slot.kept);
    plan.time += slot.time;
  }
  for (std::size_t i = 0; i < family_.devices.size(); ++i)
    for (std::size_t s = 0; s < family_.slots.size(); ++s)
      if (runs_slot(loads_[family_.devices[i]], family_.slots[s]))
        plan.counted[i] =
            std::max(plan.counted[i], others(i, family_.slots[s], kept) + plan.slots[s].peak);
  return plan;
}

/// Of a slot of the family; nothing where what the others keep leaves none.
std::optional<SlotRoom> FamilyPlans::room(std::size_t slot, Share share, std::int64_t place) const {
  std::vector<std::int64_t> kept;
  for (const SlotPlan& all : plain().slots) kept.push_back(share_of(all.kept, share, kParts));
  std::int64_t running = plain().slots[slot].peak;
  for (std::size_t i = 0; i < family_.devices.size(); ++i)
    if (runs_slot(loads_[family_.devices[i]], family_.slots[slot]))
      running = std::min(running, grid_room(i, place) - others(i, family_.slots[slot], kept));
  if (running <= 0) return std::nullopt;
  return SlotRoom{kept[slot], running};
}

std::optional<FamilyPlan> FamilyPlans::plan(Share share, std::int64_t place, bool improved) {
  std::vector<SlotPlan> plans;
  for (std::size_t s = 0; s < family_.slots.size(); ++s) {
    const auto its = room(s, share, place);
    if (!its) return std::nullopt;
    SlotPlanner& planner = *slots_[family_.slots[s]];
    auto plan = improved ? planner.best_plan(*its) : planner.first_plan(*its);
    if (!plan) return std::nullopt;
    plans.push_back(std::move(*plan));
  }
  return counted(std::move(plans));
}

bool FamilyPlans::has_plan(std::int64_t place) {
  return std::ranges::any_of(kShares,
                             [&](Share share) { return plan(share, place, false).has_value(); });
}

const std::optional<FamilyPlans::First>& FamilyPlans::first_at(std::int64_t place) {
  const auto [it, is_new] = firsts_.try_emplace(place);
  std::optional<First>& best = it->second;
  if (!is_new) return best;
  // Of equals the larger share, which asks for less.
  const auto attempt = [&](Share share) {
    if (share < 1 || share > kParts) return;
    auto found = plan(share, place, false);
    if (!found) return;
    if (best && std::pair(found->time, -share) >= std::pair(best->plan.time, -best->share)) return;
    best = First{std::move(*found), share};
  };
  const bool is_anchor = place % kAnchor == 0;
  const std::int64_t above = rounded_up(place, is_anchor ? kRoot : kAnchor);
  if (place != above)
    if (const std::optional<First>& first = first_at(above)) attempt(first->share);
  if (!best)
    for (const Share share : kShares) attempt(share);
  if (!best) return best;
  for (const std::int64_t step : kSteps) {
    if (!is_anchor && step > kNear) continue;
    const Share middle = best->share;
    attempt(middle - step);
    attempt(middle + step);
  }
  return best;
}

const std::optional<FamilyPlan>& FamilyPlans::at(std::int64_t place) {
  const auto [it, is_new] = plans_.try_emplace(place);
  if (!is_new) return it->second;
  const std::optional<First>& first = first_at(place);
  if (!first) return it->second;
  it->second = plan(first->share, place, true);
  if (!it->second || first->plan.time < it->second->time) it->second = first->plan;
  return it->second;
}

}  // namespace plimsoll
