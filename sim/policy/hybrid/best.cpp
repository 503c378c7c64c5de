#include "policy/hybrid/best.hpp"

#include "base/dense_id.hpp"
#include "policy/budget/budget_limit.hpp"
#include "policy/budget/claims_with_room.hpp"
#include "policy/claims/peak_bound.hpp"
#include "policy/hybrid/graph/stage_bound.hpp"
#include "policy/hybrid/other_policy.hpp"
#include "policy/hybrid/pofo.hpp"
#include "policy/interface/left_out.hpp"
#include "policy/interface/registry.hpp"
#include "policy/offload/model/fluid_bound.hpp"
#include "policy/remat/chain/chain_sequence.hpp"
#include "policy/remat/graph/rules/xla.hpp"
#include "policy/remat/graph/search/search.hpp"
#include "policy/remat/search/any_schedule.hpp"
#include "policy/remat/search/cut_bound.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

namespace {

/// Of the bound on recomputation: more take longer than they save.
constexpr std::size_t kProgramCuts = 2;

/// What a search may look at before it gives up its proof, where nothing else is asked.
constexpr std::int64_t kNodes = 20'000;
/// Steps of work that one planner may take, where nothing else is asked: a few seconds.
constexpr std::int64_t kWork = 2'000'000'000;

struct BestParameters : OffloadPlannerParameters {
  std::int64_t nodes = kNodes;
  std::int64_t work = kWork;
};

/// What a policy can do about too little memory, where that tells who need not be asked: run whole
/// stages again, copy, or both.
enum class Means : std::uint8_t { any, recomputation, offload, stages };

struct Candidate {
  std::string name;
  /// Nobody to ask where no plan of its kind can be faster.
  Means means = Means::any;
  /// Of chains with more stages its plans are those of an earlier one.
  std::size_t most_stages = std::numeric_limits<std::size_t>::max();
  bool is_search = false;  ///< it counts nodes, and smaller budgets have as much to search
  /// On networks a linear program is worth its time where it says that nobody need ask.
  bool is_costly = false;
};

/// In this order where they tie: rules first, then what takes longer.
const Candidate kCandidates[] = {
    {.name = "none"},
    {.name = "remat/sqrt"},
    {.name = "remat/every-stage"},
    {.name = "remat/chen-greedy"},
    {.name = "remat/select-linear"},
    {.name = "remat/revolve"},
    {.name = "remat/mixed"},
    {.name = "remat/double"},
    {.name = "remat/two-level"},
    {.name = "offload/all"},
    {.name = "offload/eager"},
    {.name = "offload/vdnn-all"},
    {.name = "offload/vdnn-conv"},
    {.name = "offload/vdnn-dyn"},
    {.name = "offload/vdnn++"},
    {.name = "offload/save-on-cpu"},
    {.name = "offload/torchtune"},
    {.name = "offload/transformer-engine"},
    {.name = "offload/prefix"},
    {.name = "remat/rotor", .means = Means::recomputation},
    {.name = "offload/superneurons"},
    {.name = "offload/capuchin"},
    {.name = "offload/greedy", .means = Means::offload},
    {.name = "offload/autoswap", .means = Means::offload},
    {.name = "offload/dynamic", .means = Means::offload},
    {.name = "remat/search"},
    {.name = "hybrid/pofo", .means = Means::stages, .is_costly = true},
    {.name = "remat/nonpersistent", .means = Means::recomputation, .is_costly = true},
    {.name = "offload/exact", .means = Means::offload, .is_search = true},
    {.name = "remat/exact",
     .means = Means::recomputation,
     .most_stages = kMostSearchedStages,
     .is_search = true,
     .is_costly = true},
};

/// Policies of one processor that are never asked: this one and the one that asks it; one that looks for
/// the least energy; one that acts only on blocks that are named; one that finds what
/// `remat/select-linear` does, in more time; one that is `remat/search` with fewer plans to choose
/// from; those that prove its plans for small graphs, or round them.
constexpr std::string_view kNeverAsked[] = {
    "hybrid/best",     "hybrid/graph",   "hybrid/poet",     "remat/blocks",
    "remat/select-dp", "remat/moccasin", "remat/checkmate", "remat/checkmate-rounding"};

/// kCandidates, and after them every other planner of one processor in the registry that takes
/// networks. What decides while it runs plans nothing.
std::vector<Candidate> candidates() {
  std::vector<Candidate> all(std::begin(kCandidates), std::end(kCandidates));
  for (const PolicyInfo& it : policies())
    if (!it.name.starts_with("pipeline/") && !it.is_for_compute_graphs && !it.is_online &&
        std::ranges::find(kNeverAsked, it.name) == std::end(kNeverAsked) &&
        std::ranges::find(all, it.name, &Candidate::name) == all.end())
      all.push_back({.name = it.name});
  return all;
}

using FasterThan = Planned (*)(const Problem&, const OffloadPlannerParameters&, Time known);

/// Of a candidate that is sooner done where only faster plans than a known one are of use.
FasterThan planner_of_faster(std::string_view name, bool is_chain) {
  if (name == "hybrid/pofo" && !is_chain) return pofo_faster_than;
  if (name == "remat/search")
    return [](const Problem& of, const OffloadPlannerParameters& parameters, Time known) {
      return searched_faster_than(of, parameters, known);
    };
  if (name == "remat/xla")
    return [](const Problem& of, const OffloadPlannerParameters& parameters, Time known) {
      return xla_faster_than(of, parameters, known);
    };
  return nullptr;
}

class BestOfAll {
 public:
  BestOfAll(const Problem& problem, const BestParameters& parameters)
      : problem_(problem),
        parameters_(parameters),
        processor_(processor_for(problem, parameters)),
        home_(problem.platform[processor_].memory),
        budget_(budget_for(problem, processor_, parameters)),
        costs_(chain_costs(problem, processor_)),
        least_time_(costs_.compute_time()) {
    // What this policy itself is asked for and cannot be had is an error, and not a candidate less.
    if (parameters.to || parameters.release) (void)checked_memories(problem, parameters);
  }

  Planned run() {
    for (const Candidate& it : candidates()) {
      if (is_needless(it)) continue;
      OtherAnswer answer = answer_of_candidate(it);
      if (auto* left_out = std::get_if<LeftOut>(&answer))
        left_out_.push_back(std::move(*left_out));
      else if (const auto* no = std::get_if<Infeasible>(&answer))
        smallest_ = std::min(smallest_, no->smallest_budget);
      else
        compare(it, std::move(std::get<Plan>(answer)));
      if (best_ && makespan() == least_time_) break;
    }
    if (!best_) best_ = std::move(unjudged_);
    if (best_) return finished();
    Infeasible no = not_found(problem_, processor_, budget_, smallest_);
    no.why += left_out_text(left_out_);
    return no;
  }

 private:
  [[nodiscard]] Time makespan() const { return *best_->claims.makespan; }

  [[nodiscard]] OtherAnswer answer_of_candidate(const Candidate& it) const {
    const Time known = known_time();
    const FasterThan faster_than = planner_of_faster(it.name, problem_.workload.is_chain);
    if (known.is_unlimited() || faster_than == nullptr)
      return ask(problem_, it.name, parameters_, asked(it));
    const auto plan = [&](const Problem& metered) {
      return faster_than(metered, parameters_, known);
    };
    return answer_of(problem_, it.name, plan, parameters_.work);
  }

  /// Plans that are not faster are of no use.
  [[nodiscard]] Time known_time() const { return best_ ? makespan() : Time::unlimited(); }

  [[nodiscard]] Asked asked(const Candidate& it) const {
    Asked asked{.improve = !it.is_search, .work = parameters_.work};
    if (it.is_search) asked.nodes = parameters_.nodes;
    return asked;
  }

  bool is_needless(const Candidate& it) {
    if (problem_.chain.stages.size() > it.most_stages) return true;
    const Time known = known_time();
    if (known.is_unlimited()) return false;
    if (it.means == Means::offload) return known <= offload_bound();
    if (problem_.workload.is_chain)
      return it.means == Means::recomputation && known <= recomputation_bound(known);
    return it.is_costly && known <= stages_bound(it.means);
  }

  /// No plan that only moves tensors is faster; where nothing can move nobody has one.
  Time offload_bound() {
    if (!offload_bound_) try {
        const OffloadMemories memories = checked_memories(problem_, parameters_);
        offload_bound_ = offload_lower_bound(problem_, memories, budget_).value_or(least_time_);
      } catch (const InputError&) {
        offload_bound_ = least_time_;
      } catch (const QuantityOverflow&) {
        offload_bound_ = least_time_;
      }
    return *offload_bound_;
  }

  /// No plan of a chain that only runs stages again is faster, as far as it is worth the time to know
  /// where `known` is the fastest so far.
  Time recomputation_bound(Time known) {
    if (!recomputation_bound_) {
      recomputation_bound_ = least_time_;
      if (has_normal_form(costs_)) {
        const ChainModel model = chain_model(costs_);
        recomputation_bound_ = Time{time_bound(model, std::min(budget_.count(), model.store_all),
                                               known.count(), kProgramCuts)};
      }
    }
    return *recomputation_bound_;
  }

  /// No plan of a network that runs whole stages again is faster, without copies or with them.
  Time stages_bound(Means means) {
    std::optional<Time>& bound =
        means == Means::recomputation ? recomputation_bound_ : stages_bound_;
    if (!bound) try {
        bound = stage_bound(problem_, processor_, budget_, storage_for_copies(means));
      } catch (const QuantityOverflow&) {
        bound = least_time_;
      }
    return *bound;
  }

  /// Nothing where no copies are wanted, or nothing can move.
  [[nodiscard]] std::optional<OffloadMemories> storage_for_copies(Means means) const {
    if (means == Means::recomputation) return std::nullopt;
    try {
      return checked_memories(problem_, parameters_);
    } catch (const InputError&) {
      return std::nullopt;
    }
  }

  void compare(const Candidate& it, Plan plan) {
    if (plan.claims.chosen.empty()) plan.claims.chosen = it.name;
    const bool keeps_to_budget = !plan.limits.empty();
    limit_to(plan, problem_, home_, budget_);
    if (!plan.claims.makespan) {
      if (problem_.judge == nullptr && keeps_to_budget && !unjudged_) unjudged_ = std::move(plan);
      return;
    }
    const Bytes needs = claimed_peak(plan.claims, home_).value_or(Bytes{});
    if (!budget_.is_unlimited() && needs > budget_) {
      smallest_ = std::min(smallest_, needs);
      return;
    }
    if (!best_ || *plan.claims.makespan < makespan()) best_ = std::move(plan);
  }

  /// What the winner says of its own kind does not hold for all kinds.
  [[nodiscard]] Plan finished() {
    Plan plan = std::move(*best_);
    plan.policy = parameters_.name;
    plan.claims.left_out = left_out_;
    plan.claims.model_makespan.reset();
    plan.claims.model_peak.clear();
    plan.claims.optimal = plan.claims.makespan == least_time_;
    plan.bounds = {};
    plan.bounds.makespan = least_time_;
    plan.bounds.peak.emplace_back(home_, largest_operator(problem_.workload));
    return plan;
  }

  const Problem& problem_;
  const BestParameters& parameters_;
  const ProcessorId processor_;
  const MemoryId home_;
  const Bytes budget_;
  const ChainCosts costs_;
  const Time least_time_;  ///< of any plan: no operator can be left out
  std::optional<Time> recomputation_bound_, offload_bound_, stages_bound_;
  std::optional<Plan> best_;      ///< claims its makespan
  std::optional<Plan> unjudged_;  ///< does not, and nobody judges
  std::vector<LeftOut> left_out_;
  Bytes smallest_ = Bytes::unlimited();
};

Planned plan_best(const Problem& problem, const BestParameters& parameters) {
  return BestOfAll(problem, parameters).run();
}

}  // namespace

Planned fastest_of_all(const Problem& problem, const OffloadPlannerParameters& parameters) {
  return BestOfAll(problem, BestParameters{parameters}).run();
}

PolicyInfo hybrid_best_policy() {
  auto record = offload_record<BestParameters>("hybrid/best");
  add_budget(record);
  add_release(record);
  record.optional("nodes", &BestParameters::nodes, integer(1, 10'000'000),
                  "states that offload/exact and remat/exact look at before they give up their "
                  "proofs; default 20000");
  record.optional("work", &BestParameters::work, integer(1, WorkMeter::kNoLimit),
                  "steps of work after which a planner is left out; a step takes about a "
                  "nanosecond, or a few; default 2000000000");
  return make_policy<BestParameters>(
      {.name = "hybrid/best",
       .summary = "The fastest plan that any planner has for the budget.",
       .paper =
           "none: the fastest plan of every other policy of one processor (but hybrid/graph, "
           "which asks this one, and those that prove or restrict what remat/search finds), "
           "each with its own "
           "defaults and, where it has that, `improve`; the searches of offload/exact and "
           "remat/exact with `nodes`. Of those that tie it names the first of: rules of "
           "recomputation, rules of offload, remat/rotor, offload by choice of tensors or "
           "stages, remat/search, hybrid/pofo, remat/nonpersistent, offload/exact, remat/exact",
       .assumes = "a chain (networks are cut at articulation points). Policies that refuse the "
                  "chain or platform are left out; without storage only recomputation is left",
       .guarantees =
           "never slower than any of these plans that keeps to the budget, with the engine as "
           "judge: where a plan does not claim its time (copies share a link, an allocator breaks "
           "up its space) it is executed, and what that measures is what is claimed. A planner "
           "that takes more than `work` is left out. The bound is "
           "the sum of the times, for every plan; claims.optimal says that it is met. What is "
           "infeasible names the smallest budget of any of them. claims.chosen names the policy "
           "whose plan it is. On a mesh that is so of one rank by itself: collectives, and copies "
           "of "
           "other ranks over links that they share, come on top",
       .complexity = "the sum of theirs, at most `work` each, as far as they can be faster: the "
                     "first plan that meets the bound is taken, and those who only recompute, or "
                     "only offload, or run whole stages of a network again, are not asked where a "
                     "proven bound of their kind is no less than the best plan so far",
       .is_for_chains = true},
      record, plan_best);
}

}  // namespace plimsoll
