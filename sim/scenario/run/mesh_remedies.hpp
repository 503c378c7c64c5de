/// What runs on the processors of a mesh where a run on it was out of memory: more of the state in parts, the
/// half, a fourth, .. of the data axis given to another axis, positions divided as well, smaller microbatches, or
/// every block run again. Nothing is guessed, all is tried.
#pragma once

#include "scenario/run/run.hpp"

#include <string>
#include <vector>

namespace plimsoll {

/// Of `plimsoll run`: "--set", "parallel.tensor=2", "--set", "parallel.data=4".
using ChangeArguments = std::vector<std::string>;

/// For a shell.
[[nodiscard]] std::string in_one_line(const ChangeArguments& arguments);

struct MeshRemedies {
  struct Change {
    ChangeArguments arguments;
    Time makespan;  ///< of a step
  };
  std::vector<Change> run;               ///< the fastest first
  std::vector<ChangeArguments> failed;   ///< tried, and out of memory as well
  std::vector<ChangeArguments> skipped;  ///< not tried: those before it, or it alone, take too long
};

/// Of each kind of change the least that runs. What surely does not fit (run_bound.hpp) is not run. After about a
/// fixed count of planned and played steps, nothing more is tried. Nothing for runs without a mesh, of plan files,
/// and of very long plans. O(a run of each).
[[nodiscard]] MeshRemedies mesh_remedies_of(const Scenario& scenario, const RunResult& result);

}  // namespace plimsoll
