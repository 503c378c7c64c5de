#include "base/dense_id.hpp"
#include "policy/budget/budget_limit.hpp"
#include "policy/budget/claims_with_room.hpp"
#include "policy/claims/peak_bound.hpp"
#include "policy/hybrid/other_policy.hpp"
#include "policy/interface/left_out.hpp"
#include "policy/interface/registry.hpp"
#include "policy/remat/chain/chain_sequence.hpp"
#include "policy/remat/search/any_schedule.hpp"
#include "policy/remat/search/cut_bound.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace plimsoll {

namespace {

/// Of the bound on recomputation: more take longer than they save.
constexpr std::size_t kProgramCuts = 2;

struct Candidate {
  const char* name;
  /// It only runs stages again, and may take seconds: nobody to ask where that cannot be faster.
  bool recomputes = false;
  const char* contained_in = "";  ///< no slower than that one's plan
  /// Of chains with more stages its plans are those of an earlier one.
  std::size_t most_stages = std::numeric_limits<std::size_t>::max();
};

/// In this order where they tie: the quick ones first.
constexpr Candidate kCandidates[] = {
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
    {.name = "offload/greedy"},
    {.name = "offload/dynamic"},
    {.name = "offload/superneurons"},
    {.name = "offload/capuchin"},
    {.name = "offload/autoswap"},
    {.name = "hybrid/pofo"},
    {.name = "remat/nonpersistent", .recomputes = true},
    {.name = "remat/rotor", .recomputes = true, .contained_in = "remat/nonpersistent"},
    {.name = "offload/exact"},
    {.name = "remat/exact", .recomputes = true, .most_stages = kMostSearchedStages},
};

class BestOfAll {
 public:
  BestOfAll(const Problem& problem, const OffloadPlannerParameters& parameters)
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
    for (const Candidate& it : kCandidates) {
      if (is_needless(it)) continue;
      OtherAnswer answer = ask(problem_, it.name, parameters_);
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
    Infeasible no = infeasible(problem_, processor_, budget_, smallest_);
    no.why += left_out_text(left_out_);
    return no;
  }

 private:
  [[nodiscard]] Time makespan() const { return *best_->claims.makespan; }

  bool is_needless(const Candidate& it) {
    if (problem_.chain.stages.size() > it.most_stages) return true;
    if (std::ranges::find(planned_, it.contained_in) != planned_.end()) return true;
    return it.recomputes && best_ && makespan() <= recomputation_bound();
  }

  /// No plan that only runs stages again is faster, as far as it is worth the time to know.
  Time recomputation_bound() {
    if (!recomputation_bound_) {
      recomputation_bound_ = least_time_;
      if (problem_.workload.is_chain && has_normal_form(costs_)) {
        const ChainModel model = chain_model(costs_);
        recomputation_bound_ = Time{time_bound(model, std::min(budget_.count(), model.store_all),
                                               makespan().count(), kProgramCuts)};
      }
    }
    return *recomputation_bound_;
  }

  void compare(const Candidate& it, Plan plan) {
    plan.claims.chosen = it.name;
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
    planned_.emplace_back(it.name);
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
  const OffloadPlannerParameters& parameters_;
  const ProcessorId processor_;
  const MemoryId home_;
  const Bytes budget_;
  const ChainCosts costs_;
  const Time least_time_;  ///< of any plan: no operator can be left out
  std::optional<Time> recomputation_bound_;
  std::optional<Plan> best_;      ///< claims its makespan
  std::optional<Plan> unjudged_;  ///< does not, and nobody judges
  std::vector<std::string> planned_;
  std::vector<LeftOut> left_out_;
  Bytes smallest_ = Bytes::unlimited();
};

Planned plan_best(const Problem& problem, const OffloadPlannerParameters& parameters) {
  return BestOfAll(problem, parameters).run();
}

}  // namespace

PolicyInfo hybrid_best_policy() {
  return make_policy<OffloadPlannerParameters>(
      {.name = "hybrid/best",
       .summary = "The fastest plan that any planner has for the budget.",
       .paper = "none: the fastest plan of every other policy of one processor, each with its own "
                "defaults. The quickest planner of those that tie",
       .assumes = "a chain (networks are cut at articulation points). Policies that refuse the "
                  "chain or platform are left out; without storage only recomputation is left",
       .guarantees =
           "never slower than any of these plans that keeps to the budget, with the engine as "
           "judge: where a plan does not claim its time (copies share a link, an allocator breaks "
           "up its space) it is executed, and what that measures is what is claimed. The bound is "
           "the sum of the times, for every plan; claims.optimal says that it is met. What is "
           "infeasible names the smallest budget of any of them. claims.chosen names the policy "
           "whose plan it is",
       .complexity = "the sum of theirs, as far as they can be faster: the first plan that meets "
                     "the bound is taken, and remat/nonpersistent, rotor and exact are not asked "
                     "where a proven bound of recomputation is no less than the best plan so far"},
      offload_planner_record<OffloadPlannerParameters>("hybrid/best"), plan_best);
}

}  // namespace plimsoll
