#include "policy/budget/budget.hpp"
#include "policy/budget/with_budget.hpp"
#include "policy/interface/registry.hpp"
#include "policy/remat/rotor/network_planner.hpp"
#include "policy/remat/rotor/rotor_budgets.hpp"
#include "policy/remat/rotor/rotor_frontier.hpp"
#include "policy/remat/segments/keep_all.hpp"
#include "policy/remat/segments/runs_within.hpp"

#include <algorithm>
#include <type_traits>

#include <fmt/format.h>

namespace plimsoll {

namespace {

// What bounds memory: 1 GiB of points, as of values in slots, and 128 MiB of rows.
constexpr std::int64_t kMostPoints = std::int64_t{1} << 26;
constexpr std::size_t kMostRotorStages = 4096;

/// With the limit that few checkpoints give a table has more points than with that of all.
constexpr std::int64_t kFarTooMany = 2 * kMostPoints;
constexpr std::size_t kSparse = 16;

constexpr const char* kNumber = "give a number of slots instead";

struct RotorParameters : BudgetParameters {
  std::optional<Located<std::int64_t>> slots;
};

/// A number, or `exact`.
Format<std::int64_t> slots_format() {
  const Format<std::int64_t> number = integer(1, 1'000'000);
  const Format<std::int64_t> word = one_of<std::int64_t>({{"exact", RotorBudgets::kExact}});
  Shape shape;
  shape.kind = Shape::Kind::either;
  shape.title = expected(number.shape) + " or `exact`";
  shape.parts = {number.shape, word.shape};
  const auto read = [shape, number, word](const Node& node, Diagnostics& diagnostics) {
    Diagnostics ignored;
    if (const auto exact = word.read(node, ignored)) return exact;
    if (const auto slots = number.read(node, ignored)) return slots;
    detail::report_kind(node, shape, diagnostics);
    return std::optional<std::int64_t>{};
  };
  return {read, shape};
}

class RotorPlanner {
 public:
  RotorPlanner(const Problem& problem, const RotorParameters& parameters)
      : problem_(problem),
        parameters_(parameters),
        processor_(processor_for(problem, parameters)),
        is_exact_(parameters.slots && parameters.slots->value == RotorBudgets::kExact),
        budget_(budget_for(problem, processor_, parameters)),
        costs_(chain_costs(problem, processor_)),
        budgets_(costs_, parameters.slots ? parameters.slots->value : RotorBudgets::kDefaultSlots) {
  }

  Planned run() {
    KeepAll all = keep_all(problem_, processor_, parameters_.name);
    if (budget_ >= all.needs) return std::move(all.plan);
    if (problem_.chain.stages.size() > kMostRotorStages)
      refuse(parameters_.where,
             fmt::format("the chain has {} stages; {} plans for at most {}",
                         problem_.chain.stages.size(), parameters_.name, kMostRotorStages));
    if (!problem_.workload.is_chain) return plan_on_network(all.needs);
    if (const ChainSequence sequence = best_sequence(budget_); !sequence.empty())
      return plan_of(problem_, processor_, sequence, parameters_.name);
    return infeasible(problem_, processor_, budget_,
                      std::min(all.needs, budgets_.smallest(all.needs)));
  }

 private:
  Planned plan_on_network(Bytes all_needs) const {
    CostPlanner planner{.least = budgets_.smallest(all_needs),
                        .quick = [&](Bytes budget) { return quick_sequence(budget); }};
    if (is_exact_) planner.thorough = [&](Bytes budget) { return best_sequence(budget); };
    return plan_network(
        {problem_, processor_, budget_, costs_, parameters_.name, all_needs, parameters_.improve},
        {std::move(planner)});
  }

  [[nodiscard]] std::optional<RotorSchedule> schedule_in_slots(Bytes budget) const {
    return guarded("values", fewer_slots(), [&] { return budgets_.schedule(budget); });
  }

  /// Without rounding only where rounding leaves none.
  [[nodiscard]] ChainSequence quick_sequence(Bytes budget) const {
    if (auto schedule = schedule_in_slots(budget)) return std::move(schedule->sequence);
    return is_exact_ ? best_sequence(budget) : ChainSequence{};
  }

  /// Empty where none fits.
  [[nodiscard]] ChainSequence best_sequence(Bytes budget) const {
    if (!budgets_.can_end(budget)) return {};
    RotorChain chain = budgets_.in_slots(budget);
    const bool rounds = is_exact_ && chain.units == RotorBudgets::kDefaultSlots;
    if (rounds) {
      chain = budgets_.unrounded(budget);
      foresee(budget, chain);
    }
    auto schedule = schedule_in_slots(budget);
    if (rounds)
      schedule =
          guarded("points", kNumber, [&] { return rotor_exact(chain, schedule, kMostPoints); });
    // The tables leave out schedules of more than 26 days.
    if (!schedule && least_units(chain) <= chain.units) detail::throw_quantity_overflow();
    return schedule ? std::move(schedule->sequence) : ChainSequence{};
  }

  /// Refuses what will have far too many points before it is looked at in slots.
  void foresee(Bytes budget, const RotorChain& unrounded) const {
    const auto limit =
        guarded("values", fewer_slots(), [&] { return budgets_.quick_limit(budget); });
    if (limit && tells_of_too_many(unrounded, *limit, kFarTooMany, kSparse))
      refuse_too_large({kMostPoints}, "points", kNumber);
  }

  [[nodiscard]] const char* fewer_slots() const {
    return is_exact_ ? "give a number of slots below 500 instead" : "give fewer slots";
  }

  template <class Solve>
  std::invoke_result_t<Solve> guarded(const char* what, const char* instead, Solve solve) const {
    try {
      return solve();
    } catch (const TableTooLarge& table) {
      refuse_too_large(table, what, instead);
    }
  }

  [[noreturn]] void refuse_too_large(const TableTooLarge& table, const char* what,
                                     const char* instead) const {
    const std::string expected =
        table.about > 0 ? fmt::format(", about {}", table.about) : std::string{};
    refuse(parameters_.slots ? parameters_.slots->where : parameters_.where,
           fmt::format("the table of {} stages has more than {} {}{}; {}", costs_.stages.size(),
                       table.most, what, expected, instead));
  }

  const Problem& problem_;
  const RotorParameters& parameters_;
  const ProcessorId processor_;
  const bool is_exact_;
  const Bytes budget_;
  const ChainCosts costs_;
  const RotorBudgets budgets_;
};

Planned plan_rotor(const Problem& problem, const RotorParameters& parameters) {
  const ProcessorId processor = processor_for(problem, parameters);
  const auto plan = [&](const Problem& of, Bytes budget) {
    const RotorParameters asked = with_budget(parameters, budget);
    return RotorPlanner(of, asked).run();
  };
  return plan_that_runs(problem, processor, budget_for(problem, processor, parameters), plan);
}

}  // namespace

PolicyInfo remat_rotor_policy() {
  auto record = budget_record<RotorParameters>("remat/rotor");
  record.optional("slots", &RotorParameters::slots, located(slots_format()),
                  "equal parts of the budget that sizes are rounded up to, or `exact`: none; "
                  "default 500");
  return make_policy<RotorParameters>(
      {.name = "remat/rotor",
       .summary = "The fastest schedule within a budget that holds what it stores until its use.",
       .paper =
           "Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova, \"Optimal checkpointing for "
           "heterogeneous chains\", arXiv:1911.13214; the recursion as in the authors' later code, "
           "with both gradients counted at a backward's peak. Ours: gradients of parameters that "
           "stay, the pruning of the tables, and `exact`",
       .assumes =
           "a chain (networks are cut at articulation points, and a stage runs whole) with general "
           "costs; on networks these bound from above what execution needs, so that larger budgets "
           "are tried as well and the claims of the plans tell which fit",
       .guarantees =
           "the peak is at most the budget; a budget that `none` meets costs no time. With `exact` "
           "the least time of all persistent schedules (what is stored stays until its use) by the "
           "chain's costs; with slots the least of those that fit after rounding, sizes up, budget "
           "down. Schedules that drop a stored value to make it again may be faster still. What is "
           "infeasible names the smallest budget, for the same slots. On networks the fastest that "
           "fits of about 20 of its own schedules, for different budgets. With `improve` also of "
           "those of remat/chen-greedy, remat/sqrt (by default), remat/every-stage and "
           "remat/revolve (up to 64 snapshots and 64 forwards a stage): never slower than one of "
           "these, and feasible where one of them is",
       .complexity =
           "O(slots L^3) time, O(slots L^2) memory at most; `exact`: points of frontiers instead "
           "of slots, refused beyond 67108864 of them in all. At most 4096 stages",
       .is_for_chains = true},
      record, plan_rotor);
}

}  // namespace plimsoll
