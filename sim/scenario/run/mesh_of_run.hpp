/// How the mesh of a run is divided: its axes, who divides the state, and how its collectives are done.
#pragma once

#include "plan/build/spread_plan.hpp"
#include "scenario/document/scenario.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

struct MeshOfRun {
  struct Axis {
    MeshOptions::Axis axis = MeshOptions::Axis::tensor;
    std::int64_t size = 1;
  };
  /// Rings or trees, the first axis of levels, and how many neighbours on it are a level of their own (1: none).
  struct Form {
    MeshAxis along = MeshAxis::data;  ///< the axis of the collective
    AllReduce algorithm = AllReduce::ring;
    MeshAxis level_on = MeshAxis::data;
    std::int64_t node = 1;
  };
  std::vector<Axis> axes;  ///< all, in the order in which they are laid on the devices
  std::int64_t stage = 0;  ///< of sharding
  std::optional<std::int64_t>
      group;  ///< neighbours on the data axis, where these are not all of it
  /// Ranks that divide state where it is no experts', and where it is; how many copies of it there are among
  /// the ranks that run the same layers. Of stage 0 everything is 1.
  std::int64_t parts = 1, parts_of_experts = 1, copies = 1;
  MeshOptions::Algorithm collectives = MeshOptions::Algorithm::ring;
  std::optional<std::vector<Form>> taken;  ///< by the plan, each once; unknown of one that was read

  [[nodiscard]] std::int64_t ranks() const;
  [[nodiscard]] std::int64_t size(MeshOptions::Axis axis) const;
};

/// Of a plan that was read. Precondition: the scenario has `parallel`.
[[nodiscard]] MeshOfRun mesh_of_run(const Scenario& scenario);
/// Likewise of one whose forms are known. O(forms).
[[nodiscard]] MeshOfRun mesh_of_run(const Scenario& scenario, const std::vector<TakenForm>& taken);

}  // namespace plimsoll
