/// What looks at a run while its program is there.
#pragma once

#include "execution/program.hpp"
#include "execution/step_sums.hpp"

namespace plimsoll {

/// Is shown what a run adds up to.
class RunInspector {
 public:
  RunInspector() = default;
  RunInspector(const RunInspector&) = delete;
  RunInspector& operator=(const RunInspector&) = delete;
  virtual ~RunInspector() = default;

  virtual void see(const Program& program, const Execution& execution, const StepSums& sums) = 0;
};

}  // namespace plimsoll
