/// The names in a graph: who makes each value, and what is wrong with them, whatever else is.
#pragma once

#include "base/format.hpp"
#include "workload/core/topological_order.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll {

/// Names with sizes, in the order of the file.
using NamedBytes = std::vector<std::pair<Located<std::string>, Bytes>>;

/// Who makes each value: the position of an operator, or kInput.
using Makers = std::map<std::string, std::uint32_t>;
inline constexpr std::uint32_t kInput = 0xFFFFFFFF;

[[nodiscard]] Bytes sum_of(const NamedBytes& values);

/// Of `operators`, in the order of the file, with `inputs` that have a `value`. O(operators +
/// inputs log values).
[[nodiscard]] TopologicalOrder order_of(const auto& operators, const Makers& makers) {
  std::vector<Need> needs;
  for (std::uint32_t i = 0; i < operators.size(); ++i)
    for (const Located<std::string>& input : operators[i].inputs) {
      const auto maker = makers.find(input.value);
      if (maker != makers.end() && maker->second != kInput) needs.emplace_back(i, maker->second);
    }
  return topological_order(static_cast<std::uint32_t>(operators.size()), needs);
}

enum class FileOrder : std::uint8_t {
  any,
  topological  ///< an operator comes after those that make what it reads
};

/// Reports operators that have one name, values that are made twice, unknown inputs and those that
/// are named twice, cycles, and, where it matters, an operator before one that it needs. `document`
/// has `inputs` and `graph`, whose shapes are given. O(operators + inputs log values).
void check_graph_names(const Node& document, const Shape& document_shape,
                       const Shape& operator_shape, FileOrder order, Diagnostics& diagnostics);

}  // namespace plimsoll
