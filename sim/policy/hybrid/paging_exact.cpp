#include "policy/budget/budget.hpp"
#include "policy/claims/copy_time.hpp"
#include "policy/hybrid/graph/energy_costs.hpp"
#include "policy/hybrid/paging/paging_parameters.hpp"
#include "policy/hybrid/paging/paging_search.hpp"
#include "policy/interface/registry.hpp"
#include "policy/remat/graph/search/graph_task.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr const char* kInstead = "`hybrid/graph` with `objective: energy` plans for every graph";

class PagingExact {
 public:
  PagingExact(const Problem& problem, const PagingParameters& parameters)
      : problem_(problem),
        parameters_(parameters),
        processor_(processor_for(problem, parameters)),
        graph_(operator_graph(problem, processor_)),
        budget_(budget_for(problem, processor_, parameters)),
        place_(paging_place(problem, parameters, graph_)) {
    refuse_others();
  }

  Planned run() const {
    const PagingTask task = task_of_blocking_copies();
    const auto sequence = cheapest_paging(task, problem_.work);
    if (!sequence)
      return infeasible(problem_, processor_, budget_,
                        graph_.resident + least_paging_room(task, problem_.work));
    Plan plan = blocking_plan(place_, sequence->steps, budget_, parameters_.name);
    plan.claims.optimal = true;
    plan.bounds.makespan = graph_.time();
    plan.bounds.energy = at_source(problem_.platform, least_energy(task, sequence->cost));
    return plan;
  }

 private:
  void refuse_others() const {
    const std::string& name = parameters_.name;
    if (!is_plain_compute_graph(graph_, problem_.workload))
      refuse_parameter(
          parameters_.where,
          fmt::format("`{}` is for compute graphs, whose operators have a `time`; `{}` has "
                      "backwards, or changes values in place",
                      name, problem_.workload.name),
          kInstead);
    if (graph_.nodes.size() > kMostPagingNodes)
      refuse_parameter(parameters_.where,
                       fmt::format("the graph has {} operators; {} takes at most {}",
                                   graph_.nodes.size(), name, kMostPagingNodes),
                       kInstead);
    if (graph_.values.size() > kMostPagingValues)
      refuse_parameter(parameters_.where,
                       fmt::format("the operators make {} values; {} takes at most {}",
                                   graph_.values.size(), name, kMostPagingValues),
                       kInstead);
  }

  [[nodiscard]] PagingTask task_of_blocking_copies() const {
    PagingTask task{.graph = graph_,
                    .room = budget_.is_unlimited() ? budget_ : budget_ - graph_.resident,
                    .runs = run_energies(problem_, processor_, graph_),
                    .paging = place_.has_storage,
                    .recompute = parameters_.recompute};
    task.outs.resize(graph_.values.size());
    task.backs.resize(graph_.values.size());
    if (!task.paging) return task;
    const auto& [processor, home, storage] = place_.memories;
    task.storage = room_of_storage();
    const CopyEnergy copies(problem_, place_.memories);
    const Power idle = idle_power(problem_.platform);
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      const Bytes bytes = graph_.values[v].bytes;
      task.outs[v] = copies.out(bytes) + idle * copy_time(problem_, home, storage, bytes);
      task.backs[v] = copies.back(bytes) + idle * copy_time(problem_, storage, home, bytes);
    }
    return task;
  }

  /// Unlimited where all values fit, which spares the search to give up copies.
  [[nodiscard]] Bytes room_of_storage() const {
    const Bytes usable = problem_.platform[place_.memories.storage].usable();
    Bytes all;
    for (const OperatorGraph::Value& value : graph_.values) all += value.bytes;
    return all <= usable ? Bytes::unlimited() : usable;
  }

  /// Of all plans in this order, also those whose copies overlap with what else happens.
  [[nodiscard]] Energy least_energy(PagingTask task, Energy blocking) const {
    if (!task.paging) return blocking;
    const CopyEnergy copies(problem_, place_.memories);
    const auto whole = std::pair(task.outs, task.backs);
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      task.outs[v] = copies.least_out(graph_.values[v].bytes);
      task.backs[v] = copies.least_back(graph_.values[v].bytes);
    }
    if (whole == std::pair(task.outs, task.backs)) return blocking;
    return cheapest_paging(task, problem_.work)->cost;
  }

  const Problem& problem_;
  const PagingParameters& parameters_;
  const ProcessorId processor_;
  const OperatorGraph graph_;
  const Bytes budget_;
  const PagingPlace place_;
};

Planned plan_paging_exact(const Problem& problem, const PagingParameters& parameters) {
  try {
    return PagingExact(problem, parameters).run();
  } catch (const TooManyPagingStates& states) {
    refuse_parameter(parameters.where,
                     fmt::format("the search of {} for `{}` would pass {}", parameters.name,
                                 problem.workload.name, states.what()),
                     kInstead);
  }
}

}  // namespace

PolicyInfo hybrid_paging_exact_policy() {
  return make_policy<PagingParameters>(
      {.name = "hybrid/paging-exact",
       .summary =
           "The plan of least energy of a small graph that recomputes and pages, by shortest "
           "paths.",
       .paper = "none: it judges the integer program of Patil et al. 2022, \"POET: Training Neural "
                "Networks on Tiny Devices with Integrated Rematerialization and Paging\", ICML, "
                "arXiv:2207.07697, without its stages: a value leaves and comes back when it "
                "has to",
       .assumes = fmt::format("a compute graph of at most {} operators and {} values, about 11 in "
                              "seconds, on a platform with powers or energies. Copies block: "
                              "nothing happens at the same time as one",
                              kMostPagingNodes, kMostPagingValues),
       .guarantees = "optimal among the plans whose first runs come in the order of the graph and "
                     "whose copies block; what is infeasible names the smallest budget. Its energy "
                     "is the sum of its runs and copies, and idle power times the time of the "
                     "copies. The bound on energy holds for plans whose copies overlap, too",
       .complexity = fmt::format("exponential in the values, at most {} states", kMostPagingStates),
       .is_for_compute_graphs = true},
      paging_record<PagingParameters>("hybrid/paging-exact"), plan_paging_exact);
}

}  // namespace plimsoll
