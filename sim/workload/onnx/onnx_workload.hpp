/// Workloads from ONNX files.
#pragma once

#include "workload/core/workload.hpp"
#include "workload/network/network.hpp"
#include "workload/onnx/onnx_graph.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace plimsoll {

/// A file that has been read; build() makes steps from it, as often as needed.
struct OnnxSpec {
  Location where;
  std::string name;
  std::shared_ptr<const OnnxGraph> graph;
  std::optional<std::int64_t> batch;  ///< as in the file
};

/// Throws InputError (onnx_file.hpp).
[[nodiscard]] OnnxSpec read_onnx_workload(const std::filesystem::path& path);

/// The first dimension of the first input; 1 where that has no size.
[[nodiscard]] std::int64_t onnx_batch(const OnnxGraph& graph);
/// The type of the first weight or input that has one of a network's types, else fp32.
[[nodiscard]] DType onnx_dtype(const OnnxGraph& graph);

/// The network at the batch that is asked for; `with` gives sizes to dimensions that have names
/// only. O(nodes). Throws InputError, naming operator and node.
[[nodiscard]] Network expand(const OnnxGraph& graph, const WorkloadOptions& options);
[[nodiscard]] Workload build(const OnnxSpec& onnx, const WorkloadOptions& options);

}  // namespace plimsoll
