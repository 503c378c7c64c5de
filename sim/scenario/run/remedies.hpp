/// What runs where a run was out of memory: other allocators for its plan, its policy with state in
/// another memory or with a larger budget, other policies. Nothing is guessed, all is tried.
#pragma once

#include "scenario/run/run.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plimsoll {

struct Remedies {
  struct Allocators {
    std::size_t tried = 0;
    std::vector<std::string> run;  ///< "caching, expandable_segments=true"
  };
  struct Policy {
    std::string written;  ///< "online/dtr", or with the budget that the run had
    Time makespan;
  };
  struct State {
    std::string written;  ///< "{optimizer: {memory: dram, on: cpu}}"
    Time makespan;
  };

  /// Those of usual_choices() and `static`, where the memory has addresses that the plan has not
  /// chosen itself.
  Allocators allocators;
  std::optional<Time> with_all_of_memory;  ///< the step of the same policy, where it had a budget
  std::vector<State> states;               ///< of the same policy
  std::vector<std::string> failed_states;  ///< tried as well
  std::vector<Policy> policies;
  std::vector<std::string> failed;     ///< policies: tried as well
  std::vector<std::string> undecided;  ///< policies: planning takes more than the work for this
};

/// Precondition: `result` is out of memory in a memory that processors work in; `all` has it, and runs
/// of the same scenario that are not tried again. State elsewhere is tried where one processor runs and
/// nothing is said of it, policies where that one runs a whole mini-batch at once. O(a run of each).
[[nodiscard]] Remedies remedies_of(const Scenario& scenario, const RunResult& result,
                                   std::span<const RunResult> all);

/// Likewise, but only Remedies::states and failed_states.
[[nodiscard]] Remedies state_remedies_of(const Scenario& scenario, const RunResult& result);

}  // namespace plimsoll
