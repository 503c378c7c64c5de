#include "policy/offload/search/heuristics.hpp"

#include "policy/offload/model/fluid_bound.hpp"
#include "policy/offload/model/fluid_timing.hpp"
#include "policy/offload/search/polish.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

constexpr std::size_t kSets = 5;
constexpr std::size_t kLongerPrefixes = 8;
constexpr std::size_t kPolishedActions = 1'000'000;

bool is_within(const OffloadModel& model, const OffloadSet& set) {
  return model.budget.is_unlimited() || smallest_budget(model, set) <= model.budget;
}

OffloadSet prefix_of(const OffloadModel& model, std::size_t length) {
  OffloadSet set = everything(model);
  std::fill(set.begin() + static_cast<std::ptrdiff_t>(length), set.end(), false);
  return set;
}

/// Longer prefixes need no more, so that the shortest is found by halving.
std::size_t shortest_prefix(const OffloadModel& model) {
  std::size_t low = 0, high = model.candidates;
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (is_within(model, prefix_of(model, middle)))
      high = middle;
    else
      low = middle + 1;
  }
  return high;
}

/// Runs the shortest prefix that fits, and some longer ones, the farther apart the longer.
void run_prefixes(const OffloadModel& model, std::vector<Timed>& runs) {
  const std::size_t shortest = shortest_prefix(model);
  const std::size_t rest = model.candidates - shortest;
  for (std::size_t i = 0; i <= std::min(rest, kLongerPrefixes); ++i) {
    const std::size_t more =
        rest <= kLongerPrefixes ? i : rest * i * i / (kLongerPrefixes * kLongerPrefixes);
    run_set(model, prefix_of(model, shortest + more), runs);
  }
}

/// Where nothing else ends: everything is moved, with which what fits in the budget at all ends,
/// or, where the storage has no room for that, the best set of the model.
void add_last_resort(const OffloadModel& model, const std::vector<TimedSet>& sets,
                     std::vector<Timed>& runs) {
  if (!runs.empty()) return;
  run_set(model, everything(model), runs);
  if (runs.empty() && !sets.empty()) run_set(model, sets.front().set, runs);
}

}  // namespace

Heuristic dynamic_offload(const OffloadModel& model) {
  Heuristic found;
  if (!is_within(model, everything(model))) return found;
  const std::vector<TimedSet> sets = best_sets(model, kSets);
  for (const TimedSet& it : sets) run_set(model, it.set, found.runs);
  if (!sets.empty()) found.model_makespan = sets.front().makespan;
  add_last_resort(model, sets, found.runs);
  if (!found.runs.empty()) {
    Timed best = *std::ranges::min_element(found.runs, {}, &Timed::makespan);
    polish(model, best, fluid_bound(model).value_or(Time{}), kPolishedActions);
    found.runs.push_back(std::move(best));
  }
  return found;
}

Heuristic greedy_offload(const OffloadModel& model) {
  Heuristic found;
  if (!is_within(model, everything(model))) return found;
  run_prefixes(model, found.runs);
  const std::vector<TimedSet> sets = best_sets(model, 1);
  if (!sets.empty()) found.model_makespan = sets.front().makespan;
  add_last_resort(model, sets, found.runs);
  return found;
}

}  // namespace plimsoll
