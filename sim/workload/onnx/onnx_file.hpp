/// ONNX files: read with the published schema (onnx.proto), without the weights.
///
/// The bytes are first copied without the data of all but the smallest tensors, which is skipped in
/// the file itself; only what remains is parsed. Names of external data are never followed. So
/// memory and time follow the graph, not the size of the file.
#pragma once

#include "workload/onnx/onnx_graph.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace plimsoll {

/// The largest file that the format allows.
inline constexpr std::int64_t kMaxOnnxBytes = 2'147'483'647;

/// O(graph). Throws InputError: not a file, not ONNX, truncated, larger than 2 GiB, more than 64
/// MiB without its weights, more than 200,000 nodes or tensors, more than 16 dimensions.
[[nodiscard]] OnnxGraph read_onnx(const std::filesystem::path& path);
/// The same from bytes in memory; `origin` stands for the path in messages.
[[nodiscard]] OnnxGraph parse_onnx(std::string_view bytes, const std::string& origin);

/// "net.onnx" and the like.
[[nodiscard]] bool is_onnx_path(const std::filesystem::path& path);

}  // namespace plimsoll
