#include "base/names_hint.hpp"
#include "policy/interface/registry.hpp"
#include "policy/offload/model/fluid_bound.hpp"
#include "policy/offload/search/branch_and_bound.hpp"
#include "policy/offload/search/planner.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

struct ExactParameters : OffloadPlannerParameters {
  std::optional<std::vector<Located<std::string>>> set;
  std::int64_t nodes = static_cast<std::int64_t>(kSearchLimits.nodes);
};

/// The stage that is named, or meant by its number from 1.
std::size_t stage_named(const Problem& problem, const Located<std::string>& name,
                        std::size_t candidates) {
  std::vector<std::string> names;
  for (const ChainStage& stage : problem.chain.stages) {
    const std::string& first = problem.workload.operators[stage.forward_begin].name;
    names.push_back(first.substr(0, first.rfind(".forward")));
  }
  std::size_t stage = 0;
  const char* end = name.value.data() + name.value.size();
  if (std::from_chars(name.value.data(), end, stage).ptr != end)
    stage = static_cast<std::size_t>(std::ranges::find(names, name.value) - names.begin()) + 1;
  if (stage == 0 || stage > names.size())
    refuse(name.where,
           fmt::format("`{}` is not a stage of the chain; expected a name or 1 to {}", name.value,
                       names.size()),
           hint_of_names(name.value, names));
  if (stage > candidates)
    refuse(name.where, fmt::format("stage {} is one of the last two, which are needed "
                                   "back at once and stay",
                                   stage));
  return stage - 1;
}

std::optional<OffloadSet> set_of(const Problem& problem, const ExactParameters& parameters,
                                 const OffloadModel& model) {
  if (!parameters.set) return std::nullopt;
  OffloadSet set(model.stages.size(), false);
  std::vector<bool> named(model.stages.size(), false);
  for (const auto& name : *parameters.set) {
    const std::size_t stage = stage_named(problem, name, model.candidates);
    if (named[stage])
      refuse(name.where, fmt::format("stage {} is in the set twice", stage + 1),
             "name each stage once");
    named[stage] = true;
    set[stage] = true;
  }
  return set;
}

/// Beginnings to look at when only some schedule is wanted.
constexpr std::size_t kNodesForAny = 20'000;

/// The task, and the schedules that answer it.
class ExactSearch {
 public:
  ExactSearch(const Problem& problem, const ExactParameters& parameters)
      : problem_(problem),
        parameters_(parameters),
        task_(offload_task(problem, parameters)),
        set_(set_of(problem, parameters, task_.model)),
        smallest_(set_ ? smallest_budget(task_.model, *set_) : task_.smallest) {}

  Planned best() const {
    if (is_hopeless()) return none();
    std::vector<Timed> found = known();
    bool is_proven = false;
    if (is_searched()) {
      const Time bound = fluid_bound(task_.model).value_or(Time{});
      BestSchedule best = best_schedule(task_.model, set_, std::move(found), bound,
                                        limits(static_cast<std::size_t>(parameters_.nodes)));
      is_proven = best.is_proven;
      found.clear();
      if (best.schedule) found.push_back(std::move(*best.schedule));
    }
    if (found.empty()) return none();
    Plan plan = best_plan(problem_, task_, std::move(found), parameters_);
    if (!set_ && !is_searched()) plan.claims.chosen = "offload/dynamic";
    is_proven |= plan.claims.makespan && plan.bounds.makespan == plan.claims.makespan;
    plan.claims.optimal = is_proven;
    if (is_proven && plan.claims.makespan) plan.bounds.makespan = plan.claims.makespan;
    return plan;
  }

  [[nodiscard]] bool has_plan() const {
    if (is_hopeless()) return false;
    std::vector<Timed> found = known();
    if (found.empty() && is_searched()) {
      BestSchedule any =
          best_schedule(task_.model, set_, {}, Time::unlimited(), limits(kNodesForAny));
      if (any.schedule) found.push_back(std::move(*any.schedule));
    }
    return !found.empty() &&
           best_plan(problem_, task_, std::move(found), parameters_).claims.makespan;
  }

 private:
  [[nodiscard]] bool is_hopeless() const {
    return !task_.budget.is_unlimited() && task_.budget < smallest_;
  }
  [[nodiscard]] bool is_searched() const {
    return task_.is_model_exact && task_.model.candidates <= kSearchLimits.candidates;
  }
  [[nodiscard]] Infeasible none() const {
    return infeasible(problem_, task_.memories.processor, task_.budget, smallest_);
  }

  static SearchLimits limits(std::size_t nodes) {
    SearchLimits limits = kSearchLimits;
    limits.nodes = nodes;
    return limits;
  }

  /// Schedules to start from.
  [[nodiscard]] std::vector<Timed> known() const {
    if (!set_) {
      std::vector<Timed> found = dynamic_runs(task_).runs;
      if (is_searched()) std::ranges::move(greedy_runs(task_).runs, std::back_inserter(found));
      return found;
    }
    std::vector<Timed> runs;
    run_set(task_.model, *set_, runs);
    return runs;
  }

  const Problem& problem_;
  const ExactParameters& parameters_;
  const OffloadTask task_;
  const std::optional<OffloadSet> set_;
  const Bytes smallest_;
};

Planned plan_exact(const Problem& problem, const ExactParameters& parameters) {
  Planned planned = offload_for_budget(
      problem, parameters,
      [&](const Problem& of, Bytes budget) {
        const ExactParameters asked = with_budget(parameters, budget);
        return ExactSearch(of, asked).best();
      },
      [&](const Problem& of, Bytes budget) {
        const ExactParameters asked = with_budget(parameters, budget);
        return ExactSearch(of, asked).has_plan();
      });
  if (parameters.set || !parameters.improve) return planned;
  return not_behind_prefix(problem, parameters, std::move(planned));
}

}  // namespace

PolicyInfo offload_exact_policy() {
  auto record = offload_planner_record<ExactParameters>("offload/exact");
  record
      .optional("set", &ExactParameters::set, list_of(located(name())),
                "what to offload, and nothing else: names of stages, or their numbers from 1; "
                "default: the best set")
      .optional("nodes", &ExactParameters::nodes, integer(0, 1'000'000'000),
                "beginnings of schedules to look at before giving up the proof; default 1000000");
  return make_policy<ExactParameters>(
      {.name = "offload/exact",
       .summary = "The best set to offload, with the best order of every copy, for small chains.",
       .paper = "branch and bound over the set, the orders of copies and their interleaving; the "
                "problem is that of Beaumont, Eyraud-Dubois, Shilova 2020, Euro-Par 2020, "
                "doi:10.1007/978-3-030-57675-2_10",
       .assumes =
           "a chain whose backwards are not split, full-duplex `fifo` links, `ideal` "
           "allocators; stages 1..L-2 may move, each once. Elsewhere, and beyond 24 such "
           "stages, nothing is searched: it takes the plan of offload/dynamic, and claims.chosen "
           "says so",
       .guarantees = "the optimum where claims.optimal says so, and then the bound is its time "
                     "(with `set`, of what moves that set); otherwise the best schedule found, "
                     "and the gap to a proven lower bound of every offload without recomputation. "
                     "Small storage is part of the problem: what may have to wait for it, waits",
       .complexity = "exponential in L; stops after `nodes`. With `improve`, where it proves "
                     "nothing, smaller "
                     "budgets are tried as by offload/dynamic, and offload/prefix"},
      record, plan_exact);
}

}  // namespace plimsoll
