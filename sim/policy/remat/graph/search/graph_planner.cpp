#include "policy/remat/graph/search/graph_planner.hpp"

#include "base/dense_id.hpp"
#include "policy/budget/budget_limit.hpp"
#include "policy/budget/claims_with_room.hpp"
#include "policy/budget/with_budget.hpp"
#include "policy/graph/gap_bound.hpp"
#include "policy/remat/graph/search/exact_search.hpp"
#include "policy/remat/graph/search/free_order_search.hpp"
#include "policy/remat/graph/search/graph_task.hpp"
#include "policy/remat/segments/runs_within.hpp"

#include <algorithm>
#include <utility>

namespace plimsoll {

namespace {

class GraphSearch {
 public:
  GraphSearch(const Problem& problem, const GraphSearchParameters& parameters)
      : task_(problem, parameters),
        options_(options(parameters)),
        useful_(parameters.useful),
        is_free_(parameters.order == FirstRuns::free && is_freer(task_.graph, problem.workload)) {}

  Planned run() const {
    const auto bound = task_.bound();
    if (is_free_) return in_any_order(bound);
    if (bound && task_.graph.time() + Time{*bound} >= useful_)
      return no_faster_plan(task_.problem, task_.processor);
    RerunSearch search(task_.graph, task_.groups, options_, task_.problem.work);
    std::optional<StagedSchedule> found;
    if (bound) found = search.run(task_.room, *bound, task_.starts());
    if (!found && !useful_.is_unlimited()) return no_faster_plan(task_.problem, task_.processor);
    if (!found && runs_once())  // the given order is the only plan
      return least_budget(Bytes{StagedSchedule(task_.graph, task_.groups, 0).peak()});
    if (!found) return task_.no_plan(search.least_room(task_.too_little()), !bound);
    Plan plan = task_.plan_of(found->computations(), *bound);
    if (found->time() == *bound) plan.claims.optimal = true;
    return plan;
  }

 private:
  /// Whether there are more plans than the staged ones: in another order, or with reruns at the end.
  static bool is_freer(const OperatorGraph& graph, const Workload& workload) {
    return may_reorder(graph, workload) ||
           (is_plain_compute_graph(graph, workload) &&
            std::ranges::any_of(graph.values, &OperatorGraph::Value::stays));
  }

  Planned in_any_order(std::optional<std::int64_t> bound) const {
    if (!is_small()) return found_in_any_order(bound);
    const ExactOutcome outcome =
        fastest_sequence_within(task_.graph, Bytes{task_.room}, exact_limits(), task_.problem.work);
    if (!outcome.is_closed) return found_in_any_order(bound);
    if (!outcome.sequence) return impossible();
    const Time more = outcome.sequence->time - task_.graph.time();
    Plan plan = task_.plan_of(outcome.sequence->computations, more.count());
    plan.claims.optimal = true;
    return plan;
  }

  /// Whether all sequences of computations may be looked at.
  [[nodiscard]] bool is_small() const {
    const bool is_limited = options_.computations != RerunSearchOptions{}.computations;
    return is_within_exact_limits(task_.graph) && options_.iterations != 0 &&
           (!is_limited || runs_once());
  }

  [[nodiscard]] bool runs_once() const { return options_.computations == 1; }

  [[nodiscard]] ExactLimits exact_limits() const {
    return {.may_rerun = !runs_once(), .states = kQuickStates};
  }

  [[nodiscard]] Infeasible impossible() const {
    const Bytes from{task_.too_little() + 1};
    if (const auto least = least_room_within(task_.graph, from, exact_limits(), task_.problem.work))
      return least_budget(*least);
    FreeOrderSearch search(task_.graph, options_, task_.problem.work);
    return task_.no_plan(search.least_room(task_.too_little()), true);
  }

  /// Where no plan is within less room.
  [[nodiscard]] Infeasible least_budget(Bytes room) const {
    return infeasible(task_.problem, task_.processor, task_.budget, task_.graph.resident + room);
  }

  /// The bound is of plans in the order of the graph, and proves nothing of others; a faster one in
  /// another order has none but the time of all operators.
  Planned found_in_any_order(std::optional<std::int64_t> bound) const {
    FreeOrderSearch search(task_.graph, options_, task_.problem.work);
    const bool is_impossible = task_.room < largest_step(task_.graph);
    std::optional<RerunSequence> found;
    if (!is_impossible) found = search.run(task_.room, bound);
    if (!found) return task_.no_plan(search.least_room(task_.too_little()), is_impossible);
    const std::int64_t least = bound && *bound <= found->time ? *bound : 0;
    const bool keeps_order = may_reorder(task_.graph, task_.problem.workload);
    Plan plan = task_.plan_of(found->computations, least);
    plan.bounds.keeps_order = keeps_order && least > 0;
    if (found->time == (keeps_order ? 0 : least)) plan.claims.optimal = true;
    return plan;
  }

  static RerunSearchOptions options(const GraphSearchParameters& parameters) {
    RerunSearchOptions options{.iterations = parameters.iterations,
                               .seed = static_cast<std::uint64_t>(parameters.seed)};
    if (parameters.computations)
      options.computations = static_cast<std::size_t>(*parameters.computations);
    return options;
  }

  const GraphTask task_;
  const RerunSearchOptions options_;
  const Time useful_;
  const bool is_free_;
};

}  // namespace

void add_search_parameters(Record<GraphSearchParameters>& record) {
  using Parameters = GraphSearchParameters;
  add_budget(record);
  record
      .optional("iterations", &Parameters::iterations, integer(0, 1'000'000),
                "rounds of improvement after the first plan; default: fewer, the larger the graph")
      .optional("seed", &Parameters::seed, integer(0, 1'000'000'000),
                "of the numbers that choose what is tried; default 1");
}

Planned searched_plan(const Problem& problem, const GraphSearchParameters& parameters) {
  return GraphSearch(problem, parameters).run();
}

namespace {

/// Whether a backward changes what a forward makes: the search makes it again before that only.
bool changes_forwards_in_backwards(const Workload& workload) {
  std::vector<bool> is_of_forward(workload.tensors.size(), false);
  for (std::uint32_t op = 0; op < workload.optimizer_begin; ++op) {
    const Operator& it = workload.operators[op];
    if (op < workload.forwards) {
      for (const TensorId made : workload.list(it.kept)) is_of_forward[index(made)] = true;
    } else if (std::ranges::any_of(workload.list(it.updates), [&](TensorId changed) {
                 return is_of_forward[index(changed)];
               })) {
      return true;
    }
  }
  return false;
}

/// Where the search does not see all that others may do: in an arena or a cache it knows bytes, but no
/// places, where plans of others may find theirs and its own of as many bytes do not.
void keep_plan_of_others(Planned& planned, const Problem& problem,
                         const GraphSearchParameters& parameters, ProcessorId processor) {
  const MemoryId home = problem.platform[processor].memory;
  const Bytes budget = budget_for(problem, processor, parameters);
  auto* best = std::get_if<Plan>(&planned);
  for (Plan& plan : plans_of({kRotor, kBlocks, "remat/xla"}, problem, processor, budget)) {
    limit_to(plan, problem, home, budget);
    const auto& time = plan.claims.makespan;
    const bool fits = claimed_peak(plan.claims, home).value_or(Bytes{}) <= budget;
    if (!time || !fits) continue;
    if (best != nullptr && best->claims.makespan && *best->claims.makespan <= *time) continue;
    plan.claims.chosen = std::exchange(plan.policy, parameters.name);
    plan.claims.optimal.reset();
    plan.claims.model_makespan.reset();
    plan.claims.model_peak.clear();
    // Of plans in the order of the graph: remat/xla has others, which may take less.
    if (best == nullptr)
      plan.bounds = {};
    else if (best->bounds.makespan && *best->bounds.makespan <= *time)
      plan.bounds = best->bounds;
    planned = std::move(plan);
    best = &std::get<Plan>(planned);
  }
}

}  // namespace

Planned plan_by_search(const Problem& problem, const GraphSearchParameters& parameters) {
  const ProcessorId processor = processor_for(problem, parameters);
  const auto plan = [&](const Problem& of, Bytes budget) {
    return searched_plan(of, with_budget(parameters, budget));
  };
  const Bytes budget = budget_for(problem, processor, parameters);
  Planned planned = plan_that_runs(problem, processor, budget, plan);
  const bool has_places =
      problem.platform[problem.platform[processor].memory].allocator != AllocatorKind::ideal;
  const bool is_network = problem.workload.forwards < problem.workload.operators.size();
  const bool sees_less = has_places || changes_forwards_in_backwards(problem.workload);
  if (sees_less && is_network && !parameters.computations)
    keep_plan_of_others(planned, problem, parameters, processor);
  return planned;
}

std::vector<Rerun> reruns_of(std::span<const std::uint32_t> computations,
                             const RerunGroups& groups) {
  std::vector<Rerun> reruns;
  std::vector<std::uint32_t> waiting;
  std::vector<bool> has_run(groups.of_node.size(), false);
  for (const std::uint32_t node : computations) {
    if (has_run[node]) {
      waiting.push_back(groups.of_node[node]);
      continue;
    }
    has_run[node] = true;
    for (const std::uint32_t group : waiting) reruns.push_back({node, group});
    waiting.clear();
  }
  std::ranges::sort(reruns);
  reruns.erase(std::unique(reruns.begin(), reruns.end()), reruns.end());
  return reruns;
}

}  // namespace plimsoll
