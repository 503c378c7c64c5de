#include "scenario/run/mesh_axes.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace plimsoll {

void tell_axes(const MeshOptions& parallel, WorkloadOptions& options) {
  if (MeshOptions::size(parallel.tensor) > 1) {
    TensorAxis axis{parallel.tensor->where, parallel.tensor->value, std::nullopt};
    if (parallel.sequence && parallel.sequence->value) axis.sequence = parallel.sequence->where;
    axis.overlaps = parallel.overlap && parallel.overlap->value;
    options.tensor = axis;
  }
  if (MeshOptions::size(parallel.context) > 1) options.context = parallel.context;
  if (MeshOptions::size(parallel.expert) > 1) options.expert = parallel.expert;
}

Ranks ranks_of_run(const Scenario& scenario, const Node& policy) {
  try {
    return Ranks(scenario, policy);
  } catch (const InputError& refused) {
    if (!scenario.parallel || !std::holds_alternative<LayersSpec>(scenario.workload)) throw;
    std::vector<Diagnostic> all(refused.diagnostics().begin(), refused.diagnostics().end());
    WorkloadOptions options = scenario.workload_options;
    tell_axes(*scenario.parallel, options);
    try {
      static_cast<void>(build(scenario.workload, options));
    } catch (const InputError& undivided) {
      std::ranges::copy(undivided.diagnostics(), std::back_inserter(all));
    }
    throw InputError(std::move(all));
  }
}

}  // namespace plimsoll
