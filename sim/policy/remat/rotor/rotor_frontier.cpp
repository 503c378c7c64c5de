#include "policy/remat/rotor/rotor_frontier.hpp"

#include <algorithm>

namespace plimsoll {

RotorFrontiers::RotorFrontiers(const RotorChain& chain, std::int64_t limit,
                               const std::vector<bool>& checkpoints, std::int64_t most_points)
    : chain_(chain),
      limit_(std::min(limit, kNever - 1)),
      most_points_(most_points),
      checkpoints_(checkpoints),
      frontiers_(place(0, chain.stages())),
      stored_(most_stored(chain)) {
  const std::size_t last = chain.stages() - 1;
  for (std::size_t s = last + 1; s-- > 0;)
    for (std::size_t t = s; t <= last; ++t)
      if (t == last || checkpoints[t + 1]) fill(s, t);
}

std::int64_t RotorFrontiers::recomputed(std::size_t s, std::size_t t, std::int64_t units) const {
  const Frontier frontier = frontiers_[place(s, t)];
  const auto found = std::ranges::partition_point(
      frontier, [&](const FrontierPoint& point) { return point.units > units; });
  return found == frontier.end() ? kNever : found->time;
}

std::size_t RotorFrontiers::bytes() const {
  return store_.bytes() + frontiers_.size() * sizeof(Frontier);
}

void RotorFrontiers::fill(std::size_t s, std::size_t t) {
  const std::size_t last = chain_.stages() - 1;
  its_limit_ = limit_;
  if (t < last) its_limit_ -= chain_.forward_time(s, t + 1) + recomputed(t + 1, last, chain_.units);
  if (its_limit_ < 0) return;
  low_ = chain_.units - stored_[s];
  best_.clear();
  steps_ = 1;
  keep(s, t);
  checkpoint(s, t);
  store(s, t);
  chain_.work.add(steps_);
}

void RotorFrontiers::keep(std::size_t s, std::size_t t) {
  const std::int64_t need = std::max(low_, chain_.keep_need(s, t));
  if (need > chain_.units) return;
  if (s == t) {
    best_.push_back({need, 0});
    return;
  }
  for (const auto [units, time] : frontiers_[place(s + 1, t)]) {
    const std::int64_t needed = std::max(units + chain_.saved[s], need);
    if (needed > chain_.units) continue;
    best_.push_back({needed, time});
    if (needed == need) return;
  }
}

void RotorFrontiers::checkpoint(std::size_t s, std::size_t t) {
  final_ = 0;
  std::int64_t bare = 0;
  for (std::size_t k = s + 1; k <= t; ++k) {
    ++steps_;
    bare = std::max(bare, chain_.bare_need(s, k - 1));
    const std::int64_t add = chain_.forward_time(s, k);
    const std::int64_t need = std::max(low_, chain_.behind[t] + bare);
    while (final_ < best_.size() && best_[final_].time <= add) ++final_;
    const std::int64_t end = final_ > 0 ? best_[final_ - 1].units : chain_.units + 1;
    if (need >= end || add > its_limit_) return;
    if (!checkpoints_[k]) continue;
    merge(frontiers_[place(s, k - 1)], frontiers_[place(k, t)], chain_.output[k - 1], add, need);
  }
}

void RotorFrontiers::merge(Frontier left, Frontier right, std::int64_t shift, std::int64_t add,
                           std::int64_t need) {
  std::int64_t lowest = final_ > 0 ? best_[final_ - 1].units : chain_.units + 1;
  const auto first_below = [](Frontier frontier, std::int64_t units) {
    return std::ranges::partition_point(
        frontier, [&](const FrontierPoint& point) { return point.units >= units; });
  };
  auto l = first_below(left, lowest);
  auto r = first_below(right, lowest - shift);
  if (l == left.end() || r == right.end()) return;
  open_.assign(best_.begin() + static_cast<std::ptrdiff_t>(final_), best_.end());
  best_.resize(final_);
  auto open = open_.begin();
  const auto emit = [&](FrontierPoint point) {
    if (point.units >= lowest) return;
    best_.push_back(point);
    lowest = point.units;
  };
  while (l != left.end() && r != right.end()) {
    const FrontierPoint sum{std::max({l->units, r->units + shift, need}), add + l->time + r->time};
    if (sum.time > its_limit_) break;
    while (open != open_.end() && open->time <= sum.time) emit(*open++);
    emit(sum);
    if (sum.units == need) break;
    const bool is_left = l->units == sum.units;
    if (r->units + shift == sum.units) ++r;
    if (is_left) ++l;
  }
  while (open != open_.end()) emit(*open++);
  steps_ += static_cast<std::int64_t>(best_.size() - final_);
}

void RotorFrontiers::store(std::size_t s, std::size_t t) {
  while (!best_.empty() && best_.back().time > its_limit_) best_.pop_back();
  if (best_.empty()) return;
  points_ += static_cast<std::int64_t>(best_.size());
  if (points_ > most_points_) throw TableTooLarge{most_points_};
  FrontierPoint* points = store_.make(best_.size());
  std::ranges::copy(best_, points);
  frontiers_[place(s, t)] = {points, best_.size()};
}

bool tells_of_too_many(const RotorChain& chain, std::int64_t limit, std::int64_t most_points,
                       std::size_t distance) {
  if (limit < chain.forward.back() / 3) return false;
  const std::vector<bool> checkpoints = sparse_checkpoints(chain, distance);
  try {
    const RotorFrontiers sparse(chain, limit, checkpoints,
                                most_points / 2 * 3 / static_cast<std::int64_t>(distance));
  } catch (const TableTooLarge&) {
    return true;
  }
  return false;
}

namespace {

void foresee_points(const RotorChain& chain, std::int64_t limit, std::int64_t most_points) {
  constexpr std::size_t kDistances[] = {16, 8, 4};
  constexpr std::size_t kStagesADistance = 20;
  for (const std::size_t distance : kDistances)
    if (chain.stages() >= kStagesADistance * distance &&
        tells_of_too_many(chain, limit, most_points, distance))
      throw TableTooLarge{most_points};
}

}  // namespace

std::optional<RotorSchedule> rotor_exact(const RotorChain& chain,
                                         const std::optional<RotorSchedule>& known,
                                         std::int64_t most_points) {
  const std::int64_t limit = known ? known->recomputed : kNever - 1;
  if (known) foresee_points(chain, limit, most_points);
  const std::vector<bool> everywhere(chain.stages(), true);
  const RotorFrontiers table(chain, limit, everywhere, most_points);
  const auto recomputed = [&](std::size_t s, std::size_t t, std::int64_t units) {
    return table.recomputed(s, t, units);
  };
  const std::int64_t best = recomputed(0, chain.stages() - 1, chain.units);
  if (best == kNever) return std::nullopt;
  return RotorSchedule{persistent_sequence(chain, recomputed), best, table.points(), table.bytes()};
}

}  // namespace plimsoll
