/// How a training may be divided among the processors of a candidate.
///
///   parallel: {tensor: [1, 2, 4, 8], pipeline: [1, 2], sequence: true}
///
/// is the mesh of a scenario with lists of sizes. Every choice of one size for each axis is tried whose
/// product divides the processors; `data`, unless it is given, has what the others leave.
#pragma once

#include "base/document.hpp"
#include "platform/core/platform.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plimsoll {

struct Split {
  using Axes = std::vector<std::pair<std::string, std::int64_t>>;
  Node parallel;  ///< as a scenario has it
  Axes axes;      ///< those above 1

  /// Whether the axis has more than one rank.
  [[nodiscard]] bool has(std::string_view axis) const;
};

/// "tensor 8, data 2"; "none" without any.
[[nodiscard]] std::string to_text(const Split::Axes& axes);

/// In the order of the lists, the last axis fastest. What is no list of sizes is left to whoever reads
/// the mesh. Throws InputError for an empty list, for thousands of choices, and where none divides the
/// processors. O(choices).
[[nodiscard]] std::vector<Split> splits_of(const Node& parallel, const Platform& platform);

}  // namespace plimsoll
