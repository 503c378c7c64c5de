#include "scenario/measured_times.hpp"

#include "engine/wide.hpp"
#include "workload/cost_model.hpp"

#include <stdexcept>

namespace plimsoll {
std::int64_t parts_of(const Measurement& it) {
  std::int64_t parts = 0;
  for (const MeasuredShape& shape : it.shapes) parts += shape.parts;
  return parts;
}

ShapeTimes durations_on(const MeasurementSet& set, const Measurement& it,
                        const Processor& processor) {
  Platform platform = set.platform;
  Processor& unit = platform.processors[static_cast<std::size_t>(set.processor)];
  unit = processor;
  if (!it.spec->is_step()) unit.host_overhead = Time{};
  try {
    ShapeTimes times;
    for (const MeasuredShape& shape : it.shapes)
      times.push_back(durations(shape.workload, platform, set.processor));
    return times;
  } catch (const std::invalid_argument& problem) {
    throw InputError({{Severity::error, it.spec->where, problem.what(), ""}});
  } catch (const CostOverflow& problem) {
    throw InputError({{Severity::error, it.spec->where, problem.what(), ""}});
  }
}

Time mean_of(const Measurement& it, const MeasuredPart& part, const ShapeTimes& durations) {
  Signed128 sum = 0;
  for (std::size_t s = 0; s < it.shapes.size(); ++s) {
    Time of_shape;
    for (const OperatorId op : part.operators[s])
      of_shape += durations[s][static_cast<std::size_t>(op)];
    sum += Signed128{of_shape.count()} * it.shapes[s].parts;
  }
  return Time{static_cast<std::int64_t>(sum / parts_of(it))};
}

}  // namespace plimsoll
