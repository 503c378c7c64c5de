/// What chains and graphs share: operators whose times and sizes are given.
#pragma once

#include "workload/workload_builder.hpp"
#include "workload/workload_options.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace plimsoll {

/// The most stages or operators of one workload.
inline constexpr std::size_t kMaxStages = 1'000'000;

/// Why these times are not a backward, or "". A stage gives its backward whole, or both halves.
[[nodiscard]] std::string backward_problem(const std::optional<Time>& whole,
                                           const std::optional<Time>& input_half,
                                           const std::optional<Time>& weight_half);

/// The whole, or the sum of the halves.
[[nodiscard]] Time whole_backward(const std::optional<Time>& whole,
                                  const std::optional<Time>& input_half,
                                  const std::optional<Time>& weight_half);

/// What the parameters of an operator bring along; empty where it has none.
struct GivenParameters {
  /// Parameters and optimizer state. The forward reads both, so that they are placed where it runs:
  /// an abstract workload has no optimizer operators that would.
  std::vector<TensorId> resident;
  TensorId parameters = kNoTensor;
  TensorId gradient = kNoTensor;
};

/// Adds the parameters of `owner`, their gradient buffer and the optimizer's state.
[[nodiscard]] GivenParameters add_parameters(WorkloadBuilder& builder, const std::string& owner,
                                             Bytes bytes, Optimizer optimizer);

void set_batch(Workload& workload, std::optional<std::int64_t> in_file,
               const WorkloadOptions& options);

/// `format`, with checks across the fields of what was read.
template <class T>
[[nodiscard]] Format<T> checked(Format<T> format,
                                std::function<void(const T&, Diagnostics&)> check) {
  auto read = [inner = std::move(format.read), check = std::move(check)](const Node& node,
                                                                         Diagnostics& diagnostics) {
    std::optional<T> value = inner(node, diagnostics);
    if (value) check(*value, diagnostics);
    return value;
  };
  return Format<T>{std::move(read), std::move(format.shape)};
}

}  // namespace plimsoll
