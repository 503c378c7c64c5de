#include "workload/core/workload.hpp"

namespace plimsoll {

const char* to_text(TensorClass tensor_class) {
  switch (tensor_class) {
    case TensorClass::parameter:
      return "parameter";
    case TensorClass::gradient:
      return "gradient";
    case TensorClass::optimizer_state:
      return "optimizer_state";
    case TensorClass::activation:
      return "activation";
    case TensorClass::saved:
      return "saved";
    case TensorClass::workspace:
      return "workspace";
    case TensorClass::in_flight:
      return "in_flight";
  }
  return "";
}

}  // namespace plimsoll
