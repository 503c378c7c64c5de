#include "base/quantity_text.hpp"
#include "policy/budget/budget.hpp"
#include "policy/claims/copy_time.hpp"
#include "policy/hybrid/graph/energy_costs.hpp"
#include "policy/hybrid/graph/runtime_factor.hpp"
#include "policy/hybrid/paging/paging_parameters.hpp"
#include "policy/hybrid/paging/paging_search.hpp"
#include "policy/interface/registry.hpp"
#include "policy/remat/graph/search/graph_task.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr const char* kInstead = "`hybrid/graph` with `objective: energy` plans for every graph";

struct PagingExactParameters : PagingParameters {
  std::optional<Located<Ratio>> runtime_factor;
};

class PagingExact {
 public:
  PagingExact(const Problem& problem, const PagingExactParameters& parameters)
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
    if (!sequence) return no_plan(task);
    Plan plan = blocking_plan(place_, sequence->steps, budget_, parameters_.name);
    plan.claims.optimal = true;
    plan.bounds.makespan = graph_.time();
    plan.bounds.energy = at_source(problem_.platform, least_energy(task, sequence->cost));
    return plan;
  }

 private:
  [[nodiscard]] Infeasible no_plan(const PagingTask& task) const {
    Infeasible no = infeasible(problem_, processor_, budget_,
                               graph_.resident + least_paging_room(task, problem_.work));
    if (parameters_.runtime_factor)
      no.why +=
          fmt::format("; with copies that block it may take {}, {} times the operators",
                      to_text(task.most_time), as_fraction(parameters_.runtime_factor->value));
    return no;
  }

  void refuse_others() const {
    const std::string& name = parameters_.name;
    if (!is_plain_compute_graph(graph_, problem_.workload))
      refuse(parameters_.where,
             fmt::format("`{}` is for compute graphs, whose operators have a `time`; `{}` has "
                         "backwards, or changes values in place",
                         name, problem_.workload.name),
             kInstead);
    const Processor& unit = problem_.platform[processor_];
    if (unit.power && unit.power->sleep_after)
      refuse(parameters_.where,
             fmt::format("{} counts idle power while copies block, and `{}` may sleep then", name,
                         unit.name),
             fmt::format("leave out `processors.{}.power.sleep_after`, or take `hybrid/graph` with "
                         "`objective: energy`",
                         unit.key()));
    if (graph_.nodes.size() > kMostPagingNodes)
      refuse(parameters_.where,
             fmt::format("the graph has {} operators; {} takes at most {}", graph_.nodes.size(),
                         name, kMostPagingNodes),
             kInstead);
    if (graph_.values.size() > kMostPagingValues)
      refuse(parameters_.where,
             fmt::format("the operators make {} values; {} takes at most {}", graph_.values.size(),
                         name, kMostPagingValues),
             kInstead);
  }

  [[nodiscard]] PagingTask task_of_blocking_copies() const {
    PagingTask task{.graph = graph_,
                    .room = budget_.is_unlimited() ? budget_ : budget_ - graph_.resident,
                    .runs = {},
                    .outs = std::vector<PagingCost>(graph_.values.size()),
                    .backs = std::vector<PagingCost>(graph_.values.size()),
                    .paging = place_.has_storage,
                    .recompute = parameters_.recompute};
    const std::vector<Energy> runs = run_energies(problem_, processor_, graph_);
    for (std::size_t node = 0; node < runs.size(); ++node)
      task.runs.push_back({runs[node], graph_.nodes[node].time});
    if (parameters_.runtime_factor)
      task.most_time = most_time(graph_.time(), parameters_.runtime_factor->value);
    if (task.paging) price_copies(task);
    return task;
  }

  void price_copies(PagingTask& task) const {
    const auto& [processor, home, storage] = place_.memories;
    task.storage = room_of_storage();
    const CopyEnergy copies(problem_, place_.memories);
    const Power idle = problem_.platform.idle_power();
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      const Bytes bytes = graph_.values[v].bytes;
      const Time out = copy_time(problem_, home, storage, bytes);
      const Time back = copy_time(problem_, storage, home, bytes);
      task.outs[v] = {copies.out(bytes) + idle * out, out};
      task.backs[v] = {copies.back(bytes) + idle * back, back};
    }
  }

  /// Unlimited where all values fit, which spares the search to give up copies.
  [[nodiscard]] Bytes room_of_storage() const {
    const Bytes usable = problem_.platform[place_.memories.storage].usable();
    Bytes all;
    for (const OperatorGraph::Value& value : graph_.values) all += value.bytes;
    return all <= usable ? Bytes::unlimited() : usable;
  }

  /// Of all plans in this order, also those whose copies overlap with what else happens, and then take
  /// no time of their own.
  [[nodiscard]] Energy least_energy(PagingTask task, Energy blocking) const {
    if (!task.paging) return blocking;
    const CopyEnergy copies(problem_, place_.memories);
    bool is_less = !task.most_time.is_unlimited();
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      const PagingCost out{copies.least_out(graph_.values[v].bytes), {}};
      const PagingCost back{copies.least_back(graph_.values[v].bytes), {}};
      is_less |= out.energy != task.outs[v].energy || back.energy != task.backs[v].energy;
      task.outs[v] = out;
      task.backs[v] = back;
    }
    if (!is_less) return blocking;
    return cheapest_paging(task, problem_.work)->cost;
  }

  const Problem& problem_;
  const PagingExactParameters& parameters_;
  const ProcessorId processor_;
  const OperatorGraph graph_;
  const Bytes budget_;
  const PagingPlace place_;
};

Planned plan_paging_exact(const Problem& problem, const PagingExactParameters& parameters) {
  try {
    return PagingExact(problem, parameters).run();
  } catch (const TooManyPagingStates& states) {
    refuse(parameters.where,
           fmt::format("the search of {} for `{}` would pass {}", parameters.name,
                       problem.workload.name, states.what()),
           kInstead);
  }
}

}  // namespace

PolicyInfo hybrid_paging_exact_policy() {
  using Parameters = PagingExactParameters;
  auto record = paging_record<Parameters>("hybrid/paging-exact");
  record.optional("runtime_factor", &Parameters::runtime_factor, runtime_factor_format(),
                  "the most time, copies included, as a multiple of that of all operators, each "
                  "once; default: no limit");
  return make_policy<Parameters>(
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
                              "nothing happens at the same time as one, and nothing sleeps",
                              kMostPagingNodes, kMostPagingValues),
       .guarantees = "optimal among the plans whose first runs come in the order of the graph and "
                     "whose copies block; what is infeasible names the smallest budget. Its energy "
                     "is the sum of its runs and copies, and idle power times the time of the "
                     "copies. The bound on energy holds for plans whose copies overlap, too",
       .complexity = fmt::format("exponential in the values, at most {} states", kMostPagingStates),
       .is_for_compute_graphs = true},
      record, plan_paging_exact);
}

}  // namespace plimsoll
