/// The answer of a policy that decides while the program runs.
#pragma once

#include "policy/budget/budget.hpp"
#include "policy/online/run/online_run.hpp"

#include <functional>
#include <memory>

namespace plimsoll {

struct OnlineParameters : BudgetParameters {
  std::int64_t recompute_limit = OnlineOptions().recompute_limit;
  Masks masks = OnlineOptions().masks;
};

/// Adds `budget`, `recompute_limit` and `masks` to a record of parameters that derive from them.
template <class Parameters>
void add_online(Record<Parameters>& record) {
  add_budget(record);
  std::int64_t Parameters::*limit = &Parameters::recompute_limit;
  record.optional("recompute_limit", limit, integer(1, 1'000'000),
                  "how many times the operators of the program, by time and by number, may run "
                  "again in all, before the run is given up; default 10");
  Masks Parameters::*masks = &Parameters::masks;
  record.optional("masks", masks, one_of<Masks>({{"remake", Masks::remake}, {"keep", Masks::keep}}),
                  "of dropouts. `remake`: they may be evicted; the dropout then draws the same "
                  "numbers again, from the state of its generator. `keep`: they stay, and the "
                  "output is made again from them; default remake");
}

/// Makes a policy for a graph, which outlives it.
using OnlinePolicyMaker = std::function<std::unique_ptr<OnlinePolicy>(const StorageGraph& graph)>;

/// What all `online/` policies guarantee, for their registry entries.
extern const char* const kOnlineGuarantee;

/// The plan of what happens under the policy, with its claims: the engine plays the same. Out of
/// memory it ends there, too. Infeasible, without a smallest budget, where reruns go beyond the
/// limit. In an arena of the platform's the pool is that arena. Elsewhere the pool is taken at
/// once and is an arena of `alignment`; where that is 0 B bytes are counted in an ideal memory, and
/// in others the arena is one of 512 B. A pool that is divided (OnlineOptions::layout) is an arena
/// of the plan's in every memory, in which the plan says what lies where; infeasible where it has no
/// limit, or the strip takes all. Of `options` only what is said of reruns, releases and the layout is
/// read.
[[nodiscard]] Planned plan_online(const Problem& problem, const OnlineParameters& parameters,
                                  OnlineOptions options, Bytes alignment,
                                  const OnlinePolicyMaker& make);

}  // namespace plimsoll
