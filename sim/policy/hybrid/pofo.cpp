#include "policy/hybrid/pofo.hpp"

#include "policy/budget/budget_limit.hpp"
#include "policy/budget/claims_with_room.hpp"
#include "policy/budget/problem_with_capacity.hpp"
#include "policy/budget/smaller_budgets.hpp"
#include "policy/claims/peak_bound.hpp"
#include "policy/hybrid/other_policy.hpp"
#include "policy/hybrid/pofo_runs.hpp"
#include "policy/interface/registry.hpp"
#include "policy/remat/chain/chain_sequence.hpp"
#include "policy/remat/segments/keep_all.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <span>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::int64_t kDefaultSlots = 50;
constexpr std::int64_t kInnerSlots = 500;
constexpr std::int64_t kMostStages = 256;
/// Enough for all segments of the longest chain: 128 MiB.
constexpr std::int64_t kMostValues = std::int64_t{1} << 24;
static_assert(kMostStages * (kMostStages + 1) / 2 * (kInnerSlots + 1) <= kMostValues);
constexpr std::size_t kCuts = 6;  ///< of each program
// Where the model is not exact:
constexpr std::size_t kPlans = 8;  ///< compared by their claims, of each search
/// Budgets that the model is told, up to twice the real one or below it: so many between powers of
/// two.
constexpr std::int64_t kToldAbove = 32, kToldBelow = 8;

constexpr std::int64_t kPartsOnNetworks = 2;

/// What the program believes of the link, in quarters: whole copies hold memory for longer than
/// fluid ones, as a slower link would.
constexpr std::int64_t kQuarters[] = {4, 3, 2};

/// Simpler policies that are asked with `improve`.
constexpr const char* kSimpler[] = {"remat/rotor", "offload/dynamic"};

struct PofoParameters : OffloadPlannerParameters {
  std::int64_t slots = kDefaultSlots;
  Time useful = Time::unlimited();  ///< of who asks: slower plans are not looked for
};

/// Between such budgets next to `budget`.
Bytes told_step(Bytes budget, std::int64_t parts) {
  const auto octave = std::bit_floor(static_cast<std::uint64_t>(budget.count()));
  return Bytes{std::max<std::int64_t>(static_cast<std::int64_t>(octave) / parts, 1)};
}

Bytes told_above(Bytes budget) {
  const Bytes step = told_step(budget, kToldAbove);
  return Bytes{(budget.count() / step.count() + 1) * step.count()};
}

Bytes told_below(Bytes budget) {
  const Bytes step = told_step(budget - Bytes{1}, kToldBelow);
  return Bytes{(budget.count() - 1) / step.count() * step.count()};
}

/// Whether the best plan is wanted or any.
enum class Effort : std::uint8_t { best, any };

/// The program and the plays of what it finds. Each may throw QuantityOverflow, where copies take
/// months.
class PofoSearch {
 public:
  PofoSearch(const Problem& problem, const PofoParameters& parameters)
      : problem_(problem),
        parameters_(parameters),
        task_(offload_task(problem, parameters)),
        costs_(chain_costs(problem, task_.memories.processor)),
        copies_(pofo_copies(problem, task_.memories, task_.model)),
        after_backwards_(costs_.resident + costs_.input_gradient + costs_.optimizer_workspace) {
    for (const StageCosts& stage : costs_.stages) after_backwards_ += stage.lasting;
  }

  /// Plans for one budget after the other that the model is told, as far as they end under the real
  /// one. On networks stages need less than their costs say, so that more may fit than the model
  /// knows of; or the copies of a plan meet otherwise than the model has them, so that it does not
  /// end: then the model is told less, until one does. But for the real one, what it is told are the
  /// same budgets for all, so that more memory seldom has no plan where less has one.
  std::optional<Plan> best_plan(Bytes budget, Effort effort) {
    std::optional<Plan> best;
    bool ends = improve(best, budget, budget, effort);
    const auto done = [&] { return !ends || (best && effort == Effort::any); };
    if (!problem_.workload.is_chain)
      for (Bytes told = told_above(budget); told <= budget * 2 && !done(); told = told_above(told))
        ends = improve(best, budget, told, effort);
    if (is_exact()) return best;
    for (Bytes told = told_below(budget); !best && told >= after_backwards_;
         told = told_below(told))
      improve(best, budget, told, effort);
    return best;
  }

  /// Between what no plan can do without and `most`, which one of the families meets: the least
  /// budget tried with a plan.
  [[nodiscard]] Bytes smallest_budget(Bytes most) {
    Bytes low = std::max(
        task_.budget, std::max(after_backwards_, largest_operator(problem_.workload)) - Bytes{1});
    while (most - low > Bytes{1} + Bytes{most.count() / 256}) {
      const Bytes middle{low.count() + (most - low).count() / 2};
      const bool is_met = best_plan(middle, Effort::any) || best_plan(middle, Effort::best);
      (is_met ? most : low) = middle;
    }
    return most;
  }

  /// Whether the model's times are the engine's.
  [[nodiscard]] bool is_exact() const {
    return task_.is_model_exact && task_.model.storage.is_unlimited();
  }

  /// Of the best cut for the budget itself.
  [[nodiscard]] std::optional<Time> model_makespan() const { return model_makespan_; }

 private:
  /// With the model's plans for `told` that end under `budget`; false where it has some and none
  /// of them ends.
  bool improve(std::optional<Plan>& best, Bytes budget, Bytes told, Effort effort) {
    auto [known, is_new] = found_.try_emplace({told, effort});
    if (is_new) known->second = search(told, effort);
    const std::vector<Timed>& runs = known->second;
    bool ends = runs.empty();
    for (const Timed& run : runs) {
      Plan plan = plan_of(problem_, task_.memories, run.sequence, {task_.release, budget, true},
                          parameters_.name);
      if (!plan.claims.makespan) continue;
      ends = true;
      if (!best || *plan.claims.makespan < *best->claims.makespan) best = std::move(plan);
      if (effort == Effort::any) break;
    }
    return ends;
  }

  /// The best runs of the best cuts for `budget`, by what the program believes of the link.
  std::vector<Timed> search(Bytes budget, Effort effort) {
    std::vector<Timed> found;
    if (budget < after_backwards_) return found;
    const PofoInner inner(costs_, budget - costs_.resident, kInnerSlots, kMostValues, most_again());
    OffloadModel model = task_.model;
    model.budget = budget;
    for (const std::int64_t quarters : kQuarters) {
      const auto believed = [&](ByteRate rate) {
        return rate * Ratio{kWhole.count() / 4 * quarters};
      };
      const PofoLink link{believed(model.out_rate), believed(model.in_rate)};
      const auto cuts = best_cuts(costs_, link, inner, parameters_.slots, kCuts, most_again());
      if (budget == task_.budget && quarters == kQuarters[0] && !cuts.empty())
        model_makespan_ = cuts.front().makespan;
      for (const PofoCut& cut : cuts) {
        const PofoScore score = score_of(cut, inner, costs_, copies_);
        if (moved_by(score) <= model.storage) run_score(model, score, found);
      }
      if (effort == Effort::any) break;
    }
    std::ranges::stable_sort(found, {}, &Timed::makespan);
    const std::size_t most = is_exact() ? 1 : kPlans;
    if (found.size() > most) found.resize(most);
    return found;
  }

  [[nodiscard]] Time most_again() const {
    if (parameters_.useful.is_unlimited()) return Time::unlimited();
    return parameters_.useful - costs_.compute_time();
  }

  static Bytes moved_by(const PofoScore& score) {
    Bytes sum;
    for (const PofoTrip& trip : score.trips) sum += trip.copy.bytes;
    return sum;
  }

  const Problem& problem_;
  const PofoParameters& parameters_;
  const OffloadTask task_;
  const ChainCosts costs_;
  const PofoCopies copies_;
  Bytes after_backwards_;  ///< what is there during the optimizer, whatever the schedule
  std::optional<Time> model_makespan_;
  std::map<std::pair<Bytes, Effort>, std::vector<Timed>> found_;  ///< by what the model was told
};

/// Nothing where copies take months: what is left then is to run stages again.
template <class Part>
auto in_range(Part part) -> std::optional<decltype(part())> {
  try {
    return part();
  } catch (const QuantityOverflow&) {
    return std::nullopt;
  }
}

class PofoPlanner {
 public:
  PofoPlanner(const Problem& problem, const PofoParameters& parameters)
      : problem_(problem),
        parameters_(parameters),
        memories_(checked_memories(problem, parameters)),
        budget_(budget_for(problem, memories_.processor, parameters)),
        least_time_(chain_costs(problem, memories_.processor).compute_time()) {}

  Planned run() {
    auto search = in_range([&] { return PofoSearch(problem_, parameters_); });
    KeepAll all = keep_all(problem_, memories_.processor, parameters_.name);
    if (budget_ >= all.needs && runs(all.plan)) return finished(std::move(all.plan), {});
    const std::int64_t stages = std::ssize(problem_.chain.stages);
    if (stages > kMostStages)
      refuse(parameters_.where, fmt::format("the chain has {} stages; {} plans for at most {}",
                                            stages, parameters_.name, kMostStages));
    const bool in_time = search && ask_search(*search, all.needs);
    // Without copies its program has the choices of remat/rotor.
    if (is_asked_for_faster()) {
      if (!best_)
        return Infeasible{.memory = memories_.home, .smallest_budget = Bytes::unlimited()};
    } else if (parameters_.improve) {
      ask_others(kSimpler);
    } else if (!in_time) {
      ask_others(std::span(kSimpler).first(1));
    }
    if (!best_) best_ = std::move(unclaimed_);
    if (best_) return finished(std::move(*best_), search ? search->model_makespan() : std::nullopt);
    return not_found(problem_, memories_.processor, budget_, smallest_budget(all.needs));
  }

 private:
  /// Whether it does, as far as anybody can tell.
  [[nodiscard]] bool runs(Plan& plan) const {
    limit_to(plan, problem_, memories_.home, budget_);
    return plan.claims.makespan || problem_.judge == nullptr;
  }

  /// By one that has plans, those of the simpler policies among them.
  [[nodiscard]] bool is_asked_for_faster() const { return !parameters_.useful.is_unlimited(); }

  /// The least budget tried that is met, where keeping all needs `all` bytes.
  [[nodiscard]] Bytes smallest_budget(Bytes all) const {
    if (problem_.platform[memories_.home].allocator != AllocatorKind::ideal)
      return std::min(smallest_, smallest_that_runs(all));
    const Bytes most = std::min(smallest_, all);
    const ProblemWithCapacity roomy(problem_, memories_.home);
    const PofoParameters asked = with_budget(parameters_, budget_);
    return in_range([&] { return PofoSearch(roomy.problem(), asked).smallest_budget(most); })
        .value_or(most);
  }

  /// What an arena or a cache needs beyond what is requested only plans that run there show.
  [[nodiscard]] Bytes smallest_that_runs(Bytes all) const {
    const auto plan = [&](const Problem& of, Bytes budget) -> Planned {
      KeepAll kept = keep_all(of, memories_.processor, parameters_.name);
      if (budget >= kept.needs) return std::move(kept.plan);
      const PofoParameters asked = with_budget(parameters_, budget);
      if (auto found = PofoSearch(of, asked).best_plan(budget, Effort::any))
        return std::move(*found);
      return infeasible(of, memories_.processor, budget, budget + Bytes{1});
    };
    const BudgetPlanner planner{
        .plan = plan, .bound = [&](Bytes) { return least_time_; }, .most = all, .parts = parts()};
    const auto least =
        in_range([&] { return least_budget(problem_, memories_.processor, budget_, planner); });
    return least && *least ? **least : Bytes::unlimited();
  }

  [[nodiscard]] std::int64_t parts() const {
    return problem_.workload.is_chain ? budget_parts_for(problem_, PlanningTime::quadratic)
                                      : kPartsOnNetworks;
  }

  /// Who is left out, for too large a table, say, is a plan less to compare with.
  void ask_others(std::span<const char* const> others) {
    for (const char* name : others) {
      OtherAnswer answer = ask(problem_, name, parameters_, {.improve = parameters_.improve});
      if (const auto* no = std::get_if<Infeasible>(&answer)) {
        smallest_ = std::min(smallest_, no->smallest_budget);
      } else if (auto* plan = std::get_if<Plan>(&answer)) {
        if (plan->claims.chosen.empty()) plan->claims.chosen = name;
        compare(std::move(*plan));
      }
    }
  }

  /// False where its times leave the range.
  bool ask_search(PofoSearch& search, Bytes all) {
    const auto plan = [&](const Problem& of, Bytes budget) -> Planned {
      auto found = search.best_plan(budget, Effort::best);
      if (!found) found = search.best_plan(budget, Effort::any);
      // Elsewhere a plan that does not run says nothing of smaller ones.
      const Bytes least = search.is_exact() ? all : Bytes{};
      if (!found) return infeasible(of, memories_.processor, budget, least);
      return std::move(*found);
    };
    const BudgetPlanner planner{
        .plan = plan, .bound = [&](Bytes) { return least_time_; }, .most = all, .parts = parts()};
    auto planned = in_range([&] {
      if (parameters_.improve) return fastest_of_smaller_budgets(problem_, budget_, planner);
      Planned own = planner.plan(problem_, budget_);
      // Where space breaks up less may run.
      const bool may_run = problem_.platform[memories_.home].allocator != AllocatorKind::ideal;
      if (std::holds_alternative<Plan>(own) || !may_run) return own;
      return fastest_of_smaller_budgets(problem_, budget_, planner);
    });
    if (auto* best = planned ? std::get_if<Plan>(&*planned) : nullptr) compare(std::move(*best));
    return planned.has_value();
  }

  void compare(Plan plan) {
    if (!plan.claims.makespan) {
      if (problem_.judge == nullptr) unclaimed_ = std::move(plan);
      return;
    }
    if (claimed_peak(plan.claims, memories_.home) > budget_) return;
    if (!best_ || *plan.claims.makespan < *best_->claims.makespan) best_ = std::move(plan);
  }

  [[nodiscard]] Plan finished(Plan plan, std::optional<Time> model_makespan) const {
    plan.policy = parameters_.name;
    plan.claims.model_makespan = model_makespan;
    plan.claims.optimal.reset();
    plan.bounds = {};
    plan.bounds.makespan = least_time_;
    return plan;
  }

  const Problem& problem_;
  const PofoParameters& parameters_;
  const OffloadMemories memories_;
  const Bytes budget_;
  const Time least_time_;  ///< of any plan: no operator can be left out
  std::optional<Plan> best_;
  std::optional<Plan> unclaimed_;  ///< of offload, where its time is uncertain and nobody judges
  Bytes smallest_ = Bytes::unlimited();
};

Planned plan_pofo(const Problem& problem, const PofoParameters& parameters) {
  return PofoPlanner(problem, parameters).run();
}

}  // namespace

Planned pofo_faster_than(const Problem& problem, const OffloadPlannerParameters& parameters,
                         Time useful) {
  PofoParameters asked{parameters};
  asked.improve = true;
  asked.useful = useful;
  return PofoPlanner(problem, asked).run();
}

PolicyInfo hybrid_pofo_policy() {
  auto record = offload_planner_record<PofoParameters>("hybrid/pofo");
  record.optional("slots", &PofoParameters::slots, integer(1, kMostPofoSlots),
                  "parts of the budget by which states of the dynamic program are told apart; "
                  "default 50");
  return make_policy<PofoParameters>(
      {.name = "hybrid/pofo",
       .summary = "Recomputes and offloads together: idle link time is free memory.",
       .paper =
           "Beaumont, Eyraud-Dubois, Shilova 2021, \"Efficient Combination of "
           "Rematerialization and Offloading for Training DNNs\", NeurIPS 2021, as "
           "reconstructed. The recursion is that of a public solver: a stage keeps what it saves, "
           "or a segment of stages runs again; the input of either stays or moves, in a fluid "
           "model of the link. Two slips of that solver are mended: what a segment needs is looked "
           "for in the segment alone, and its input counts once. "
           "Choices: segments run again by the persistent schedules of remat/rotor. Beside copies "
           "back a segment takes the solver's estimate, or less where it fits in the room that "
           "the copies leave. No segment ends at the loss. The input of the chain stays. "
           "Ours: sizes are not rounded. The program runs at the link's speed, at 3/4 and at 1/2 "
           "of it. Of each, 6 cuts are played with whole copies, back 1 to 3 beats ahead or as "
           "early as that delays nothing",
       .assumes = "a chain (networks are cut at articulation points) of at most 256 stages; what "
                  "stages 1..L-2 leave may move",
       .guarantees =
           "a heuristic; the peak is at most the budget. On networks, whose stages need less than "
           "their costs say, the program is told up to twice the budget, and what then keeps to "
           "the budget counts; where none of its plans ends, it is told less. "
           "Where copies take months it only runs again, by the schedule of "
           "remat/rotor, which claims.chosen names. With `improve` it is by what they claim no "
           "slower than its plans for up to 64 smaller budgets, remat/rotor and offload/dynamic: "
           "where its own plan is slower it takes theirs, and claims.chosen says so. Its "
           "claims.model_makespan is the program's time, no "
           "execution's. The bound is the sum of the times, which no plan beats. What is "
           "infeasible names the smallest budget tried that it meets",
       .complexity =
           "O(L^2 S) for S = 256 states before a stage (fewer beyond 128 stages), and "
           "O(L^3) for the inner "
           "schedules in 500 slots; on networks up to 17 times; with `improve` for 2 to 64 "
           "budgets, for 2 on networks",
       .is_for_chains = true},
      record, plan_pofo);
}

}  // namespace plimsoll
