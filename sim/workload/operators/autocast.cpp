#include "workload/operators/autocast.hpp"

#include "workload/operators/operator_effects.hpp"

#include <algorithm>

namespace plimsoll {

ValueTypes value_types(const WorkloadOptions& options, DType dtype) {
  const DType full = options.dtype.value_or(dtype);
  return {full, options.autocast.value_or(full),
          options.loss_dtype ? std::optional(options.loss_dtype->value) : std::nullopt};
}

DType type_under(Autocast list, const ValueTypes& types, std::span<const DType> inputs) {
  switch (list) {
    case Autocast::low:
      return types.low;
    case Autocast::widest:
      return *std::ranges::max_element(inputs, {}, bytes_per_element);
    case Autocast::input:
      return inputs.front();
    case Autocast::full:
    case Autocast::softmax:
    case Autocast::parameter:
    case Autocast::unknown:
      break;
  }
  return types.full;
}

bool casts(Autocast list, DType input, DType type) {
  const bool reads_it = list == Autocast::softmax && input == DType::fp16;
  const bool asks = list == Autocast::low || list == Autocast::full || list == Autocast::softmax;
  return asks && !reads_it && input != type;
}

const OperatorRule& cast_rule() {
  static const OperatorRule kRule{"cast", OperatorClass::elementwise,  Autocast::input,
                                  {},     effect::keeps_nothing<0, 0>, "to another type"};
  return kRule;
}

}  // namespace plimsoll
