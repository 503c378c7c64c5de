#include "policy/remat/graph/search/rerun_annealing.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace plimsoll {

namespace {

using Key = StagedSchedule::Key;

/// So often the temperature falls on the way, each time by the same part.
constexpr std::int64_t kCoolings = 512;
/// 0.01^(1/512)
constexpr double kCooling = 0.9910459;
/// Proposals between two looks at the price, and what it is raised or lowered by.
constexpr std::int64_t kPriced = 512;
constexpr double kPriceStep = 1.03;
/// Where there is no plan to take it from, of the time for a byte of the mean value.
constexpr double kStartPrice = 0x1p-4;
/// Values that are looked at for one that is carried across a step.
constexpr int kTries = 24;
/// Stages that a rerun is moved by.
constexpr std::uint64_t kFarthest = 16;

/// -ln(u) at the middles of 32 equal parts of 0..1.
constexpr std::array<double, 32> kThresholds = {
    4.15888, 3.06027, 2.54945, 2.21297, 1.96166, 1.76099, 1.59393, 1.45083,
    1.32567, 1.21444, 1.11436, 1.02339, 0.94001, 0.86305, 0.79159, 0.72490,
    0.66238, 0.60354, 0.54797, 0.49532, 0.44531, 0.39768, 0.35222, 0.30874,
    0.26706, 0.22706, 0.18859, 0.15155, 0.11583, 0.08135, 0.04801, 0.01575};

}  // namespace

void RerunAnnealing::begin(const StagedSchedule& plan, double heat) {
  plan_ = plan;
  present_ = plan.all();
  const StagedSchedule once(moves_.graph, moves_.groups, plan.room());
  double time = 0, bytes = 1;
  for (const RerunGroups::Group& it : moves_.groups.groups) time += static_cast<double>(it.time);
  time /= static_cast<double>(moves_.groups.groups.size());
  for (const OperatorGraph::Value& it : moves_.graph.values)
    bytes += static_cast<double>(it.bytes.count());
  price_ = time * static_cast<double>(moves_.graph.values.size()) / bytes * kStartPrice;
  if (plan.time() > 0 && once.excess() > plan.excess())
    price_ =
        2 * static_cast<double>(plan.time()) / static_cast<double>(once.excess() - plan.excess());
  if (plan.time() > 0)
    time = static_cast<double>(plan.time()) / static_cast<double>(present_.size());
  temperature_ = heat * time;
}

/// A value that is carried across the step, the more bytes for its time the likelier.
std::optional<std::uint32_t> RerunAnnealing::value_across(Key step, Key& use) {
  const auto ratio = [&](std::uint32_t value) {
    const OperatorGraph::Value& it = moves_.graph.values[value];
    return static_cast<double>(it.bytes.count()) /
           (static_cast<double>(moves_.groups.groups[moves_.groups.of_node[it.maker]].time) + 1);
  };
  const std::size_t values = moves_.graph.values.size();
  if (values == 0) return std::nullopt;
  std::optional<std::uint32_t> chosen;
  std::uint64_t wanted = 1 + below(3);
  for (int i = 0; i < kTries && wanted > 0; ++i) {
    const auto value = static_cast<std::uint32_t>(below(values));
    const auto next = plan_->next_use(value, step);
    if (!next) continue;
    --wanted;
    if (chosen && ratio(value) <= ratio(*chosen)) continue;
    chosen = value;
    use = *next;
  }
  return chosen;
}

/// A rerun, so that a value need not be carried across the step.
std::optional<Rerun> RerunAnnealing::rerun_after(Key step) {
  Key use = 0;
  const auto value = value_across(step, use);
  if (!value) return std::nullopt;
  Rerun rerun{StagedSchedule::stage_of(use),
              moves_.groups.of_node[moves_.graph.values[*value].maker]};
  const std::uint32_t back = moves_.groups.return_of(*value);
  if (back != OperatorGraph::kNone && below(2) == 0) rerun.group = back;
  const std::uint32_t first = StagedSchedule::stage_of(step) + 1;
  const std::uint64_t kind = below(8);
  if (kind < 2 && rerun.stage > first)
    rerun.stage = first + static_cast<std::uint32_t>(below(rerun.stage - first + 1));
  if (kind == 2)
    if (const auto early = moves_.early(*plan_, step, rerun)) rerun = *early;
  if (!moves_.is_after(step, rerun) || !plan_->may_run(rerun) || plan_->has(rerun))
    return std::nullopt;
  return rerun;
}

/// Adds what lowers the step at `position`; in the place of another rerun of the same, where there
/// may be no more.
bool RerunAnnealing::propose_more(std::uint32_t position, Change& change) {
  const Key step = plan_->key_at(position);
  const auto rerun = rerun_after(step);
  if (!rerun) return false;
  change.added = {*rerun};
  if (moves_.is_used_up(*plan_, rerun->group)) {
    const auto stages = plan_->stages_of(rerun->group);
    if (stages.empty()) return false;
    if (change.removed.empty() || change.removed.front().group != rerun->group)
      change.removed.push_back({stages[below(stages.size())], rerun->group});
  } else if (below(2) == 0) {
    if (std::vector<Rerun> all = moves_.closure(*plan_, step, *rerun); !all.empty())
      change.added = std::move(all);
  }
  return true;
}

/// A stage in which something reads what the group makes.
std::optional<std::uint32_t> RerunAnnealing::stage_of_reader(std::uint32_t group) {
  const RerunGroups::Group& it = moves_.groups.groups[group];
  std::uint32_t value = it.returns;
  if (!it.nodes.empty()) {
    const auto& makes = moves_.graph.nodes[it.nodes[below(it.nodes.size())]].makes;
    if (makes.empty()) return std::nullopt;
    value = makes[below(makes.size())];
  }
  const std::vector<std::uint32_t>& readers = moves_.graph.values[value].readers;
  if (readers.empty()) return std::nullopt;
  return readers[below(readers.size())];
}

bool RerunAnnealing::propose_shift(Change& change) {
  const Rerun it = present_[below(present_.size())];
  Rerun moved = it;
  if (below(2) == 0) {
    const auto far = 1 + static_cast<std::uint32_t>(below(kFarthest));
    moved.stage = below(2) == 0 ? it.stage - std::min(it.stage, far) : it.stage + far;
  } else if (const auto stage = stage_of_reader(it.group)) {
    moved.stage = *stage;
  }
  if (!plan_->may_run(moved) || plan_->has(moved)) return false;
  change.removed = {it};
  change.added = {moved};
  return true;
}

bool RerunAnnealing::propose_exchange(Change& change) {
  const Rerun it = present_[below(present_.size())];
  change.removed = {it};
  const RerunGroups::Group& group = moves_.groups.groups[it.group];
  const Key made = StagedSchedule::key(it.stage, group.nodes.empty() ? 0 : group.nodes.front());
  const std::uint32_t at = plan_->position_of(made);
  const std::uint32_t far = 1 + static_cast<std::uint32_t>(below(4 * kFarthest));
  if (!propose_more(at - std::min(at, far), change)) return false;
  return std::ranges::find(change.added, it) == change.added.end();
}

bool RerunAnnealing::propose(Change& change) {
  change.removed.clear();
  change.added.clear();
  if (present_.empty() || (plan_->excess() > 0 && below(2) == 0))
    return plan_->excess() > 0 && propose_more(plan_->step_above_room(random_()), change);
  switch (below(4)) {
    case 0:
      change.removed = {present_[below(present_.size())]};
      return true;
    case 1:
      return propose_shift(change);
    default:
      return propose_exchange(change);
  }
}

bool RerunAnnealing::is_taken(const RerunEffect& effect) {
  const double worse =
      static_cast<double>(effect.time) + price_ * static_cast<double>(effect.excess);
  return worse <= temperature_ * kThresholds[below(kThresholds.size())];
}

void RerunAnnealing::apply(const Change& change) {
  plan_->take(change.removed, change.added);
  for (const Rerun& it : change.removed) {
    *std::ranges::find(present_, it) = present_.back();
    present_.pop_back();
  }
  present_.insert(present_.end(), change.added.begin(), change.added.end());
}

std::optional<StagedSchedule> RerunAnnealing::run(const StagedSchedule& plan, std::int64_t least,
                                                  double heat, std::int64_t proposals) {
  begin(plan, heat);
  std::optional<StagedSchedule> best;
  if (plan.excess() == 0) best = plan;
  Change change;
  const std::int64_t cooled = std::max<std::int64_t>(1, proposals / kCoolings);
  for (std::int64_t i = 0; i < proposals && (!best || best->time() > least); ++i) {
    if (i % cooled == cooled - 1) temperature_ *= kCooling;
    if (i % kPriced == kPriced - 1)
      price_ = plan_->excess() > 0 ? price_ * kPriceStep : price_ / kPriceStep;
    if (!propose(change)) continue;
    moves_.work.add(256 * (change.added.size() + change.removed.size()) + plan_->steps() / 4);
    if (!is_taken(plan_->effect_of(change.removed, change.added))) continue;
    apply(change);
    if (plan_->excess() == 0 && (!best || plan_->time() < best->time())) best = plan_;
  }
  return best;
}

}  // namespace plimsoll
