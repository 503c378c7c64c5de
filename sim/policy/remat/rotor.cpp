#include "policy/budget.hpp"
#include "policy/registry.hpp"
#include "policy/remat/keep_all.hpp"
#include "policy/remat/network_planner.hpp"
#include "policy/remat/rotor_frontier.hpp"
#include "policy/remat/rotor_table.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::int64_t kExact = 0;
constexpr std::int64_t kDefaultSlots = 500;
// What bounds memory: 1 GiB of values in slots or of points without, and 128 MiB of rows.
constexpr std::int64_t kMostValues = std::int64_t{1} << 27;
constexpr std::int64_t kMostPoints = std::int64_t{1} << 26;
constexpr std::size_t kMostStages = 4096;

struct RotorParameters : BudgetParameters {
  std::optional<Located<std::int64_t>> slots;
};

/// A number, or `exact`.
Format<std::int64_t> slots_format() {
  const Format<std::int64_t> number = integer(1, 1'000'000);
  const Format<std::int64_t> word = one_of<std::int64_t>({{"exact", kExact}});
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
        slots_(parameters.slots ? parameters.slots->value : kDefaultSlots),
        budget_(budget_for(problem, processor_, parameters)),
        costs_(chain_costs(problem, processor_)),
        unit_(size_unit(costs_)),
        after_backwards_(costs_.resident + costs_.input_gradient + costs_.optimizer_workspace) {
    for (const StageCosts& stage : costs_.stages) after_backwards_ += stage.lasting;
  }

  Planned run() {
    KeepAll all = keep_all(problem_, processor_, parameters_.name);
    if (budget_ >= all.needs) return std::move(all.plan);
    if (problem_.chain.stages.size() > kMostStages)
      refuse_parameter(parameters_.where,
                       fmt::format("the chain has {} stages; {} plans for at most {}",
                                   problem_.chain.stages.size(), parameters_.name, kMostStages));
    if (!problem_.workload.is_chain) return plan_on_network(all.needs);
    if (const ChainSequence sequence = best_sequence(budget_); !sequence.empty())
      return plan_of(problem_, processor_, sequence, parameters_.name);
    return infeasible(problem_, processor_, budget_,
                      std::min(all.needs, smallest_budget(all.needs)));
  }

 private:
  [[nodiscard]] bool is_exact() const { return slots_ == kExact; }

  Planned plan_on_network(Bytes all_needs) const {
    CostPlanner planner{.least = smallest_budget(all_needs),
                        .quick = [&](Bytes budget) { return quick_sequence(budget); }};
    if (is_exact()) planner.thorough = [&](Bytes budget) { return best_sequence(budget); };
    return plan_network({problem_, processor_, budget_, costs_, parameters_.name, all_needs},
                        planner);
  }

  [[nodiscard]] RotorChain in_slots(Bytes budget) const {
    return rotor_chain(costs_, unit_, budget - costs_.resident,
                       is_exact() ? kDefaultSlots : slots_);
  }

  [[nodiscard]] std::optional<RotorSchedule> schedule_in_slots(const RotorChain& chain) const {
    return guarded(kMostValues, "values; give fewer slots",
                   [&] { return rotor_in_slots(chain, kMostValues); });
  }

  /// Without rounding only where rounding leaves none.
  [[nodiscard]] ChainSequence quick_sequence(Bytes budget) const {
    if (budget < after_backwards_) return {};
    if (auto schedule = schedule_in_slots(in_slots(budget))) return std::move(schedule->sequence);
    return is_exact() ? best_sequence(budget) : ChainSequence{};
  }

  /// Empty where none fits.
  [[nodiscard]] ChainSequence best_sequence(Bytes budget) const {
    if (budget < after_backwards_) return {};
    const RotorChain rounded = in_slots(budget);
    auto schedule = schedule_in_slots(rounded);
    if (is_exact() && rounded.units == kDefaultSlots) {
      const Bytes available = budget - costs_.resident;
      const RotorChain exact = rotor_chain(costs_, unit_, available, available.count());
      schedule = checked(exact, guarded(kMostPoints, "points; give a number of slots instead",
                                        [&] { return rotor_exact(exact, schedule, kMostPoints); }));
    } else {
      schedule = checked(rounded, std::move(schedule));
    }
    return schedule ? std::move(schedule->sequence) : ChainSequence{};
  }

  template <class Solve>
  std::optional<RotorSchedule> guarded(std::int64_t most, const char* what, Solve solve) const {
    try {
      return solve();
    } catch (const TableTooLarge&) {
      refuse_parameter(parameters_.slots ? parameters_.slots->where : parameters_.where,
                       fmt::format("the table of {} stages has more than {} {}",
                                   costs_.stages.size(), most, what));
    }
  }

  /// The tables leave out schedules of more than 26 days.
  static std::optional<RotorSchedule> checked(const RotorChain& chain,
                                              std::optional<RotorSchedule> schedule) {
    if (!schedule && least_units(chain) <= chain.units) detail::throw_quantity_overflow();
    return schedule;
  }

  [[nodiscard]] bool fits(std::int64_t units) const {
    const RotorChain chain = rotor_chain(costs_, unit_, Bytes{units * unit_}, slots_);
    return least_units(chain) <= chain.units;
  }

  /// Slots grow with the budget and no size grows in slots, so that what fits one budget fits all
  /// larger ones. `all_needs` is where the search ends: there everything is kept.
  [[nodiscard]] Bytes smallest_budget(Bytes all_needs) const {
    constexpr std::int64_t kWithoutLimit = std::int64_t{1} << 58;
    const RotorChain exact =
        rotor_chain(costs_, unit_, Bytes{kWithoutLimit}, kWithoutLimit / unit_);
    std::int64_t fitting = least_units(exact);
    if (!is_exact() && fitting > slots_) {
      std::int64_t failing = fitting - 1, step = fitting / slots_ + 1;
      const std::int64_t most = (all_needs - costs_.resident).count() / unit_ + 1;
      for (; fitting < most && !fits(fitting); step *= 2) {
        failing = fitting;
        fitting = std::min(fitting + step, most);
      }
      while (fitting - failing > 1) {
        const std::int64_t middle = failing + (fitting - failing) / 2;
        (fits(middle) ? fitting : failing) = middle;
      }
    }
    return std::max(after_backwards_, costs_.resident + Bytes{fitting * unit_});
  }

  const Problem& problem_;
  const RotorParameters& parameters_;
  const ProcessorId processor_;
  const std::int64_t slots_;  ///< or kExact
  const Bytes budget_;
  const ChainCosts costs_;
  const std::int64_t unit_;
  Bytes after_backwards_;  ///< what is there during the optimizer, whatever the schedule
};

Planned plan_rotor(const Problem& problem, const RotorParameters& parameters) {
  return RotorPlanner(problem, parameters).run();
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
           "fits of about 20 schedules for different budgets and of those of remat/chen-greedy, "
           "remat/sqrt, remat/every-stage and remat/revolve, so never slower than one of these, "
           "and feasible where one of them is",
       .complexity =
           "O(slots L^3) time, O(slots L^2) memory at most; `exact`: points of frontiers instead "
           "of slots, refused beyond 67108864 of them in all. At most 4096 stages"},
      record, plan_rotor);
}

}  // namespace plimsoll
