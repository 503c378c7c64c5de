/// Operators with given times and sizes, shared by chains and graphs.
#pragma once

#include "workload/core/workload_builder.hpp"
#include "workload/core/workload_options.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

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
  /// not every abstract workload has optimizer operators that would.
  std::vector<TensorId> resident;
  TensorId parameters = kNoTensor;
  TensorId gradient = kNoTensor;
};

/// Adds the parameters of `owner`, their gradient buffer and the optimizer's state; parameters of
/// 0 B only where they are `updated`.
[[nodiscard]] GivenParameters add_parameters(WorkloadBuilder& builder, const std::string& owner,
                                             Bytes bytes, Optimizer optimizer,
                                             bool updated = false);

void set_batch(Workload& workload, std::optional<std::int64_t> in_file,
               const WorkloadOptions& options);

/// "stage `a`: ...", where the values under `keys` are. A name that cannot be read is left out.
void report(const Node& node, std::span<const std::string> keys, const std::string& what,
            const std::string& problem, Diagnostics& diagnostics);

/// Adds the check that a stage or operator gives its backward whole, or in both halves.
template <class Spec>
void check_backward(Record<Spec>& record, const char* what) {
  static const std::vector<std::string> kKeys{"backward", "backward_input", "backward_weight"};
  record.check(kKeys, [what](Spec& spec, const Node& node, Diagnostics& diagnostics) {
    const std::string problem =
        backward_problem(spec.backward, spec.backward_input, spec.backward_weight);
    if (!problem.empty()) report(node, kKeys, what, problem, diagnostics);
  });
}

/// Reports names that several mappings of a list have.
void check_names(const Node& list, const std::string& what, Diagnostics& diagnostics);

}  // namespace plimsoll
