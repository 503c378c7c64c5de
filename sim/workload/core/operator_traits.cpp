#include "workload/core/operator_traits.hpp"

namespace plimsoll {

bool is_compute_intensive(const Operator& op) {
  switch (op.operator_class) {
    case OperatorClass::matmul:
    case OperatorClass::convolution:
    case OperatorClass::attention:
    case OperatorClass::other:
      return true;
    default:
      return false;
  }
}

bool is_fusible(const Operator& op) {
  switch (op.operator_class) {
    case OperatorClass::elementwise:
    case OperatorClass::normalization:
    case OperatorClass::embedding:
    case OperatorClass::loss:
      return true;
    default:
      return false;
  }
}

}  // namespace plimsoll
