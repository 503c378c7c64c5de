/// What an operator's attributes are where a network does not give them, by the framework that it
/// is of.
///
/// A mean of PyTorch 1.13.1 keeps what it averages, a product by a number the number; those of
/// PyTorch 2 keep neither (recorded with 2.6.0 and 2.14.1, docs/accuracy.md).
#pragma once

#include "workload/core/workload_options.hpp"
#include "workload/operators/operator_rules.hpp"

#include <algorithm>
#include <array>

namespace plimsoll {

[[nodiscard]] inline RuleArguments default_arguments(const OperatorRule& rule,
                                                     Framework framework) {
  constexpr std::array<std::string_view, 3> kKeptBefore = {"global_avg_pool", "row_mean", "scale"};
  RuleArguments arguments = default_arguments(rule);
  if (framework == Framework::pytorch_2 &&
      std::ranges::find(kKeptBefore, rule.kind) != kKeptBefore.end())
    for (auto& [name, value] : arguments)
      if (name == "kept") value = 0;
  return arguments;
}

}  // namespace plimsoll
