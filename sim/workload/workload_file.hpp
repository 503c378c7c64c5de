/// Reads a workload from a file of any form.
///
///   const WorkloadSource source = read_workload(read_document("workloads/resnet50.yaml"));
///   const Workload workload = build(source, {.batch = 32, .optimizer = Optimizer::sgd_momentum});
#pragma once

#include "workload/given/chain_workload.hpp"
#include "workload/given/compute_graph.hpp"
#include "workload/given/graph_workload.hpp"
#include "workload/given/profile_workload.hpp"
#include "workload/network/layers_file.hpp"
#include "workload/onnx/onnx_workload.hpp"

#include <optional>
#include <string>
#include <variant>

namespace plimsoll {

/// A workload as it is written; build() makes steps from it, as often as needed.
using WorkloadSource =
    std::variant<ChainSpec, GraphSpec, ComputeGraphSpec, LayersSpec, OnnxSpec, ProfileSpec>;

/// Expands `repeat` and reads a chain, a graph, a compute graph, a network of layers or a profile,
/// told apart by their keys.
/// Throws InputError with all that is wrong.
[[nodiscard]] WorkloadSource read_workload(const Node& node);

[[nodiscard]] const std::string& name_of(const WorkloadSource& source);

/// Where the workload is written.
[[nodiscard]] const Location& place_of(const WorkloadSource& source);

/// Where and how its times were recorded, which are the same on every platform; nothing for a
/// workload that is no profile.
[[nodiscard]] std::optional<std::string> recorded_of(const WorkloadSource& source);

/// The samples of a mini-batch where the scenario does not say: as in the file, else 1.
[[nodiscard]] std::int64_t default_batch(const WorkloadSource& source);

/// The optimizer that a step will have.
[[nodiscard]] Optimizer optimizer_of(const WorkloadSource& source, const WorkloadOptions& options);

/// O(operators). Throws InputError: layers that do not fit each other, sizes out of range, options
/// that do not apply to this form, a backward that cannot be split.
[[nodiscard]] Workload build(const WorkloadSource& source, const WorkloadOptions& options = {});

/// JSON Schema of all forms.
[[nodiscard]] std::string workload_schema();

}  // namespace plimsoll
