#include "base/quantity_text.hpp"
#include "plan/build/plan_builder.hpp"
#include "plan/core/reached.hpp"
#include "policy/budget/budget.hpp"
#include "policy/claims/judged_claims.hpp"
#include "policy/interface/memory_named.hpp"
#include "policy/interface/registry.hpp"
#include "policy/offload/systems/placement_model.hpp"
#include "policy/remat/segments/runs_within.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::size_t kMostPlacedOperators = 2'000;
/// By which slow memories are compared where none is named.
constexpr Bytes kPlacementProbe{1 << 20};

struct PlacementParameters : BudgetParameters {
  std::optional<Located<std::string>> to;
  std::int64_t nodes = 1'000;
};

class TensorPlacement {
 public:
  TensorPlacement(const Problem& problem, const PlacementParameters& parameters)
      : problem_(problem),
        parameters_(parameters),
        processor_(processor_for(problem, parameters)),
        home_(problem.platform[processor_].memory),
        slow_(slow_memory()),
        room_(slow_ ? problem.platform[*slow_].usable() : Bytes{}),
        model_(problem, processor_, slow_.value_or(home_)) {}

  Planned run() {
    const auto within = [this](const Problem& of, Bytes budget) { return plan_within(of, budget); };
    const auto quick = [this](const Problem& of, Bytes budget) { return quick_plan(of, budget); };
    return plan_that_runs(problem_, processor_, budget_for(problem_, processor_, parameters_),
                          within, quick);
  }

 private:
  /// For the many smaller budgets where space breaks up: without the solver, tensor after tensor leaves.
  [[nodiscard]] Planned quick_plan(const Problem& of, Bytes budget) const {
    const SlowSet none(model_.tensors().size(), false);
    const auto slow = model_.completed(none, budget, room_);
    if (!slow) return infeasible(problem_, processor_, budget, model_.peak_at_home(none));
    return plan_of(of, budget, *slow, Time{}, true);
  }

  [[nodiscard]] Planned plan_within(const Problem& of, Bytes budget) const {
    const SlowSet none(model_.tensors().size(), false);
    if (model_.peak_at_home(none) <= budget) return plan_of(of, budget, none, Time{}, true);
    if (!slow_) return no_plan(budget, true);
    std::optional<SlowSet> best = model_.completed(none, budget, room_);
    const WholeSolution found = solve(model_.least_cost(budget, room_),
                                      static_cast<int>(parameters_.nodes), of.work, Presolve::no);
    if (found.columns) {
      // What the solver's rounding let pass is completed.
      const auto solved = model_.completed(taken_from(*found.columns), budget, room_);
      if (solved && (!best || model_.cost(*solved) < model_.cost(*best))) best = solved;
    }
    if (!best) return no_plan(budget, found.is_impossible);
    const Time bound = std::min(model_.next_cost(Time{found.bound}), model_.cost(*best));
    return plan_of(of, budget, *best, bound, found.is_closed);
  }

  [[nodiscard]] std::optional<MemoryId> slow_memory() const {
    const Processor& unit = problem_.platform[processor_];
    if (problem_.workload.operators.size() > kMostPlacedOperators)
      refuse(
          parameters_.where,
          fmt::format("`{}` has {} operators; {} takes at most {}", problem_.workload.name,
                      problem_.workload.operators.size(), parameters_.name, kMostPlacedOperators));
    if (!parameters_.to) return fastest(unit.reaches);
    const MemoryId named = memory_named(problem_, *parameters_.to);
    if (std::ranges::find(unit.reaches, named) == unit.reaches.end())
      refuse(parameters_.to->where,
             fmt::format("operators of `{}` do not reach `{}`", unit.name, parameters_.to->value),
             fmt::format("`processors.{}.reaches` lists what they do", unit.key()));
    return named;
  }

  [[nodiscard]] std::optional<MemoryId> fastest(const std::vector<MemoryId>& reached) const {
    if (reached.empty()) return std::nullopt;
    return *std::ranges::min_element(reached, {}, [&](MemoryId id) {
      const Memory& memory = problem_.platform[id];
      return time_to_read(memory, kPlacementProbe) + time_to_write(memory, kPlacementProbe);
    });
  }

  /// The columns of tensors, which are the first ones.
  [[nodiscard]] SlowSet taken_from(const std::vector<double>& columns) const {
    SlowSet slow(model_.tensors().size());
    for (std::size_t t = 0; t < slow.size(); ++t) slow[t] = columns[t] > 0.5;
    return slow;
  }

  /// `bound`: what living in the slow memory costs at least.
  [[nodiscard]] Plan plan_of(const Problem& of, Bytes budget, const SlowSet& slow, Time bound,
                             bool is_closed) const {
    PlanBuilder builder(of.workload, of.platform, parameters_.name);
    for (std::size_t t = 0; t < slow.size(); ++t)
      if (slow[t]) builder.keep_in(model_.tensors()[t].tensor, *slow_);
    const LaneId stream = builder.stream(processor_);
    for (std::uint32_t op = 0; op < of.workload.operators.size(); ++op)
      builder.compute(stream, OperatorId{op});
    if (!budget.is_unlimited()) builder.limit(home_, budget);
    Plan plan = builder.finish();
    Time once;
    for (const Time time : durations(of.workload, of.platform, processor_)) once += time;
    claim(of, plan, once + model_.cost(slow), slow);
    plan.bounds.makespan = once + bound;
    if (model_.cost(slow) == bound) plan.claims.optimal = true;
    if (!is_closed)
      plan.notes.push_back(
          fmt::format("the branch and bound ended at {} nodes, so that a better "
                      "placement may exist",
                      parameters_.nodes));
    return plan;
  }

  /// Where space breaks up, what the judge sees.
  void claim(const Problem& of, Plan& plan, Time makespan, const SlowSet& slow) const {
    std::vector<MemoryId> memories{home_};
    if (slow_) memories.push_back(*slow_);
    const bool is_counted = std::ranges::all_of(
        memories, [&](MemoryId id) { return of.platform[id].allocator == AllocatorKind::ideal; });
    if (!is_counted) {
      claim_by_judge(plan, of, memories);
      return;
    }
    plan.claims.makespan = plan.claims.period = makespan;
    plan.claims.peak = {{home_, model_.peak_at_home(slow)}};
    if (slow_) plan.claims.peak.emplace_back(*slow_, model_.peak_of_slow(slow));
  }

  [[nodiscard]] Infeasible no_plan(Bytes budget, bool is_proven) const {
    const SlowSet none(model_.tensors().size(), false);
    if (!slow_) {
      Infeasible no = infeasible(problem_, processor_, budget, model_.peak_at_home(none));
      no.why += fmt::format("; operators of `{0}` reach no other memory (`processors.{0}.reaches`)",
                            problem_.platform[processor_].name);
      return no;
    }
    const WholeSolution found =
        solve(model_.least_budget(room_), static_cast<int>(parameters_.nodes), problem_.work,
              Presolve::no);
    const SlowSet slow = found.columns ? taken_from(*found.columns) : none;
    Infeasible no = infeasible(problem_, processor_, budget, model_.peak_at_home(slow));
    no.why += fmt::format("; the rest would live in `{}`, which has room for {}",
                          problem_.platform[*slow_].name, to_text(room_));
    if (!is_proven || !found.is_closed) no.why += ", as far as the search sees; that is no proof";
    return no;
  }

  const Problem& problem_;
  const PlacementParameters& parameters_;
  const ProcessorId processor_;
  const MemoryId home_;
  const std::optional<MemoryId> slow_;
  const Bytes room_;
  const PlacementModel model_;
};

Planned plan_placement(const Problem& problem, const PlacementParameters& parameters) {
  return TensorPlacement(problem, parameters).run();
}

}  // namespace

PolicyInfo offload_placement_policy() {
  using Parameters = PlacementParameters;
  auto record = single_processor_record<Parameters>("offload/placement");
  add_budget(record);
  record
      .optional("to", &Parameters::to, located(name()),
                "the memory for what does not fit, which operators read and write where it is "
                "(`reaches` of the processor); default: the fastest that it reaches")
      .optional("nodes", &Parameters::nodes, integer(0, 10'000'000),
                "of the branch and bound, before it gives up the proof; default 1000");
  return make_policy<Parameters>(
      {.name = "offload/placement",
       .summary = "Places each tensor for its whole life in the processor's memory or in a slower "
                  "one that it reaches, and copies nothing.",
       .paper = "none: what compilers for microcontrollers do with SRAM and external RAM, as an "
                "integer program, solved by CBC",
       .assumes = fmt::format("a workload of one processor, of at most {} operators. Where it "
                              "reaches no other memory, all lives in its own, as do workspaces",
                              kMostPlacedOperators),
       .guarantees =
           "within the budget. The bound holds for all plans of its kind: in the order of "
           "the workload, nothing run again, nothing moved. It is the solver's, to a "
           "millionth, where `nodes` were enough",
       .complexity =
           "an integer program of a column a tensor and a row an operator; exponential in "
           "the worst case, for at most `nodes`"},
      record, plan_placement);
}

}  // namespace plimsoll
