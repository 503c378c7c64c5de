#include "policy/claims_with_room.hpp"
#include "policy/hybrid/other_policy.hpp"
#include "policy/left_out.hpp"
#include "policy/peak_bound.hpp"
#include "policy/registry.hpp"
#include "policy/remat/chain_sequence.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace plimsoll {

namespace {

/// Chains of at most so many stages are also searched exactly: seconds at most.
constexpr std::size_t kSmall = 12;

/// In this order where they tie. A rule without a budget is one plan, which fits or not.
constexpr OtherPolicy kCandidates[] = {
    {.name = "none", .takes_budget = false},
    {.name = "remat/rotor"},
    {.name = "remat/nonpersistent"},
    {.name = "remat/exact", .is_search = true},
    {.name = "remat/chen-greedy"},
    {.name = "remat/select-linear", .takes_budget = false, .further = ", objective: engine"},
    {.name = "remat/sqrt", .takes_budget = false},
    {.name = "offload/prefix", .moves = true},
    {.name = "offload/greedy", .takes_release = true, .moves = true},
    {.name = "offload/dynamic", .takes_release = true, .moves = true},
    {.name = "hybrid/pofo", .takes_release = true, .moves = true},
    {.name = "offload/exact", .takes_release = true, .moves = true, .is_search = true},
    {.name = "offload/autoswap", .moves = true},
    {.name = "offload/capuchin", .moves = true},
    {.name = "offload/superneurons", .moves = true},
    {.name = "offload/vdnn-dyn", .moves = true},
};

class BestOfAll {
 public:
  BestOfAll(const Problem& problem, const OffloadPlannerParameters& parameters)
      : problem_(problem),
        parameters_(parameters),
        processor_(processor_for(problem, parameters)),
        home_(problem.platform[processor_].memory),
        budget_(budget_for(problem, processor_, parameters)),
        least_time_(chain_costs(problem, processor_).compute_time()),
        has_storage_(finds_storage()) {}

  Planned run() {
    for (const OtherPolicy& it : kCandidates) {
      if (it.moves && !has_storage_) {
        left_out_.push_back({it.name, why_no_storage_});
        continue;
      }
      if (it.is_search && problem_.chain.stages.size() > kSmall) continue;
      try_out(it);
      if (best_ && best_->claims.makespan == least_time_) break;
    }
    if (!best_) best_ = std::move(unclaimed_);
    if (!best_) return without_plan();
    return finished(std::move(*best_));
  }

 private:
  /// What this policy itself is asked for and cannot be had is an error, and not a candidate less.
  bool finds_storage() {
    if (parameters_.to || parameters_.release) {
      (void)offload_task(problem_, parameters_);
      return true;
    }
    try {
      (void)offload_memories(problem_, parameters_);
      return true;
    } catch (const InputError& error) {
      why_no_storage_ = error.diagnostics().front().message;
      return false;
    }
  }

  void try_out(const OtherPolicy& it) {
    try {
      Planned planned = plan_of_other(problem_, it, parameters_);
      if (const auto* no = std::get_if<Infeasible>(&planned))
        smallest_ = std::min(smallest_, no->smallest_budget);
      else
        compare(it, std::move(std::get<Plan>(planned)));
    } catch (const InputError& error) {
      // The chain or the platform is outside what it assumes.
      left_out_.push_back({it.name, error.diagnostics().front().message});
    } catch (const QuantityOverflow&) {
      left_out_.push_back({it.name, "its times leave the range of 106 days"});
    }
  }

  void compare(const OtherPolicy& it, Plan plan) {
    plan.claims.chosen = it.name;
    if (!plan.claims.makespan) {
      if (it.takes_budget && it.moves && !unclaimed_) unclaimed_ = std::move(plan);
      return;
    }
    const Bytes needs = claimed_peak(plan.claims, home_).value_or(Bytes{});
    if (!budget_.is_unlimited() && needs > budget_)
      smallest_ = std::min(smallest_, needs);
    else if (!best_ || *plan.claims.makespan < *best_->claims.makespan)
      best_ = std::move(plan);
  }

  [[nodiscard]] Infeasible without_plan() const {
    Infeasible no = infeasible(problem_, processor_, budget_, smallest_);
    no.why += left_out_text(left_out_);
    return no;
  }

  /// What the winner says of its own kind does not hold for all kinds.
  [[nodiscard]] Plan finished(Plan plan) const {
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
  const Time least_time_;  ///< of any plan: no operator can be left out
  std::string why_no_storage_;
  const bool has_storage_;
  std::optional<Plan> best_, unclaimed_;
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
       .paper = "none: the least claimed makespan of none, remat/rotor, nonpersistent, "
                "chen-greedy, select-linear (`engine`) and sqrt, offload/prefix, greedy, dynamic, "
                "hybrid/pofo, offload/autoswap, capuchin, superneurons and vdnn-dyn, each with its "
                "own defaults; up to 12 stages also of remat/exact and offload/exact. The first of "
                "that order (exact behind its kin) where they tie",
       .assumes = "a chain (networks are cut at articulation points). Policies that refuse the "
                  "chain or platform are left out; without storage only recomputation is left",
       .guarantees =
           "never slower than any of these plans for the same budget, where they claim "
           "their time; claims are execution's. Where links or memories let no plan that "
           "fits claim its time (copies that contend, `fair` links): the first plan of "
           "an offload under the budget. The bound is the sum of the times, for every "
           "plan; claims.optimal says that it is met. What is infeasible names the "
           "smallest budget of any of them. claims.chosen names the policy whose plan it is",
       .complexity = "the sum of theirs"},
      offload_planner_record<OffloadPlannerParameters>("hybrid/best"), plan_best);
}

}  // namespace plimsoll
