#include "scenario/sweep_run.hpp"

#include <new>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

/// The first sentence of what is wrong, and how many more there are.
std::string sentence_of(const InputError& error) {
  const auto& all = error.diagnostics();
  std::string text = to_text(all.front());
  if (all.size() > 1) text += fmt::format(" (and {} more)", all.size() - 1);
  return text;
}

std::string message_of(const RunResult& run) {
  if (run.infeasible)
    return fmt::format("{}; the smallest budget is {}", run.infeasible->why,
                       to_text(run.infeasible->smallest_budget));
  if (run.oom)
    return fmt::format("{} asked for {} of {}; {} were free, {} in one block", run.oom->step,
                       to_text(run.oom->asked), run.oom->memory, to_text(run.oom->free),
                       to_text(run.oom->largest_free_block));
  return fmt::format("{}", fmt::join(run.cycle, "; "));
}

RunResult run_point(const Sweep& sweep, SweepPoint point, ScenarioMemo& memo) {
  Overrides overrides;
  overrides.set_in_file = std::move(point.assignments);
  overrides.may_lack_parameters = true;
  const Scenario scenario = read_scenario(sweep.base, sweep.folder, overrides, &memo);
  RunResult run = run_policy(scenario, scenario.policies.front(), &memo);
  // Rows wait for their turn in large numbers.
  run.step = {};
  run.plan = {};
  run.execution = {};
  return run;
}

}  // namespace

SweepRow SweepRuns::run(std::size_t number) const {
  SweepRow row{"error", {}, {}, {}, {}};
  try {
    SweepPoint point = sweep_.point(number);
    row.texts = std::move(point.texts);
    row.values = std::move(point.values);
    for (std::size_t v = 0; v < row.values.size(); ++v)
      if (sweep_.variables[v] == "policy") row.run.policy = row.values[v].word;
    row.run = run_point(sweep_, std::move(point), *memo_);
    row.status = status_text(row.run);
    row.message = message_of(row.run);
  } catch (const InputError& error) {
    row.message = sentence_of(error);
  } catch (const std::bad_alloc&) {
    row.message = "this machine has too little memory for the scenario";
  } catch (const std::exception& error) {
    row.message = fmt::format("internal error: {}; please report it with the input", error.what());
  }
  return row;
}

}  // namespace plimsoll
