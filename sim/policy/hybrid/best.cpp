#include "policy/claims_with_room.hpp"
#include "policy/offload/planner.hpp"
#include "policy/peak_bound.hpp"
#include "policy/registry.hpp"
#include "policy/remat/chain_sequence.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Chains of at most so many stages are also searched exactly: seconds at most.
constexpr std::size_t kSmall = 12;

/// A policy that is asked for its plan.
struct Candidate {
  const char* name;
  bool takes_budget = true;
  bool takes_release = false;
  bool moves = false;  ///< needs a storage
  bool is_search = false;
};

/// In this order where they tie. A rule without a budget is one plan, which fits or not.
constexpr Candidate kCandidates[] = {
    {.name = "none", .takes_budget = false},
    {.name = "remat/rotor"},
    {.name = "remat/nonpersistent"},
    {.name = "remat/exact", .is_search = true},
    {.name = "remat/chen-greedy"},
    {.name = "remat/select-linear", .takes_budget = false},
    {.name = "remat/sqrt", .takes_budget = false},
    {.name = "offload/prefix", .moves = true},
    {.name = "offload/greedy", .takes_release = true, .moves = true},
    {.name = "offload/dynamic", .takes_release = true, .moves = true},
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
    for (const Candidate& it : kCandidates) {
      if (it.moves && !has_storage_) continue;
      if (it.is_search && problem_.chain.stages.size() > kSmall) continue;
      try_out(it);
      if (best_ && best_->claims.makespan == least_time_) break;
    }
    if (!best_) best_ = std::move(unclaimed_);
    if (!best_) return infeasible(problem_, processor_, budget_, smallest_);
    return finished(std::move(*best_));
  }

 private:
  /// What this policy itself is asked for and cannot be had is an error, and not a candidate less.
  bool finds_storage() const {
    if (parameters_.to || parameters_.release) {
      (void)offload_task(problem_, parameters_);
      return true;
    }
    try {
      (void)offload_memories(problem_, parameters_, parameters_.to);
      return true;
    } catch (const InputError&) {
      return false;
    }
  }

  [[nodiscard]] Node mapping_for(const Candidate& it) const {
    const auto flow = [](const std::string& key, const std::string& value) {
      return fmt::format(", {}: \"{}\"", key, value);
    };
    std::string text = fmt::format("{{name: {}", it.name);
    text += flow("on", problem_.platform[processor_].name);
    if (it.takes_budget && !budget_.is_unlimited())
      text += fmt::format(", budget: {} B", budget_.count());
    if (it.moves && parameters_.to) text += flow("to", parameters_.to->value);
    if (it.takes_release && parameters_.release)
      text += flow("release",
                   parameters_.release->value == SourceRelease::whole ? "whole" : "progressive");
    if (std::string_view(it.name) == "remat/select-linear") text += flow("objective", "engine");
    return parse_value(text + "}", parameters_.where.origin);
  }

  void try_out(const Candidate& it) {
    Diagnostics diagnostics;
    const auto bound = find_policy(it.name)->bind(mapping_for(it), diagnostics);
    diagnostics.throw_if_errors();
    try {
      Planned planned = bound->plan(problem_);
      if (const auto* no = std::get_if<Infeasible>(&planned))
        smallest_ = std::min(smallest_, no->smallest_budget);
      else
        compare(it, std::move(std::get<Plan>(planned)));
    } catch (const InputError&) {
      // The chain or the platform is outside what this candidate assumes: it has no plan.
    }
  }

  void compare(const Candidate& it, Plan plan) {
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

  /// What the winner says of its own kind does not hold for all kinds.
  [[nodiscard]] Plan finished(Plan plan) const {
    plan.policy = parameters_.name;
    plan.claims.model_makespan.reset();
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
  const bool has_storage_;
  std::optional<Plan> best_, unclaimed_;
  Bytes smallest_ = Bytes::unlimited();
};

Planned plan_best(const Problem& problem, const OffloadPlannerParameters& parameters) {
  return BestOfAll(problem, parameters).run();
}

}  // namespace

PolicyInfo hybrid_best_policy() {
  return make_policy<OffloadPlannerParameters>(
      {.name = "hybrid/best",
       .summary = "The fastest plan that any planner of one kind has for the budget.",
       .paper = "none: the least claimed makespan of none, remat/rotor, nonpersistent, "
                "chen-greedy, select-linear (`engine`) and sqrt, offload/prefix, greedy, dynamic, "
                "autoswap, capuchin, superneurons and vdnn-dyn, each with its own defaults; up to "
                "12 stages also of remat/exact and offload/exact. The first of that order (exact "
                "behind its kin) where they tie",
       .assumes = "a chain (networks are cut at articulation points). Policies that refuse the "
                  "chain or platform are left out; without storage only recomputation is left",
       .guarantees = "never slower than any of these plans for the same budget, where they claim "
                     "their time; claims are execution's. Where links or memories let no plan that "
                     "fits claim its time (copies that contend, `fair` links): the first plan of "
                     "an offload under the budget. The bound is the sum of the times, for every "
                     "plan; claims.optimal says that it is met. What is infeasible names the "
                     "smallest budget of any of them",
       .complexity = "the sum of theirs"},
      offload_planner_record<OffloadPlannerParameters>("hybrid/best"), plan_best);
}

}  // namespace plimsoll
