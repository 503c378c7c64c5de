#include "scenario/calibration/measured_times.hpp"

#include "engine/wide.hpp"
#include "workload/cost/cost_model.hpp"

#include <stdexcept>

namespace plimsoll {
namespace {

Time sum_of(const std::vector<Time>& times, const std::vector<OperatorId>& operators) {
  Time sum;
  for (const OperatorId op : operators) sum += times[static_cast<std::size_t>(op)];
  return sum;
}

}  // namespace

std::int64_t parts_of(const Measurement& it) {
  std::int64_t parts = 0;
  for (const MeasuredShape& shape : it.shapes) parts += shape.parts;
  return parts;
}

std::vector<ShapeTimes> durations_on(const MeasurementSet& set, const Measurement& it,
                                     const Processor& processor) {
  Platform platform = set.platform;
  Processor& unit = platform.processors[static_cast<std::size_t>(set.processor)];
  unit = processor;
  if (!it.spec->is_step()) unit.host_overhead = Time{};
  if (it.spec->layer_by_layer) unit.launch_overhead = Time{};
  try {
    std::vector<ShapeTimes> times;
    for (const MeasuredShape& shape : it.shapes)
      times.push_back({durations(shape.workload, platform, set.processor),
                       addition_times(shape.workload, platform, set.processor)});
    return times;
  } catch (const std::invalid_argument& problem) {
    refuse(it.spec->where, problem.what());
  } catch (const CostOverflow& problem) {
    refuse(it.spec->where, problem.what());
  }
}

Time mean_of(const Measurement& it, const MeasuredPart& part,
             const std::vector<ShapeTimes>& durations) {
  Signed128 sum = 0;
  for (std::size_t s = 0; s < it.shapes.size(); ++s) {
    Time of_shape = sum_of(durations[s].whole, part.operators[s]);
    if (!part.has_own_additions()) of_shape -= sum_of(durations[s].additions, part.operators[s]);
    if (!part.added_before.empty())
      of_shape += sum_of(durations[s].additions, part.added_before[s]);
    sum += Signed128{of_shape.count()} * it.shapes[s].parts;
  }
  return Time{static_cast<std::int64_t>(sum / parts_of(it))};
}

}  // namespace plimsoll
