#include "scenario/run/mesh_of_run.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

std::vector<MeshOfRun::Axis> axes_of(const MeshOptions& parallel) {
  std::vector<NamedAxis> axes(std::begin(kNamedAxes), std::end(kNamedAxes));
  // Of axes of one rank any place is right: the keys' own.
  std::ranges::stable_sort(axes, {},
                           [&](const NamedAxis& axis) { return parallel.stride(axis.axis); });
  std::vector<MeshOfRun::Axis> named;
  for (const NamedAxis& axis : axes) named.push_back({axis.axis, parallel.size(axis.axis)});
  return named;
}

void add_sharding(const Scenario& scenario, MeshOfRun& mesh) {
  mesh.stage = scenario.sharding.stage;
  if (mesh.stage == 0) return;
  const MeshOptions& parallel = *scenario.parallel;
  const std::int64_t data = MeshOptions::size(parallel.data);
  const auto& group = scenario.sharding.group;
  if (group && group->value != data) mesh.group = group->value;
  mesh.copies = data / mesh.group.value_or(data);
  mesh.parts_of_experts = MeshOptions::size(parallel.context) * mesh.group.value_or(data);
  mesh.parts = MeshOptions::size(parallel.expert) * mesh.parts_of_experts;
}

/// Ranks of a node on the data axis, or groups of one, where the scenario names nodes: these are part of the axis,
/// not of a form (mesh_of(), divide_into_groups()). A node that is the whole axis is no level of its own.
std::int64_t named_node(MeshAxis along, const MeshOfRun& mesh, const MeshOptions& parallel) {
  if (mesh.collectives != MeshOptions::Algorithm::hierarchical) return 1;
  const std::int64_t node = MeshOptions::size(parallel.node);
  const std::int64_t data = MeshOptions::size(parallel.data);
  const std::int64_t group = mesh.group.value_or(data);
  if (along == MeshAxis::data) return node < group ? node : 1;
  const std::int64_t groups = node / group;
  return along == MeshAxis::replica && groups < data / group ? std::max<std::int64_t>(groups, 1)
                                                             : 1;
}

}  // namespace

std::int64_t MeshOfRun::ranks() const {
  std::int64_t product = 1;
  for (const Axis& axis : axes) product *= axis.size;
  return product;
}

std::int64_t MeshOfRun::size(MeshOptions::Axis axis) const {
  const auto found = std::ranges::find(axes, axis, &Axis::axis);
  return found == axes.end() ? 1 : found->size;
}

MeshOfRun mesh_of_run(const Scenario& scenario) {
  MeshOfRun mesh;
  mesh.axes = axes_of(*scenario.parallel);
  add_sharding(scenario, mesh);
  mesh.collectives = scenario.parallel->collectives;
  return mesh;
}

MeshOfRun mesh_of_run(const Scenario& scenario, const std::vector<TakenForm>& taken) {
  // The axes of Spreading in their order (mesh_of(), divide_into_groups()).
  constexpr MeshAxis kAxes[] = {MeshAxis::tensor, MeshAxis::context, MeshAxis::expert,
                                MeshAxis::data, MeshAxis::replica};
  const MeshOptions& parallel = *scenario.parallel;
  MeshOfRun mesh = mesh_of_run(scenario);
  mesh.taken.emplace();
  for (const TakenForm& it : taken) {
    const std::int64_t node =
        it.form.node > 1 ? it.form.node : named_node(it.along, mesh, parallel);
    const MeshAxis level = it.form.node > 1 ? kAxes[it.form.axis] : it.along;
    mesh.taken->push_back({it.along, it.form.algorithm, level, node});
  }
  return mesh;
}

}  // namespace plimsoll
