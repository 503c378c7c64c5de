#include "base/names_hint.hpp"
#include "base/quantity_text.hpp"
#include "policy/claims/claims.hpp"
#include "policy/hybrid/graph/energy_costs.hpp"
#include "policy/hybrid/graph/runtime_factor.hpp"
#include "policy/hybrid/poet/poet_parameters.hpp"
#include "policy/hybrid/poet/published_program.hpp"
#include "policy/remat/graph/search/graph_task.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Beyond this many operators the solver takes hours.
constexpr std::size_t kMostPublishedOperators = 100;

constexpr const char* kCorrected = "without `published: true` the corrected program plans for it";

class PublishedPoet {
 public:
  PublishedPoet(const Problem& problem, const PoetParameters& parameters)
      : problem_(problem),
        parameters_(parameters),
        processor_(processor_for(problem, parameters)),
        graph_(operator_graph(problem, processor_)),
        budget_(budget_for(problem, processor_, parameters)),
        place_(paging_place(problem, parameters, graph_)) {
    refuse_others();
  }

  Planned run() const {
    const PublishedTask task = published_task();
    const PublishedProgram program(task);
    const WholeSolution found =
        solve(program.program(), static_cast<int>(parameters_.nodes), problem_.work);
    if (!found.columns) return no_plan(found.is_impossible);
    const std::vector<PagingStep> steps = program.steps_of(*found.columns);
    Plan plan = plan_within(steps);
    plan.bounds.makespan = graph_.time();
    plan.bounds.energy = at_source(problem_.platform, of_pj(found.bound));
    plan.notes.push_back(objective_note(steps));
    plan.notes.push_back(
        found.is_closed
            ? "to a millionth, no plan of the published program needs less"
            : fmt::format("the branch and bound ended at {} nodes, so that a better plan of the "
                          "published program may exist",
                          parameters_.nodes));
    if (!found.is_closed) plan.claims.optimal = false;
    return plan;
  }

 private:
  void refuse(const std::string& why) const {
    plimsoll::refuse(parameters_.where,
                     fmt::format("the published program of {} has no place for `{}`: {}",
                                 parameters_.name, problem_.workload.name, why),
                     kCorrected);
  }

  void refuse_others() const {
    if (!is_plain_compute_graph(graph_, problem_.workload))
      refuse("it is no compute graph, or changes values in place");
    if (graph_.nodes.size() > kMostPublishedOperators)
      refuse(fmt::format("{} operators; it takes at most {}", graph_.nodes.size(),
                         kMostPublishedOperators));
    for (std::size_t node = 0; node < graph_.nodes.size(); ++node) {
      const std::string& name = problem_.workload.operators[node].name;
      if (graph_.nodes[node].makes.size() > 1)
        refuse(fmt::format("`{}` makes several values", name));
      if (graph_.nodes[node].workspace > Bytes{}) refuse(fmt::format("`{}` has a workspace", name));
    }
    for (const OperatorGraph::Value& value : graph_.values)
      if (value.stays)
        refuse(fmt::format("`{}` stays to the end", problem_.workload[value.tensor].name));
  }

  [[nodiscard]] PublishedTask published_task() const {
    PublishedTask task{.graph = graph_,
                       .room = room(),
                       .paging = place_.has_storage,
                       .recompute = parameters_.recompute,
                       .counted_twice = counted_twice()};
    for (const Energy run : run_energies(problem_, processor_, graph_))
      task.runs.push_back(in_pj(run));
    task.outs.assign(graph_.values.size(), 0);
    task.backs = task.outs;
    if (task.paging) {
      const CopyEnergy copies(problem_, place_.memories);
      for (std::size_t v = 0; v < graph_.values.size(); ++v) {
        task.outs[v] = in_pj(copies.out(graph_.values[v].bytes));
        task.backs[v] = in_pj(copies.back(graph_.values[v].bytes));
      }
    }
    const Ratio factor = parameters_.runtime_factor ? parameters_.runtime_factor->value : kWhole;
    task.most_compute = most_time(graph_.time(), factor);
    return task;
  }

  /// Bytes beside what is resident: no more than all values.
  [[nodiscard]] std::int64_t room() const {
    std::int64_t all = 0;
    for (const OperatorGraph::Value& value : graph_.values) all += value.bytes.count();
    return std::clamp<std::int64_t>(room_within(budget_, graph_), 0, all);
  }

  [[nodiscard]] std::uint32_t counted_twice() const {
    if (!parameters_.counted_twice) return OperatorGraph::kNone;
    std::vector<std::string> names;
    for (std::uint32_t v = 0; v < graph_.values.size(); ++v) {
      names.push_back(problem_.workload[graph_.values[v].tensor].name);
      if (names.back() == parameters_.counted_twice->value) return v;
    }
    plimsoll::refuse(parameters_.counted_twice->where,
                     fmt::format("`{}` makes no value `{}`", problem_.workload.name,
                                 parameters_.counted_twice->value),
                     hint_of_names(parameters_.counted_twice->value, names));
  }

  /// The plan; where the program freed a value twice, it may need more than the budget.
  [[nodiscard]] Plan plan_within(const std::vector<PagingStep>& steps) const {
    Plan plan = blocking_plan(place_, steps, Bytes::unlimited(), parameters_.name);
    if (budget_.is_unlimited()) return plan;
    const MemoryId home = place_.memories.home;
    const auto peak = std::ranges::find(plan.claims.peak, home, &std::pair<MemoryId, Bytes>::first);
    Bytes limit = budget_;
    if (parameters_.counted_twice && peak != plan.claims.peak.end() && peak->second > budget_) {
      limit = peak->second;
      plan.notes.push_back(
          fmt::format("the published program frees `{}` twice: its plan needs {} "
                      "B more than the budget, and gets it",
                      parameters_.counted_twice->value, (limit - budget_).count()));
    }
    const std::vector<std::string> notes = std::move(plan.notes);
    plan = blocking_plan(place_, steps, limit, parameters_.name);
    plan.notes = notes;
    return plan;
  }

  [[nodiscard]] std::string objective_note(const std::vector<PagingStep>& steps) const {
    Time compute;
    for (const PagingStep& step : steps)
      if (step.move == PagingMove::run) compute += graph_.nodes[step.id].time;
    return fmt::format(
        "the published objective is {}; the published limit on time counts compute "
        "only: {} of paging beside {}",
        to_text(energy_of_steps(place_, steps)),
        to_text(place_.has_storage ? time_of_copies(place_, steps) : Time{}), to_text(compute));
  }

  /// Computing everything once, each value there until its last reader's stage ends, is a plan.
  [[nodiscard]] Infeasible no_plan(bool is_proven) const {
    std::int64_t most = 0;
    for (std::uint32_t stage = 0; stage < graph_.nodes.size(); ++stage) {
      std::int64_t level = 0;
      for (const OperatorGraph::Value& value : graph_.values) {
        const bool is_needed = !value.readers.empty() && value.readers.back() >= stage;
        if (value.maker == stage || (value.maker < stage && is_needed))
          level += value.bytes.count();
      }
      most = std::max(most, level);
    }
    Infeasible no = not_found(problem_, processor_, budget_, graph_.resident + Bytes{most});
    if (!is_proven)
      no.why += fmt::format(", as far as {} nodes of the branch and bound show; that is no proof",
                            parameters_.nodes);
    return no;
  }

  const Problem& problem_;
  const PoetParameters& parameters_;
  const ProcessorId processor_;
  const OperatorGraph graph_;
  const Bytes budget_;
  const PagingPlace place_;
};

}  // namespace

Planned plan_published_poet(const Problem& problem, const PoetParameters& parameters) {
  return PublishedPoet(problem, parameters).run();
}

}  // namespace plimsoll
