#include "policy/claims/claims.hpp"
#include "policy/graph/staged_sequence.hpp"
#include "policy/interface/registry.hpp"
#include "policy/remat/graph/rules/forward_cut.hpp"
#include "policy/remat/graph/rules/graph_segments.hpp"
#include "policy/remat/graph/rules/knapsack.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

struct MinCutParameters : SingleProcessorParameters {
  std::optional<Located<Ratio>> activation_budget;
  KnapsackSolver solver = KnapsackSolver::dp;
};

class MinCutPlanner {
 public:
  MinCutPlanner(const Problem& problem, const MinCutParameters& parameters)
      : problem_(problem),
        parameters_(parameters),
        processor_(processor_for(problem, parameters)),
        budget_(parameters.activation_budget ? as_fraction(parameters.activation_budget->value)
                                             : 1),
        graph_(operator_graph(problem, processor_)),
        groups_(rerun_groups(graph_, ChangesByOnce::join)),
        network_(problem, graph_, groups_) {}

  Plan plan() {
    const ForwardCut cut = cut_within_budget();
    Plan plan = plan_of_computations(problem_, graph_, processor_, parameters_.name,
                                     staged_sequence(groups_, reruns(cut)));
    plan.claims = claims_of(plan, problem_);
    return plan;
  }

 private:
  /// The cut with the fewest bans lifted that keeps less than the budget of what the default one
  /// keeps, or else one with those lifted that are not worth it.
  [[nodiscard]] ForwardCut cut_within_budget() const {
    ForwardCut cut = network_.cut({});
    const Bytes all = network_.kept_bytes(cut);
    const auto share = [&](const ForwardCut& of) {
      return static_cast<double>(network_.kept_bytes(of).count()) /
             static_cast<double>(all.count());
    };
    if (budget_ >= 1 || all == Bytes{}) return cut;
    if (budget_ <= 0) return {std::vector<bool>(graph_.values.size(), false), {}};
    for (const bool for_list : {true, false}) {
      cut = network_.cut({.for_fusion = false, .for_list = for_list});
      if (share(cut) < budget_) return cut;
    }
    return cut_of_knapsack(cut, all);
  }

  /// Keeps what takes longest for its bytes; the rest may run again.
  [[nodiscard]] ForwardCut cut_of_knapsack(const ForwardCut& strict, Bytes all) const {
    const std::vector<std::uint32_t> groups = network_.liftable(strict);
    std::vector<WeighedItem> items;
    for (const std::uint32_t group : groups)
      items.push_back({.weight = static_cast<double>(network_.needed_bytes(group).count()) /
                                 static_cast<double>(all.count()),
                       .value = std::max<std::int64_t>(groups_.groups[group].time, 1)});
    const std::vector<bool> is_taken = knapsack(items, budget_, parameters_.solver, problem_.work);
    RerunBans bans{.for_fusion = false, .for_list = false};
    bans.lifted.assign(groups_.groups.size(), false);
    for (std::size_t i = 0; i < groups.size(); ++i) bans.lifted[groups[i]] = !is_taken[i];
    return network_.cut(bans);
  }

  /// What a backward reads and is not kept is made just before it, once.
  [[nodiscard]] std::vector<Rerun> reruns(const ForwardCut& cut) const {
    std::vector<Rerun> reruns;
    std::vector<bool> is_made(groups_.groups.size(), false);
    std::vector<std::uint32_t> waiting;
    const auto need_reads = [&](std::uint32_t node) {
      for (const std::uint32_t value : graph_.nodes[node].reads) {
        const std::uint32_t maker = graph_.values[value].maker;
        const std::uint32_t group = groups_.of_node[maker];
        if (maker >= problem_.workload.forwards || cut.is_kept[value] || is_made[group] ||
            groups_.groups[group].runs_once)
          continue;
        is_made[group] = true;
        waiting.push_back(group);
      }
    };
    for (std::uint32_t node = problem_.workload.forwards; node < graph_.nodes.size(); ++node) {
      need_reads(node);
      while (!waiting.empty()) {
        const std::uint32_t group = waiting.back();
        waiting.pop_back();
        reruns.push_back({node, group});
        for (const std::uint32_t member : groups_.groups[group].nodes) need_reads(member);
      }
    }
    return reruns;
  }

  const Problem& problem_;
  const MinCutParameters& parameters_;
  const ProcessorId processor_;
  const double budget_;
  const OperatorGraph graph_;
  const RerunGroups groups_;
  const ForwardNetwork network_;
};

Planned plan_min_cut(const Problem& problem, const MinCutParameters& parameters) {
  if (parameters.activation_budget && parameters.activation_budget->value > kWhole)
    refuse(parameters.activation_budget->where,
           fmt::format("activation_budget is {}; expected a share of at most 1",
                       to_text(parameters.activation_budget->value)));
  refuse_without_backwards(problem, parameters);
  return MinCutPlanner(problem, parameters).plan();
}

}  // namespace

PolicyInfo remat_min_cut_policy() {
  auto record = single_processor_record<MinCutParameters>("remat/min-cut");
  record
      .optional("activation_budget", &MinCutParameters::activation_budget, located(fraction()),
                "share of the bytes of the default cut that may be kept, 0 to 1; default 1, the "
                "default cut")
      .optional("solver", &MinCutParameters::solver,
                one_of<KnapsackSolver>({{"dp", KnapsackSolver::dp},
                                        {"greedy", KnapsackSolver::greedy},
                                        {"ilp", KnapsackSolver::ilp}}),
                "of the knapsack that chooses which expensive operators run again: `dp`, "
                "`greedy`, `ilp`; default dp");
  return make_policy<MinCutParameters>(
      {.name = "remat/min-cut",
       .summary = "Keeps what a minimum cut between forwards and backwards keeps, as PyTorch's "
                  "compiler does.",
       .paper = "PyTorch's min-cut partitioner and activation memory budget "
                "(torch/_functorch/partitioners.py, knapsack.py); He and Yu 2023, \"Transcending "
                "Runtime-Memory Tradeoffs in Checkpointing by being Fusion Aware\", MLSys. The "
                "time of an operator is that on this platform, and its knapsack keeps to its "
                "capacity",
       .assumes = "a network, chain or profile; operators whose class nobody knows (chains, "
                  "graphs, profiles without `class`) count as expensive. Operators run one by "
                  "one: nothing is fused",
       .guarantees = "none on the peak: the budget is one on what is kept for the backwards, and "
                     "what runs again may need more at once",
       .complexity = "that of a maximum flow, and O(operators x 10,000) for the knapsack"},
      record, plan_min_cut);
}

}  // namespace plimsoll
