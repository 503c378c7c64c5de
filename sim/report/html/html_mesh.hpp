/// A picture of the mesh of a run on its machine: which GPU has which coordinates, what its memory peaks
/// at, and which links carry what each axis exchanges.
///
/// A machine is what shares a host's memory or a switch of its own. Machines whose GPUs stand in the same
/// places to each other, with the same peaks, are drawn once with their count.
#pragma once

#include "report/html/html_data.hpp"

#include <optional>

namespace plimsoll {

/// Of a run with `parallel:` that has a plan; else none. O(ranks log ranks).
[[nodiscard]] std::optional<HtmlMesh> mesh_picture(const Scenario& scenario, const RunResult& run);

}  // namespace plimsoll
