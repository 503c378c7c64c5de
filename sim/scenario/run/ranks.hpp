/// A run on the ranks of a mesh: what each policy is told, and what its plan becomes.
#pragma once

#include "plan/build/spread_plan.hpp"
#include "scenario/document/scenario.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace plimsoll {

class Ranks {
 public:
  /// Of a scenario without `parallel` one rank, of which nothing is said. Throws InputError where the
  /// platform has not the ranks.
  explicit Ranks(const Scenario& scenario);

  [[nodiscard]] bool is_mesh() const { return spreading_.has_value(); }
  /// Processors of the mesh.
  [[nodiscard]] std::int64_t count() const;
  /// By how many a mini-batch is divided.
  [[nodiscard]] std::int64_t samples() const;
  /// "data axis", "expert and data axes".
  [[nodiscard]] std::string axes_of_samples() const;
  /// How many work on the same samples, but for those of a pipeline's other stages.
  [[nodiscard]] std::int64_t of_a_sample() const;
  /// Tells how they divide layers, where they do.
  void tell(WorkloadOptions& options) const;

  /// The step as one rank runs it. Throws InputError where it cannot be sharded so.
  [[nodiscard]] Workload step_of_one(Workload step) const;

  /// The policy with the processors of the first rank: `on`, or a pipeline's `devices`. Throws
  /// InputError where it names others, or where the axes are not its own.
  [[nodiscard]] Node policy_of_one(const Node& policy) const;

  /// The plan of the first rank for all of them.
  [[nodiscard]] Plan of_all(Plan of_one, const Problem& problem) const;

 private:
  /// Whether stages of a pipeline hold gradients in parts.
  [[nodiscard]] bool divides_stages() const;
  [[nodiscard]] std::int64_t size(std::optional<Located<std::int64_t>> MeshOptions::*axis) const;
  [[nodiscard]] std::optional<TensorAxis> tensor_axis() const;
  void check_sharding() const;
  void check_layers(const std::optional<Located<std::int64_t>>& axis, const char* name) const;
  void check_tensor() const;

  const Scenario& scenario_;
  std::optional<Spreading> spreading_;
};

}  // namespace plimsoll
