/// The names of layers in messages and patterns.
#pragma once

#include "workload/core/workload.hpp"

#include <string_view>

namespace plimsoll {

/// The layer that an operator belongs to: "conv2d_1" of the operator "conv2d_1.forward".
[[nodiscard]] inline std::string_view layer_of(const Operator& op) {
  const std::string_view name = op.name;
  return name.substr(0, name.rfind('.'));
}

}  // namespace plimsoll
