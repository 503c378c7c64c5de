#include "base/dense_id.hpp"
#include "policy/claims/claims.hpp"
#include "policy/claims/copy_time.hpp"
#include "policy/graph/gap_bound.hpp"
#include "policy/hybrid/graph/energy_bound.hpp"
#include "policy/hybrid/graph/energy_costs.hpp"
#include "policy/hybrid/graph/graph_search.hpp"
#include "policy/hybrid/graph/runtime_factor.hpp"
#include "policy/hybrid/poet/poet_parameters.hpp"
#include "policy/remat/graph/program/checkmate_planner.hpp"
#include "policy/remat/graph/program/staged_solver.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr const char* kSearch = "`hybrid/graph` with `objective: energy` plans for every workload";
/// Tries with less room, where the solver's rounding let a plan pass that needs more.
constexpr int kMostPoetTries = 3;
/// How finely a budget that would do is told.
constexpr std::int64_t kRoomParts = 256;

class CorrectedPoet {
 public:
  CorrectedPoet(const Problem& problem, const PoetParameters& parameters)
      : problem_(problem),
        parameters_(parameters),
        processor_(processor_for(problem, parameters)),
        graph_(operator_graph(problem, processor_)),
        budget_(budget_for(problem, processor_, parameters)),
        room_(room_within(budget_, graph_)),
        place_(paging_place(problem, parameters, graph_)),
        groups_(rerun_groups(graph_)) {
    price_groups();
    refuse_others();
  }

  Planned run() {
    StagedSchedule once(graph_, groups_, room_);
    if (once.excess() == 0) return plan_of(once, 0);
    if (room_ < largest_step(graph_)) return no_plan(true);
    if (auto schedule = searched(room_)) take(std::move(*schedule));
    const bool is_searched = best_.has_value();
    solve();
    if (!best_) return no_plan(is_impossible_);
    Plan plan = plan_of(*best_, bound_);
    if (!is_closed_)
      plan.notes.push_back(
          fmt::format("the branch and bound ended at {} nodes{}, so that a better "
                      "plan of its kind may exist",
                      parameters_.nodes, is_searched ? " and began at the plan of a search" : ""));
    return plan;
  }

 private:
  /// Groups cost pJ: runs again, and copies back. Leaving is charged once (StagedCopies::outs).
  void price_groups() {
    const std::vector<Energy> runs = run_energies(problem_, processor_, graph_);
    for (RerunGroups::Group& group : groups_.groups) {
      copies_.again_times.push_back(group.time);
      group.time = 0;
      for (const std::uint32_t node : group.nodes) group.time += in_pj(runs[node]);
      group.runs_once = group.runs_once || !parameters_.recompute;
    }
    copies_.outs.assign(graph_.values.size(), 0);
    copies_.out_times = copies_.outs;
    if (place_.has_storage) price_copies();
    if (parameters_.runtime_factor)
      copies_.most_time =
          (most_time(graph_.time(), parameters_.runtime_factor->value) - graph_.time()).count();
  }

  void price_copies() {
    const auto& [processor, home, storage] = place_.memories;
    const SearchCosts costs =
        search_costs(problem_, place_.memories, graph_, PlanObjective::energy);
    const CopyEnergy copies(problem_, place_.memories);
    std::vector<std::int64_t> backs(graph_.values.size(), 0);
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      if (costs.copies[v] == 0) continue;
      const Bytes bytes = graph_.values[v].bytes;
      backs[v] = in_pj(copies.back(bytes));
      if (backs[v] < 1) raise_price(backs[v]);
      copies_.outs[v] = in_pj(copies.out(bytes));
      copies_.out_times[v] = copy_time(problem_, home, storage, bytes).count();
    }
    add_returns(groups_, graph_, backs);
    for (std::size_t g = copies_.again_times.size(); g < groups_.groups.size(); ++g)
      copies_.again_times.push_back(
          copy_time(problem_, storage, home, graph_.values[groups_.groups[g].returns].bytes)
              .count());
    copies_.storage = problem_.platform[storage].usable();
  }

  /// A return at no price is none (add_returns()). So that the bound holds nevertheless, it is lowered
  /// by what all of them could cost.
  void raise_price(std::int64_t& back) {
    back = 1;
    slack_ += static_cast<std::int64_t>(graph_.nodes.size());
  }

  void refuse_others() const {
    if (parameters_.counted_twice)
      refuse(parameters_.counted_twice->where, "`counted_twice` is of the published program",
             "expected `published: true` beside it");
    if (const auto why = program_refusal(graph_, groups_, "the workload", parameters_.name))
      refuse(parameters_.where, *why, kSearch);
  }

  /// What a schedule costs beyond all nodes, each once, in pJ; nothing where it breaks a limit.
  [[nodiscard]] std::optional<std::int64_t> cost_of(const StagedSchedule& schedule) const {
    std::int64_t cost = schedule.time(), time = 0;
    Bytes stored;
    std::vector<bool> has_left(graph_.values.size(), false);
    for (const Rerun& it : schedule.all()) {
      time += copies_.again_times[it.group];
      const std::uint32_t value = groups_.groups[it.group].returns;
      if (value == OperatorGraph::kNone || has_left[value]) continue;
      has_left[value] = true;
      cost += copies_.outs[value];
      time += copies_.out_times[value];
      stored += graph_.values[value].bytes;
    }
    const bool is_late = copies_.most_time && time > *copies_.most_time;
    if (is_late || stored > copies_.storage) return std::nullopt;
    return cost;
  }

  void take(StagedSchedule schedule) {
    const auto cost = cost_of(schedule);
    if (!cost || (best_ && *cost >= best_cost_)) return;
    best_ = std::move(schedule);
    best_cost_ = *cost;
  }

  /// A plan to begin with: whoever returns pays both copies there.
  [[nodiscard]] std::optional<StagedSchedule> searched(std::int64_t room) const {
    RerunGroups both = groups_;
    for (RerunGroups::Group& group : both.groups)
      if (group.returns != OperatorGraph::kNone) group.time += copies_.outs[group.returns];
    const auto found = RerunSearch(graph_, both, {.iterations = 0}, problem_.work).run(room, 0, {});
    if (!found) return std::nullopt;
    StagedSchedule schedule(graph_, groups_, room);
    schedule.add(found->all());
    return schedule;
  }

  void solve() {
    std::int64_t asked = room_;
    for (int attempt = 0; attempt < kMostPoetTries; ++attempt) {
      const auto known = best_ ? std::optional(best_cost_) : std::nullopt;
      const StagedOptimum found =
          solve_staged_program(graph_, groups_, asked, known, static_cast<int>(parameters_.nodes),
                               problem_.work, &copies_);
      if (attempt == 0) {
        is_impossible_ = found.is_impossible;
        is_closed_ = found.is_closed;
        bound_ = std::max<std::int64_t>(0, found.bound - slack_);
      }
      if (!found.reruns) return;
      StagedSchedule schedule(graph_, groups_, room_);
      schedule.add(*found.reruns);
      if (schedule.excess() == 0) return take(std::move(schedule));
      asked -= schedule.peak() - room_;
    }
  }

  /// `bound`, pJ of reruns and copies.
  [[nodiscard]] Plan plan_of(const StagedSchedule& schedule, std::int64_t bound) const {
    Plan plan = place_.has_storage ? play_schedule({problem_, place_.memories, graph_, groups_},
                                                   schedule, budget_, parameters_.name)
                                         .plan
                                   : recomputing_plan(schedule);
    if (!plan.claims.energy) plan.claims.energy = energy_of(plan);
    plan.bounds.makespan = graph_.time();
    Energy least;
    for (const Energy run : run_energies(problem_, processor_, graph_)) least += run;
    least += of_pj(std::min(bound, cost_of(schedule).value_or(bound)));
    plan.bounds.energy = of_pj(in_pj(at_source(problem_.platform, least)));
    if (plan.claims.energy && in_pj(*plan.claims.energy) <= in_pj(*plan.bounds.energy))
      plan.claims.optimal = true;
    return plan;
  }

  /// Of runs and copies, and what idles while operators wait; nothing where copies of both ways may
  /// share the power of links and storage.
  [[nodiscard]] std::optional<Energy> energy_of(const Plan& plan) const {
    if (!plan.claims.makespan) return std::nullopt;
    const std::vector<Energy> runs = run_energies(problem_, processor_, graph_);
    const CopyEnergy copies(problem_, place_.memories);
    Energy load;
    Time compute;
    for (const Step& step : plan.steps) {
      if (step.kind == StepKind::compute) {
        load += runs[index(step.op)];
        compute += graph_.nodes[index(step.op)].time;
        continue;
      }
      const Bytes bytes = problem_.workload[plan[plan.list(step.writes).front()].tensor].bytes;
      const bool is_out = plan[step.lane].from == place_.memories.home;
      const Energy alone = is_out ? copies.out(bytes) : copies.back(bytes);
      if (alone != (is_out ? copies.least_out(bytes) : copies.least_back(bytes)))
        return std::nullopt;
      load += alone;
    }
    load += problem_.platform.idle_power() * (*plan.claims.makespan - compute);
    return at_source(problem_.platform, load);
  }

  [[nodiscard]] Plan recomputing_plan(const StagedSchedule& schedule) const {
    Plan plan = plan_of_computations(problem_, graph_, processor_, parameters_.name,
                                     schedule.computations());
    plan.claims = claims_of(plan, problem_);
    return plan;
  }

  [[nodiscard]] Infeasible no_plan(bool is_proven) {
    Infeasible no =
        not_found(problem_, processor_, budget_, graph_.resident + Bytes{room_with_plan()});
    no.why += in_time_in_words(parameters_.runtime_factor);
    if (!is_proven) no.why += ", as far as the search sees; that is no proof";
    return no;
  }

  /// A room beyond the budget's in which the search finds a plan that keeps all limits, by bisection.
  std::int64_t room_with_plan() {
    std::int64_t too_little = std::max(room_, largest_step(graph_) - 1),
                 enough = StagedSchedule(graph_, groups_, room_).peak();
    while (enough - too_little > std::max<std::int64_t>(1, enough / kRoomParts)) {
      const std::int64_t room = too_little + (enough - too_little) / 2;
      const auto schedule = searched(room);
      if (schedule && cost_of(*schedule))
        enough = std::min(room, std::max(schedule->peak(), too_little + 1));
      else
        too_little = room;
    }
    return enough;
  }

  const Problem& problem_;
  const PoetParameters& parameters_;
  const ProcessorId processor_;
  const OperatorGraph graph_;
  const Bytes budget_;
  const std::int64_t room_;
  const PagingPlace place_;
  RerunGroups groups_;  ///< that cost pJ
  StagedCopies copies_;
  std::optional<StagedSchedule> best_;
  std::int64_t best_cost_ = 0;  ///< pJ of reruns and copies
  std::int64_t bound_ = 0;      ///< likewise
  std::int64_t slack_ = 0;      ///< pJ, of prices that were raised
  bool is_closed_ = false, is_impossible_ = false;
};

}  // namespace

Planned plan_corrected_poet(const Problem& problem, const PoetParameters& parameters) {
  return CorrectedPoet(problem, parameters).run();
}

}  // namespace plimsoll
