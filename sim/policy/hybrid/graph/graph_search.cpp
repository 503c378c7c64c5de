#include "policy/hybrid/graph/graph_search.hpp"

#include <algorithm>
#include <memory>

namespace plimsoll {

namespace {

/// Of the time of its copies, what a return costs in the first rounds beside the copies; 0: nothing.
constexpr std::int64_t kFirstParts[] = {0, 16, 8, 4, 2, 1};
constexpr int kRounds = 12;  ///< in which prices follow the waits
/// Rounds without a better plan, each with half the step of the last, after which none is likely.
constexpr int kMostHalvings = 5;
/// Walks from neighbour to neighbour, each with other numbers: they end in different places.
constexpr int kWalks = 2;
/// Of Work, for a step of a schedule, beside what the claims of its plan count.
constexpr std::size_t kWorkOfPlaying = 128;

/// The groups of the graph, with what they cost, and returns at their prices.
RerunGroups priced_groups(const GraphSearchTask& task, std::span<const std::int64_t> prices) {
  RerunGroups groups = task.groups;
  for (RerunGroups::Group& group : groups.groups) {
    group.time = 0;
    for (const std::uint32_t node : group.nodes) group.time += task.costs.runs[node];
  }
  add_returns(groups, task.graph, prices);
  return groups;
}

class PriceSearch {
 public:
  PriceSearch(const GraphSearchTask& task, const GraphSearchOptions& options)
      : task_(task), options_(options), costs_(task.costs) {}

  std::optional<Plan> run(std::span<const std::vector<Rerun>> starts) {
    for (const std::int64_t part : kFirstParts)
      if (!is_done()) try_prices(first_prices(part), starts);
    int halvings = 0;
    for (int round = 0; round < kRounds && best_ && !is_done(); ++round)
      if (!try_prices(moved_prices(halvings), starts) && ++halvings == kMostHalvings) break;
    if (best_) improve();
    if (!best_) return std::nullopt;
    return std::move(best_->at.played.plan);
  }

 private:
  struct Played {
    StagedSchedule schedule;
    PlayedSchedule played;
    std::int64_t cost = 0;
  };

  /// What was played, and at which prices.
  struct Best {
    std::vector<std::int64_t> prices;
    std::unique_ptr<RerunGroups> groups;
    Played at;
  };

  [[nodiscard]] bool is_done() const { return best_ && best_->at.cost <= options_.least; }

  /// Nothing where the plan takes too long.
  [[nodiscard]] std::optional<std::int64_t> cost_of(const Plan& plan) const {
    if (plan.claims.makespan > options_.most_time) return std::nullopt;
    return costs_.of_plan(plan, task_.problem);
  }

  [[nodiscard]] std::vector<std::int64_t> first_prices(std::int64_t part) const {
    std::vector<std::int64_t> prices = costs_.copies;
    for (std::size_t value = 0; value < prices.size() && part != 0; ++value)
      prices[value] += costs_.of_wait(costs_.copy_times[value] / part);
    return prices;
  }

  /// The best ones so far, raised where operators wait, and else lowered.
  [[nodiscard]] std::vector<std::int64_t> moved_prices(int halvings) const {
    std::vector<std::int64_t> prices = best_->prices;
    const std::vector<std::int64_t> waits =
        waits_by_value(scheduled(*best_->groups), best_->at.played);
    for (std::size_t value = 0; value < prices.size(); ++value) {
      const std::int64_t least = costs_.copies[value];
      const std::int64_t step =
          waits[value] > 0 ? costs_.of_wait(waits[value]) : (least - prices[value]) / 2;
      prices[value] = std::max(least, prices[value] + step / (std::int64_t{1} << halvings));
    }
    return prices;
  }

  [[nodiscard]] ScheduledGraph scheduled(const RerunGroups& groups) const {
    return {task_.problem, task_.memories, task_.graph, groups};
  }

  [[nodiscard]] PlayedSchedule play(const RerunGroups& groups,
                                    const StagedSchedule& schedule) const {
    task_.problem.work.add(schedule.steps() * kWorkOfPlaying);
    return play_schedule(scheduled(groups), schedule, task_.budget, task_.policy);
  }

  /// Whether what they lead to is the best so far.
  bool try_prices(std::vector<std::int64_t> prices, std::span<const std::vector<Rerun>> starts) {
    auto groups = std::make_unique<RerunGroups>(priced_groups(task_, prices));
    RerunSearch search(task_.graph, *groups, {.iterations = 0, .seed = options_.seed},
                       task_.problem.work);
    auto schedule = search.run(room_within(task_.budget, task_.graph), 0, starts);
    if (!schedule) return false;
    PlayedSchedule played = play(*groups, *schedule);
    const auto cost = cost_of(played.plan);
    if (!cost || (best_ && *cost >= best_->at.cost)) return false;
    best_ = Best{std::move(prices), std::move(groups),
                 Played{std::move(*schedule), std::move(played), *cost}};
    return true;
  }

  void improve() {
    const Played begin = best_->at;
    for (std::uint64_t walk = 0; walk < kWalks && !is_done(); ++walk) {
      Played end = walked_from(begin, options_.seed + walk);
      if (end.cost < best_->at.cost) best_->at = std::move(end);
    }
  }

  /// From plan to neighbouring plan that costs no more.
  [[nodiscard]] Played walked_from(Played at, std::uint64_t seed) const {
    RerunSearch search(task_.graph, *best_->groups, {.seed = seed}, task_.problem.work);
    for (std::int64_t i = 0; i < options_.iterations && at.cost > options_.least; ++i) {
      auto schedule = search.neighbour(at.schedule);
      if (!schedule) continue;
      PlayedSchedule played = play(*best_->groups, *schedule);
      const auto cost = cost_of(played.plan);
      if (cost && *cost <= at.cost) at = {std::move(*schedule), std::move(played), *cost};
    }
    return at;
  }

  const GraphSearchTask& task_;
  const GraphSearchOptions options_;
  const SearchCosts& costs_;
  std::optional<Best> best_;
};

}  // namespace

std::optional<Plan> search_graph(const GraphSearchTask& task, const GraphSearchOptions& options,
                                 std::span<const std::vector<Rerun>> starts) {
  return PriceSearch(task, options).run(starts);
}

std::int64_t least_room(const GraphSearchTask& task, std::int64_t too_little) {
  const RerunGroups groups = priced_groups(task, task.costs.copies);
  return RerunSearch(task.graph, groups, {.iterations = 0}, task.problem.work)
      .least_room(too_little);
}

}  // namespace plimsoll
