#include "workload/step/layers_workload.hpp"

#include "workload/given/given_operators.hpp"
#include "workload/network/network.hpp"
#include "workload/step/training_step.hpp"

namespace plimsoll {

Workload build(const LayersSpec& layers, const WorkloadOptions& options) {
  const Network network = expand(layers, options);
  const Optimizer optimizer =
      options.optimizer.value_or(layers.optimizer.value_or(Optimizer::none));
  Workload workload = build_step(
      layers.name, network, step_options(options, optimizer, options.dtype.value_or(DType::fp32)));
  set_batch(workload, layers.batch, options);
  return workload;
}

}  // namespace plimsoll
