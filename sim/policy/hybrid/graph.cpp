#include "base/dense_id.hpp"
#include "base/quantity_text.hpp"
#include "policy/graph/gap_bound.hpp"
#include "policy/hybrid/best.hpp"
#include "policy/hybrid/graph/energy_bound.hpp"
#include "policy/hybrid/graph/energy_costs.hpp"
#include "policy/hybrid/graph/graph_search.hpp"
#include "policy/hybrid/graph/known_energies.hpp"
#include "policy/hybrid/graph/link_bound.hpp"
#include "policy/hybrid/graph/runtime_factor.hpp"
#include "policy/hybrid/other_policy.hpp"
#include "policy/interface/left_out.hpp"
#include "policy/interface/registry.hpp"
#include "policy/remat/graph/search/graph_planner.hpp"
#include "policy/remat/graph/search/graph_task.hpp"
#include "policy/remat/segments/runs_within.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Steps of work that remat/search may take.
constexpr std::int64_t kWorkOfSearch = 2'000'000'000;

struct HybridGraphParameters : OffloadPlannerParameters {
  Located<PlanObjective> objective{PlanObjective::time, {}};
  std::optional<Located<Ratio>> runtime_factor = {};
  std::optional<std::int64_t> iterations = {};
  std::int64_t seed = 1;
};

/// What time may be worth where it is limited, as parts of the mean power of all operators.
constexpr std::int64_t kTimeWorths[] = {8, 2, 1};

std::int64_t iterations_for(const HybridGraphParameters& parameters, const OperatorGraph& graph) {
  if (parameters.iterations) return *parameters.iterations;
  const auto nodes = static_cast<std::int64_t>(graph.nodes.size());
  const std::int64_t at_most = std::max<std::int64_t>(600, 15'000 / (nodes + 1));
  return std::clamp<std::int64_t>(300'000 / (nodes + 1), 4, at_most);
}

/// The search itself, on a platform with a storage.
class OwnSearch {
 public:
  OwnSearch(const Problem& problem, const HybridGraphParameters& parameters,
            PlanObjective objective, Power worth, Bytes budget)
      : problem_(problem),
        parameters_(parameters),
        memories_(checked_memories(problem, parameters)),
        budget_(budget),
        graph_(operator_graph(problem, memories_.processor)),
        groups_(rerun_groups(graph_)),
        room_(room_within(budget, graph_)),
        costs_(search_costs(problem, memories_, graph_, objective, worth)),
        task_{problem, memories_, graph_, groups_, costs_, budget, parameters.name} {}

  Planned run(bool is_quick) {
    if (room_ < largest_step(graph_)) return no_plan();
    const Time bound = link_bound(problem_, memories_, graph_, groups_, room_);
    std::optional<Energy> least_energy;
    if (costs_.objective == PlanObjective::energy)
      least_energy = energy_bound(problem_, memories_, graph_, groups_, room_);
    GraphSearchOptions options{.iterations = is_quick ? 0 : iterations_for(parameters_, graph_),
                               .seed = static_cast<std::uint64_t>(parameters_.seed)};
    options.least = least_energy ? in_pj(*least_energy) : bound.count();
    if (parameters_.runtime_factor)
      options.most_time = most_time(graph_.time(), parameters_.runtime_factor->value);
    auto plan =
        search_graph(task_, options, chain_starts(problem_, memories_.processor, budget_, groups_));
    if (!plan) return no_plan();
    plan->bounds.makespan = bound;
    plan->bounds.energy = least_energy;
    plan->claims.chosen = parameters_.name;
    return std::move(*plan);
  }

 private:
  Infeasible no_plan() {
    const std::int64_t least = least_room(task_, std::max(room_, largest_step(graph_) - 1));
    Infeasible no =
        not_found(problem_, memories_.processor, budget_, graph_.resident + Bytes{least});
    no.is_found = least > largest_step(graph_);  // that operator needs it in any schedule
    return no;
  }

  const Problem& problem_;
  const HybridGraphParameters& parameters_;
  const OffloadMemories memories_;
  const Bytes budget_;
  const OperatorGraph graph_;
  const RerunGroups groups_;
  const std::int64_t room_;
  const SearchCosts costs_;
  const GraphSearchTask task_;
};

/// The search and those that it must not be behind.
class BestOfGraph {
 public:
  BestOfGraph(const Problem& problem, const HybridGraphParameters& parameters)
      : problem_(problem),
        parameters_(parameters),
        processor_(processor_for(problem, parameters)),
        graph_(operator_graph(problem, processor_)),
        budget_(budget_for(problem, processor_, parameters)) {
    if (is_for_energy())
      require_known_energies(problem, processor_, storage(), parameters.objective.where,
                             parameters.name);
  }

  Planned run() {
    if (storage()) {
      take(parameters_.name, own_plan(parameters_.objective.value));
      if (is_for_energy() && parameters_.runtime_factor) take_shorter();
      // A shorter step may need less, for all that idles meanwhile.
      if (is_for_energy() && !is_optimal()) take(parameters_.name, own_plan(PlanObjective::time));
    }
    if (!is_optimal() || may_reorder_runs()) ask_others();
    if (best_) return finished();
    if (shortest_) return too_long();
    return no_plan();
  }

 private:
  /// Without one only recomputation is left; where one is asked for, that is an error.
  [[nodiscard]] std::optional<MemoryId> storage() const {
    try {
      return checked_memories(problem_, parameters_).storage;
    } catch (const InputError&) {
      if (parameters_.to || parameters_.release) throw;
      return std::nullopt;
    }
  }

  Planned own_plan(PlanObjective objective, Power worth = Power{}) {
    const auto plan = [&](bool is_quick) {
      return [this, objective, worth, is_quick](const Problem& of, Bytes within) {
        return OwnSearch(of, parameters_, objective, worth, within).run(is_quick);
      };
    };
    return plan_that_runs(problem_, processor_, budget_, plan(false), plan(true));
  }

  /// Plans for which time counts beside energy, while none but these are known to end in time.
  void take_shorter() {
    const Time time = std::max(graph_.time(), Time{1});
    const auto pj = in_pj(energy_of_operators(problem_, processor_, graph_));
    const Power mean{static_cast<std::int64_t>(of_pj(pj).count() / time.count())};
    for (const std::int64_t part : kTimeWorths) {
      if (is_optimal()) return;
      take(parameters_.name,
           own_plan(PlanObjective::energy, Power{std::max<std::int64_t>(1, mean.count() / part)}));
    }
  }

  /// Time counts with all waits.
  [[nodiscard]] bool is_in_time(const Plan& plan) const {
    if (!parameters_.runtime_factor) return true;
    return plan.claims.makespan && *plan.claims.makespan <= time_limit();
  }

  /// Precondition: there is one.
  [[nodiscard]] Time time_limit() const {
    return most_time(graph_.time(), parameters_.runtime_factor->value);
  }

  /// A room in which the search finds a plan may not be enough to end in time.
  [[nodiscard]] Infeasible no_plan() const {
    Infeasible no = not_found(problem_, processor_, budget_,
                              parameters_.runtime_factor ? Bytes::unlimited() : smallest_);
    no.is_found = smallest_ > graph_.resident + Bytes{largest_step(graph_)};
    no.why += in_time_in_words(parameters_.runtime_factor);
    if (room_within(budget_, graph_) >= largest_step(graph_))
      no.why += ", as far as the search sees; that is no proof";
    no.why += left_out_text(left_out_);
    return no;
  }

  [[nodiscard]] Infeasible too_long() const {
    return {
        fmt::format("no plan within {} of {} ends within {}, {} times the operators, as far as "
                    "the search sees; the shortest takes {}",
                    to_text(budget_), problem_.platform[problem_.platform[processor_].memory].name,
                    to_text(time_limit()), as_fraction(parameters_.runtime_factor->value),
                    to_text(*shortest_)),
        problem_.platform[processor_].memory, Bytes::unlimited()};
  }

  /// Whether another order may be better than the best plan: only remat/search looks for one. No
  /// order is better than each operator once.
  [[nodiscard]] bool may_reorder_runs() const {
    if (!may_reorder(graph_, problem_.workload)) return false;
    if (!best_) return true;
    if (is_for_energy()) return cost_ != in_pj(energy_of_operators(problem_, processor_, graph_));
    return best_->claims.makespan != graph_.time();
  }

  void ask_others() {
    OtherAnswer answer = answer_of_best();
    const bool is_left_out = std::holds_alternative<LeftOut>(answer);
    take_answer("hybrid/best", std::move(answer));
    if (is_left_out || may_reorder_runs())
      take_answer("remat/search",
                  ask(problem_, "remat/search", parameters_, {.work = kWorkOfSearch}));
  }

  /// Its planners have limits of work of their own.
  [[nodiscard]] OtherAnswer answer_of_best() const {
    const auto plan = [&](const Problem& metered) { return fastest_of_all(metered, parameters_); };
    return answer_of(problem_, "hybrid/best", plan, WorkMeter::kNoLimit);
  }

  void take_answer(const char* name, OtherAnswer answer) {
    if (auto* left_out = std::get_if<LeftOut>(&answer))
      left_out_.push_back(std::move(*left_out));
    else if (auto* plan = std::get_if<Plan>(&answer))
      take(name, std::move(*plan));
    else
      take(name, std::get<Infeasible>(std::move(answer)));
  }

  void take(const std::string& name, Planned planned) {
    if (const auto* no = std::get_if<Infeasible>(&planned)) {
      smallest_ = std::min(smallest_, no->smallest_budget);
      return;
    }
    Plan& plan = std::get<Plan>(planned);
    if (!is_in_time(plan)) {
      const Time time = plan.claims.makespan.value_or(Time::unlimited());
      shortest_ = std::min(shortest_.value_or(time), time);
      return;
    }
    const SearchCosts costs{.objective = parameters_.objective.value};
    const auto cost = costs.of_plan(plan, problem_);
    if (name == parameters_.name) note_bounds(plan.bounds);
    if (best_ && (!cost || *cost >= cost_)) return;
    if (plan.claims.chosen.empty()) plan.claims.chosen = name;
    best_ = std::move(plan);
    cost_ = cost.value_or(std::numeric_limits<std::int64_t>::max());
  }

  /// Both hold for all plans of the search.
  void note_bounds(const Bounds& bounds) {
    if (!bound_) bound_ = bounds.makespan;
    if (!energy_bound_) energy_bound_ = bounds.energy;
  }

  [[nodiscard]] bool is_for_energy() const {
    return parameters_.objective.value == PlanObjective::energy;
  }

  [[nodiscard]] bool is_optimal() const {
    if (!best_) return false;
    if (is_for_energy()) return energy_bound_ && cost_ == in_pj(*energy_bound_);
    return bound_ && best_->claims.makespan == bound_;
  }

  [[nodiscard]] Plan finished() {
    best_->claims.optimal.reset();
    if (bound_) set_bounds();
    Plan plan = std::move(*best_);
    plan.policy = parameters_.name;
    plan.claims.left_out = left_out_;
    plan.claims.model_makespan.reset();
    plan.claims.model_peak.clear();
    return plan;
  }

  /// A plan in another order may be faster than all in this one, or need less energy.
  void set_bounds() {
    Bounds bounds{.makespan = bound_};
    if (best_->claims.makespan && *best_->claims.makespan < *bound_)
      bounds.makespan = graph_.time();
    if (is_for_energy()) bounds.energy = energy_bound_;
    if (bounds.energy && cost_ < in_pj(*bounds.energy))
      bounds.energy = energy_of_operators(problem_, processor_, graph_);
    bounds.keeps_order = *bounds.makespan > graph_.time() && may_reorder(graph_, problem_.workload);
    best_->bounds = bounds;
    const bool is_met =
        bounds.energy ? cost_ == in_pj(*bounds.energy) : best_->claims.makespan == bounds.makespan;
    if (is_met && !may_reorder_runs()) best_->claims.optimal = true;
  }

  const Problem& problem_;
  const HybridGraphParameters& parameters_;
  const ProcessorId processor_;
  const OperatorGraph graph_;
  const Bytes budget_;
  std::optional<Plan> best_;
  std::int64_t cost_ = 0;               ///< of the best plan
  std::optional<Time> bound_;           ///< of the search
  std::optional<Energy> energy_bound_;  ///< likewise
  std::optional<Time> shortest_;        ///< of the plans that take too long
  std::vector<LeftOut> left_out_;
  Bytes smallest_ = Bytes::unlimited();
};

Planned plan_hybrid_graph(const Problem& problem, const HybridGraphParameters& parameters) {
  return BestOfGraph(problem, parameters).run();
}

}  // namespace

PolicyInfo hybrid_graph_policy() {
  using Parameters = HybridGraphParameters;
  auto record = offload_record<Parameters>("hybrid/graph");
  add_budget(record);
  record
      .optional("objective", &Parameters::objective,
                located(one_of<PlanObjective>(
                    {{"time", PlanObjective::time}, {"energy", PlanObjective::energy}})),
                "what the plan is chosen for: `time` (default) or `energy`")
      .optional("runtime_factor", &Parameters::runtime_factor, runtime_factor_format(),
                "the most time, waits included, as a multiple of that of all operators, each once; "
                "default: no limit")
      .optional(
          "iterations", &Parameters::iterations, integer(0, 1'000'000),
          "neighbouring plans that are played after the prices are found, on each of two walks; "
          "default: fewer, the larger the graph")
      .optional("seed", &Parameters::seed, integer(0, 1'000'000'000),
                "of the numbers that choose what is tried; default 1");
  return make_policy<Parameters>(
      {.name = "hybrid/graph",
       .summary = "Runs single operators again and copies single tensors out and back, whatever a "
                  "search finds cheapest.",
       .paper = "none: remat/search with prices at which tensors come back from storage, which "
                "follow the waits for copies; then a local search on plans that are played. Where "
                "hybrid/best has a plan that costs less, it is that one",
       .assumes = "any workload of one processor, one microbatch; on chains only what others move "
                  "moves. Without storage only recomputation is left",
       .guarantees =
           "within the budget, and never behind hybrid/best, whose planners may take "
           "2000000000 steps of work each. The bound is a linear program of reruns and "
           "copies, of plans in the order of the graph and over one route; with "
           "`objective: energy` there is one for energy, too. claims.optimal says that it "
           "is met, and that no other order is better. claims.chosen names whose plan it "
           "is",
       .complexity =
           "at most 18 searches for a first plan of remat/search, and two plays of O(steps log "
           "steps) for each iteration; then hybrid/best"},
      record, plan_hybrid_graph);
}

}  // namespace plimsoll
