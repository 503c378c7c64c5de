#include "policy/remat/graph/search/free_order_search.hpp"

#include "policy/graph/computations.hpp"
#include "policy/graph/final_reader.hpp"
#include "policy/remat/graph/search/graph_planner.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace plimsoll {

namespace {

/// Reruns that take no more than one in so many of the graph's time need no other order.
constexpr std::int64_t kPartsOfTime = 200;
/// Up to so many nodes both orders are searched, else one alone where the other's first plan takes
/// much longer.
constexpr std::size_t kFewNodes = 100;
/// Turns of order and reruns at most; they end with one that gains less than one in so many. Each
/// takes so many iterations over the nodes.
constexpr int kMostTurns = 8;
constexpr std::int64_t kPartsOfTurn = 50, kShortIterations = 100'000, kIterationsByNode = 64;

}  // namespace

FreeOrderSearch::Numbered::Numbered(const OperatorGraph& of,
                                    std::span<const std::uint32_t> computations)
    : numbered(numbered_as_run(of, computations)), groups(rerun_groups(numbered.graph)) {}

RerunSequence FreeOrderSearch::Numbered::sequence_of(const StagedSchedule& plan) const {
  RerunSequence sequence{.time = plan.time()};
  for (const std::uint32_t node : plan.computations())
    sequence.computations.push_back(numbered.old_number[node]);
  return sequence;
}

FreeOrderSearch::FreeOrderSearch(const OperatorGraph& graph, const RerunSearchOptions& options,
                                 const Work& work)
    : nodes_(graph.nodes.size()),
      graph_(with_final_reader(graph)),
      groups_(rerun_groups(graph_)),
      options_(options),
      work_(work),
      enough_(graph.time().count() / kPartsOfTime) {}

void FreeOrderSearch::look_for_order() {
  if (has_looked_) return;
  has_looked_ = true;
  if (const auto order = leaner_order(graph_, all_once(graph_), work_))
    other_.emplace(graph_, *order);
}

/// Of the first plan's reruns.
std::optional<std::int64_t> FreeOrderSearch::first_time(const OperatorGraph& graph,
                                                        const RerunGroups& groups,
                                                        std::int64_t room) const {
  RerunSearchOptions options = options_;
  options.iterations = options.restarts = 0;
  const auto plan = RerunSearch(graph, groups, options, work_).run(room, 0, {});
  if (!plan) return std::nullopt;
  return plan->time();
}

std::optional<RerunSequence> FreeOrderSearch::in_given_order(std::int64_t room,
                                                             std::int64_t least) const {
  const auto plan = RerunSearch(graph_, groups_, options_, work_).run(room, least, {});
  if (!plan) return std::nullopt;
  return RerunSequence{.computations = plan->computations(), .time = plan->time()};
}

std::optional<RerunSequence> FreeOrderSearch::in_other_order(std::int64_t room) const {
  RerunSearch search(other_->numbered.graph, other_->groups, short_options(), work_);
  const auto plan = search.run(room, 0, {});
  if (!plan) return std::nullopt;
  RerunSequence best = other_->sequence_of(*plan);
  take_turns(best, room);
  static_cast<void>(improve(best, best.computations, room, options_));
  return best;
}

RerunSearchOptions FreeOrderSearch::short_options() const {
  RerunSearchOptions options = options_;
  const std::int64_t nodes = std::ssize(graph_.nodes);
  if (!options.iterations)
    options.iterations = std::min(kShortIterations / (nodes + 1) + 8, kIterationsByNode * nodes);
  return options;
}

/// Whether there is a faster plan with the first runs, and at first all reruns, of `computations`.
bool FreeOrderSearch::improve(RerunSequence& best, std::span<const std::uint32_t> computations,
                              std::int64_t room, RerunSearchOptions options) const {
  options.restarts = 0;
  const Numbered it(graph_, computations);
  std::vector<std::uint32_t> runs;
  for (const std::uint32_t node : computations) runs.push_back(it.numbered.new_number[node]);
  const std::array starts{reruns_of(runs, it.groups)};
  RerunSearch search(it.numbered.graph, it.groups, options, work_);
  const auto plan = search.run(room, 0, starts);
  if (!plan || plan->time() >= best.time) return false;
  best = it.sequence_of(*plan);
  return true;
}

void FreeOrderSearch::take_turns(RerunSequence& best, std::int64_t room) const {
  for (int turn = 0; turn < kMostTurns && best.time > enough_; ++turn) {
    const std::int64_t before = best.time;
    const auto order = leaner_order(graph_, best.computations, work_);
    if (!order || !improve(best, *order, room, short_options())) return;
    if (before - best.time < before / kPartsOfTurn) return;
  }
}

std::optional<RerunSequence> FreeOrderSearch::run(std::int64_t room,
                                                  std::optional<std::int64_t> least) {
  auto found = in_any_order(room, least);
  if (found) std::erase_if(found->computations, [&](std::uint32_t node) { return node >= nodes_; });
  return found;
}

std::optional<RerunSequence> FreeOrderSearch::in_any_order(std::int64_t room,
                                                           std::optional<std::int64_t> least) {
  const auto first = least ? first_time(graph_, groups_, room) : std::nullopt;
  if (first && (*first <= enough_ || options_.iterations == 0)) return in_given_order(room, *least);
  look_for_order();
  std::optional<std::int64_t> other;
  if (other_) other = first_time(other_->numbered.graph, other_->groups, room);
  const bool is_small = graph_.nodes.size() <= kFewNodes;
  std::optional<RerunSequence> best;
  if (other_ && (is_small || !first || !other || *other <= *first + *first / 2))
    best = in_other_order(room);
  const bool is_far = best && (!first || *first > 2 * best->time);
  if (!least || (is_far && !is_small)) return best;
  auto given = in_given_order(room, *least);
  return !given || (best && best->time < given->time) ? best : given;
}

std::int64_t FreeOrderSearch::least_room(std::int64_t too_little) {
  look_for_order();
  if (!other_) return RerunSearch(graph_, groups_, options_, work_).least_room(too_little);
  return RerunSearch(other_->numbered.graph, other_->groups, options_, work_)
      .least_room(too_little);
}

}  // namespace plimsoll
