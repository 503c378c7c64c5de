#include "policy/remat/graph/rules/xla.hpp"

#include "policy/budget/with_budget.hpp"
#include "policy/claims/claims.hpp"
#include "policy/graph/computations.hpp"
#include "policy/interface/registry.hpp"
#include "policy/remat/graph/rules/block_rematerialization.hpp"
#include "policy/remat/segments/runs_within.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

struct XlaParameters : BudgetParameters {
  std::int64_t block_limit = 1;
  Time useful = Time::unlimited();  ///< of who asks: plans that take as long are of no use
};

/// How near a budget that the rule keeps to has to be to one that it does not.
constexpr std::int64_t kNearness = 256;

class XlaPlanner {
 public:
  XlaPlanner(const Problem& problem, const XlaParameters& parameters)
      : problem_(problem),
        parameters_(parameters),
        processor_(processor_for(problem, parameters)),
        budget_(budget_for(problem, processor_, parameters)),
        graph_(operator_graph(problem, processor_)),
        groups_(rerun_groups(graph_, ChangesByOnce::join)) {}

  Planned run() const {
    const Bytes room = budget_.is_unlimited() ? budget_ : budget_ - graph_.resident;
    const auto computations = within(room);
    if (!computations && !parameters_.useful.is_unlimited())
      return no_faster_plan(problem_, processor_);
    if (!computations)
      return not_found(problem_, processor_, budget_, graph_.resident + smallest_room(room));
    Plan plan = plan_of_computations(problem_, graph_, processor_, parameters_.name, *computations);
    plan.claims = claims_of(plan, problem_);
    return plan;
  }

 private:
  [[nodiscard]] std::optional<std::vector<std::uint32_t>> within(Bytes room) const {
    return rematerialize_blocks(graph_, groups_, room,
                                static_cast<std::size_t>(parameters_.block_limit), problem_.work,
                                parameters_.useful);
  }

  /// A room that the rule keeps to, by halving what is between one that it does not and one in which
  /// nothing runs again. It need not keep to all larger ones.
  [[nodiscard]] Bytes smallest_room(Bytes too_small) const {
    too_small = std::max(too_small, Bytes{});
    Bytes room = judge_computations(graph_, all_once(graph_))->peak;
    while (room - too_small > Bytes{1 + room.count() / kNearness}) {
      const Bytes asked = too_small + Bytes{(room - too_small).count() / 2};
      (within(asked) ? room : too_small) = asked;
    }
    return room;
  }

  const Problem& problem_;
  const XlaParameters& parameters_;
  const ProcessorId processor_;
  const Bytes budget_;
  const OperatorGraph graph_;
  const RerunGroups groups_;
};

Planned plan_xla(const Problem& problem, const XlaParameters& parameters) {
  const ProcessorId processor = processor_for(problem, parameters);
  const auto plan = [&](const Problem& of, Bytes budget) {
    const XlaParameters asked = with_budget(parameters, budget);
    return XlaPlanner(of, asked).run();
  };
  return plan_that_runs(problem, processor, budget_for(problem, processor, parameters), plan);
}

}  // namespace

Planned xla_faster_than(const Problem& problem, const BudgetParameters& parameters, Time useful) {
  XlaParameters asked{parameters};
  asked.name = "remat/xla";
  asked.useful = useful;
  return plan_xla(problem, asked);
}

PolicyInfo remat_xla_policy() {
  auto record = single_processor_record<XlaParameters>("remat/xla");
  add_budget(record);
  record.optional("block_limit", &XlaParameters::block_limit, integer(1, 1'000'000),
                  "most operators that run again together, tried in doubling numbers; default 1, "
                  "as shipped for GPUs");
  return make_policy<XlaParameters>(
      {.name = "remat/xla",
       .summary = "Walks the operators and runs again what frees most wherever the budget is "
                  "exceeded, as XLA does.",
       .paper = "XLA's HloRematerialization (hlo_rematerialization.cc) in its default mode, "
                "without compression and offload. What stays to the end counts as bytes, and the "
                "effort on blocks has no other limit than their length",
       .assumes = "any workload of one processor, one microbatch; the order of the graph",
       .guarantees = "within the budget, in an arena or a cache, too, or none (XLA warns and goes "
                     "on); time is not looked at. What is infeasible names a budget that it meets, "
                     "not the least",
       .complexity = "O(reruns (operators + reads)), n^2 for n reruns of n operators"},
      record, plan_xla);
}

}  // namespace plimsoll
