#include "policy/remat/graph/search/rerun_search.hpp"

#include "policy/remat/graph/search/rerun_annealing.hpp"

#include <algorithm>
#include <utility>

namespace plimsoll {

namespace {

using Key = StagedSchedule::Key;

/// Of a small graph; fewer for large ones.
constexpr std::int64_t kRestarts = 40, kLeastRestarts = 4, kRestartsForRoom = 2;
/// Where annealing follows, no more restarts than so many over the nodes.
constexpr std::int64_t kRestartsByNode = 1000;
/// With more, the least room is found without restarts and with few detours, and annealing does not
/// begin anew, as these take long to fail.
constexpr std::size_t kManyNodes = 300, kNodesPerQuickDetour = 32;
/// The least room is found to one part in so many.
constexpr std::int64_t kRoomParts = 256;
/// Of the values that are carried across a step, so many are looked at: those that cost least for
/// their bytes.
constexpr std::size_t kMostCarried = 96;
/// Of nodes: for each, one more move may follow another without a new look at the step.
constexpr std::size_t kNodesPerMove = 512;
/// Of nodes: for each, a repair may once make a move that does not lower the excess.
constexpr std::size_t kNodesPerDetour = 8;
/// Changes that annealing proposes: for each pair of nodes and each node, but no more than so many
/// over the nodes; or for each iteration.
constexpr std::int64_t kProposalsPerPair = 32, kProposalsPerNode = 8000,
                       kProposalsByNode = 1'600'000'000, kProposalsPerIteration = 1000;
/// In mean times of a rerun.
constexpr double kHot = 2, kWarm = 0.2;
/// It is left out where the bound is nearer than one part in so many of the graph's time, and ends
/// after so many rounds that gain less than one in so many of the reruns'.
constexpr std::int64_t kPartsOfGap = 200, kPartsOfGain = 100;
constexpr int kPoorRounds = 2;

/// e^x for small x, in operations that are rounded alike everywhere.
double exponential(double x) {
  double power = 1 + x / 1024;
  for (int i = 0; i < 10; ++i) power *= power;
  return power;
}

}  // namespace

RerunSearch::RerunSearch(const OperatorGraph& graph, const RerunGroups& groups,
                         const RerunSearchOptions& options, const Work& work)
    : graph_(graph),
      groups_(groups),
      options_(options),
      work_(work),
      moves_{graph, groups, options.computations, work},
      random_(options.seed),
      most_detours_(graph.nodes.size() / kNodesPerDetour + 1) {}

std::uint64_t RerunSearch::below(std::uint64_t count) {
  return random_() % count;
}

/// The exponential of `noise` times a number that is normally distributed, nearly.
double RerunSearch::preference(double noise) {
  if (noise == 0) return 1;
  double sum = 0;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(random_() >> 11) * 0x1p-53;
  return exponential(noise * (sum - 6));
}

void RerunSearch::add_moves(const StagedSchedule& plan, Key step,
                            const StagedSchedule::Carried& carried, bool is_diverse,
                            std::vector<Move>& moves) {
  const std::uint32_t group = groups_.of_node[graph_.values[carried.value].maker];
  const Rerun rerun{StagedSchedule::stage_of(carried.next_use), group};
  if (const std::uint32_t back = groups_.return_of(carried.value); back != OperatorGraph::kNone)
    if (const Rerun it{rerun.stage, back}; moves_.can_add_after(plan, step, it))
      moves.push_back({.added = {it}});
  if (!moves_.can_add_after(plan, step, rerun)) return;
  moves.push_back({.added = {rerun}});
  if (std::vector<Rerun> all = moves_.closure(plan, step, rerun); all.size() > 1)
    moves.push_back({.added = std::move(all)});
  if (const auto it = moves_.early(plan, step, rerun)) moves.push_back({.added = {*it}});
  if (!is_diverse) return;
  const std::uint32_t first = StagedSchedule::stage_of(step) + 1;
  if (rerun.stage <= first) return;
  const Rerun other{first + static_cast<std::uint32_t>(below(rerun.stage - first)), group};
  if (moves_.can_add(plan, other)) moves.push_back({.added = {other}});
}

/// Whether the move lowers the excess.
bool RerunSearch::set_score(StagedSchedule& plan, Move& move) {
  count(move.added.size() * 128 + plan.steps() / 4);
  const RerunEffect effect = plan.effect_of_adding(move.added);
  move.excess = effect.excess;
  if (effect.excess >= 0) return false;
  move.score = -static_cast<double>(effect.excess) * move.preference /
               (static_cast<double>(effect.time) + 1);
  return true;
}

std::vector<RerunSearch::Move> RerunSearch::moves_at(StagedSchedule& plan, Key step,
                                                     bool is_diverse) {
  std::vector<StagedSchedule::Carried> carried = plan.carried_across(step);
  count(graph_.values.size() * 16);
  if (carried.size() > kMostCarried) {
    const auto value_of = [&](const StagedSchedule::Carried& it) {
      const OperatorGraph::Value& value = graph_.values[it.value];
      auto time = groups_.groups[groups_.of_node[value.maker]].time;
      if (const std::uint32_t back = groups_.return_of(it.value); back != OperatorGraph::kNone)
        time = std::min(time, groups_.groups[back].time);
      return static_cast<double>(value.bytes.count()) / (static_cast<double>(time) + 1);
    };
    std::ranges::stable_sort(carried, std::ranges::greater{}, value_of);
    carried.resize(kMostCarried);
  }
  std::vector<Move> moves;
  for (const StagedSchedule::Carried& it : carried) add_moves(plan, step, it, is_diverse, moves);
  return moves;
}

/// Where no move lowers the excess, the one that raises it least may open a way.
bool RerunSearch::take_detour(StagedSchedule& plan, const std::vector<Move>& moves) {
  if (moves.empty() || detours_ == 0) return false;
  --detours_;
  plan.add(std::ranges::min_element(moves, {}, &Move::excess)->added);
  return true;
}

/// Whether something was done about the step.
bool RerunSearch::lower_step(StagedSchedule& plan, Key step, double noise, bool is_diverse) {
  std::vector<Move> moves = moves_at(plan, step, is_diverse);
  for (Move& move : moves) {
    move.preference = preference(noise);
    if (!set_score(plan, move)) move.score = 0;
  }
  if (std::ranges::none_of(moves, [](const Move& move) { return move.score > 0; }))
    return take_detour(plan, moves);
  std::erase_if(moves, [](const Move& move) { return move.score <= 0; });
  std::ranges::stable_sort(moves, std::ranges::greater{}, &Move::score);
  plan.add(moves.front().added);
  std::size_t more = graph_.nodes.size() / kNodesPerMove;
  for (std::size_t i = 1; i < moves.size() && more > 0; ++i) {
    if (plan.above_room(plan.position_of(step)) <= 0) break;
    Move& move = moves[i];
    const bool is_there = !std::ranges::all_of(
        move.added, [&](const Rerun& it) { return moves_.can_add_after(plan, step, it); });
    if (is_there || !set_score(plan, move)) continue;
    if (i + 1 < moves.size() && move.score < moves[i + 1].score / 2) continue;
    plan.add(move.added);
    --more;
  }
  return true;
}

bool RerunSearch::repair(StagedSchedule& plan, double noise, bool is_diverse) {
  detours_ = most_detours_;
  for (std::size_t round = 0; round < 20 * graph_.nodes.size(); ++round) {
    if (plan.excess() == 0) return true;
    count(plan.steps());
    if (is_diverse && below(3) == 0) {
      const std::vector<std::uint32_t> above = plan.steps_above_room();
      const Key step = plan.key_at(above[below(above.size())]);
      if (lower_step(plan, step, noise, is_diverse)) continue;
    }
    if (!lower_step(plan, plan.key_at(plan.highest_step()), noise, is_diverse)) return false;
  }
  return false;
}

void RerunSearch::prune(StagedSchedule& plan) {
  std::vector<Rerun> all = plan.all();
  std::ranges::stable_sort(all, std::ranges::greater{},
                           [&](const Rerun& it) { return groups_.groups[it.group].time; });
  for (const Rerun& it : all) {
    count(plan.steps() / 4 + 128);
    if (plan.excess() + plan.effect_of_removing(it).excess <= 0) plan.take({&it, 1}, {});
  }
}

StagedSchedule RerunSearch::made_of(std::span<const Rerun> reruns, std::int64_t room) const {
  StagedSchedule plan(graph_, groups_, room);
  std::vector<Rerun> valid;
  for (const Rerun& it : reruns)
    if (moves_.can_add(plan, it)) valid.push_back(it);
  if (!valid.empty()) plan.add(valid);
  return plan;
}

std::optional<StagedSchedule> RerunSearch::repaired_start(std::int64_t room,
                                                          std::int64_t restarts) {
  random_.seed(options_.seed);  // what is found for a room depends on nothing else
  for (std::int64_t restart = 0; restart <= restarts; ++restart) {
    StagedSchedule plan(graph_, groups_, room);
    const double noise =
        restart == 0 ? 0 : 0.3 + 0.2 * static_cast<double>(std::min<std::int64_t>(restart, 5));
    if (!repair(plan, noise, restart > 0)) continue;
    prune(plan);
    return plan;
  }
  return std::nullopt;
}

std::int64_t RerunSearch::restarts() const {
  if (options_.restarts) return *options_.restarts;
  const auto nodes = static_cast<std::int64_t>(graph_.nodes.size());
  if (proposals() > 0) return std::min(kRestartsByNode / (nodes + 1), kRestarts);
  return std::clamp(40 * kRestartsByNode / (nodes + 1), kLeastRestarts, kRestarts);
}

std::int64_t RerunSearch::iterations() const {
  if (options_.iterations) return *options_.iterations;
  const auto nodes = static_cast<std::int64_t>(graph_.nodes.size());
  return std::clamp<std::int64_t>(300'000 / (nodes + 1), 8,
                                  std::min<std::int64_t>(20 * nodes, 2000) + 8);
}

/// Takes some reruns away: any, or those next to one in stage or in group.
void RerunSearch::destroy(StagedSchedule& plan) {
  std::vector<Rerun> all = plan.all();
  if (all.empty()) return;
  const std::uint64_t most = 2 + below(6),
                      taken = 1 + below(std::min<std::uint64_t>(all.size(), most));
  const std::uint64_t kind = below(3);
  const Rerun near = all[below(all.size())];
  const auto distance = [](std::uint32_t a, std::uint32_t b) { return a < b ? b - a : a - b; };
  if (kind == 1)
    std::ranges::stable_sort(all, {},
                             [&](const Rerun& it) { return distance(it.stage, near.stage); });
  if (kind == 2)
    std::ranges::stable_sort(all, {},
                             [&](const Rerun& it) { return distance(it.group, near.group); });
  for (std::uint64_t i = 0; i < taken; ++i) {
    if (kind == 0) std::swap(all[i], all[i + below(all.size() - i)]);
    plan.remove(all[i]);
  }
}

void RerunSearch::shift(StagedSchedule& plan) {
  for (std::uint64_t i = 0, shifts = 1 + below(3); i < shifts; ++i) {
    const std::vector<Rerun> all = plan.all();
    if (all.empty()) return;
    const Rerun it = all[below(all.size())];
    const std::int64_t stage = std::int64_t{it.stage} + static_cast<std::int64_t>(below(21)) - 10;
    const Rerun moved{static_cast<std::uint32_t>(std::max<std::int64_t>(stage, 0)), it.group};
    if (!plan.may_run(moved) || plan.has(moved)) continue;
    plan.remove(it);
    plan.add({&moved, 1});
  }
}

std::optional<StagedSchedule> RerunSearch::neighbour(const StagedSchedule& plan) {
  constexpr double kNoises[] = {1.2, 0.6, 0.25};
  count(4 * (plan.steps() + groups_.groups.size()));
  StagedSchedule trial = plan;
  destroy(trial);
  if (below(2) == 0) shift(trial);
  if (!repair(trial, kNoises[below(3)], true)) return std::nullopt;
  prune(trial);
  return trial;
}

void RerunSearch::improve(StagedSchedule& best, std::int64_t least, std::int64_t iterations) {
  StagedSchedule current = best;
  for (std::int64_t i = 0; i < iterations && best.time() > least; ++i) {
    std::optional<StagedSchedule> neighbouring = neighbour(current);
    if (!neighbouring) continue;
    StagedSchedule& trial = *neighbouring;
    const double temperature =
        0.02 * static_cast<double>(iterations - i) / static_cast<double>(iterations);
    const double worse = static_cast<double>(trial.time() - current.time()) /
                         (static_cast<double>(best.time()) * temperature);
    const double chance = static_cast<double>(random_() >> 11) * 0x1p-53;
    if (worse > 0 && (worse > 20 || chance >= exponential(-worse))) continue;
    current = std::move(trial);
    if (current.time() < best.time()) best = current;
  }
}

std::int64_t RerunSearch::proposals() const {
  if (options_.iterations) return *options_.iterations * kProposalsPerIteration;
  const auto nodes = static_cast<std::int64_t>(graph_.nodes.size());
  return std::min({kProposalsPerPair * nodes * nodes, kProposalsPerNode * nodes,
                   kProposalsByNode / (nodes + 1)});
}

/// Where runs are limited, a slower fall of the temperature may find what a faster one misses.
std::optional<StagedSchedule> RerunSearch::annealed_start(std::int64_t room) {
  const StagedSchedule once(graph_, groups_, room);
  RerunAnnealing annealing(moves_, options_.seed);
  auto plan = annealing.run(once, 0, kHot, proposals() / 4);
  if (!plan && is_limited() && graph_.nodes.size() <= kManyNodes)
    plan = annealing.run(once, 0, kHot, proposals() / 2);
  if (plan) prune(*plan);
  return plan;
}

/// In ever longer rounds, as long as that pays.
void RerunSearch::anneal(StagedSchedule& best, std::int64_t least) {
  const std::int64_t enough = least + graph_.time().count() / kPartsOfGap;
  RerunAnnealing annealing(moves_, options_.seed);
  std::int64_t left = proposals();
  int poor = 0;
  for (std::int64_t length = left / 8; left > 0 && best.time() > enough; length *= 2) {
    const std::int64_t before = best.time();
    for (const double heat : {kHot, kWarm}) {
      auto plan = annealing.run(best, least, heat, std::min(length, left) / 2);
      if (!plan || plan->time() >= best.time()) continue;
      prune(*plan);
      best = std::move(*plan);
    }
    left -= length;
    const std::int64_t gain = before - best.time();
    poor = gain < before / kPartsOfGain ? poor + 1 : 0;
    if (length == 0 || poor == kPoorRounds) return;
  }
}

std::optional<StagedSchedule> RerunSearch::run(std::int64_t room, std::int64_t least,
                                               std::span<const std::vector<Rerun>> starts) {
  std::optional<StagedSchedule> best = repaired_start(room, restarts());
  for (const std::vector<Rerun>& start : starts) {
    StagedSchedule plan = made_of(start, room);
    if (!repair(plan, 0, false)) continue;
    prune(plan);
    if (!best || plan.time() < best->time()) best = std::move(plan);
  }
  if (!best) best = annealed_start(room);
  if (!best) return best;
  improve(*best, least, iterations());
  anneal(*best, least);
  return best;
}

std::int64_t RerunSearch::least_room(std::int64_t too_little) {
  // What is found so, run() finds in the same way before it restarts.
  const bool is_quick = graph_.nodes.size() > kManyNodes;
  if (is_quick) most_detours_ = graph_.nodes.size() / kNodesPerQuickDetour;
  std::int64_t enough = StagedSchedule(graph_, groups_, 0).peak();
  while (enough - too_little > std::max<std::int64_t>(1, enough / kRoomParts)) {
    const std::int64_t room = too_little + (enough - too_little) / 2;
    const auto plan = repaired_start(room, is_quick ? 0 : kRestartsForRoom);
    if (plan)
      enough = std::min(room, plan->peak());
    else
      too_little = room;
  }
  most_detours_ = graph_.nodes.size() / kNodesPerDetour + 1;
  return enough;
}

}  // namespace plimsoll
