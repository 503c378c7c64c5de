#include "workload/onnx/onnx_workload.hpp"

#include "workload/given/given_operators.hpp"
#include "workload/onnx/onnx_file.hpp"
#include "workload/onnx/onnx_importer.hpp"
#include "workload/step/training_step.hpp"

namespace plimsoll {
namespace {

std::optional<DType> dtype_of(OnnxType type) {
  switch (type) {
    case OnnxType::fp32:
      return DType::fp32;
    case OnnxType::fp16:
      return DType::fp16;
    case OnnxType::bf16:
      return DType::bf16;
    default:
      return std::nullopt;
  }
}

/// A file may say itself that it is in 16 bits.
void check_autocast(const OnnxSpec& onnx, const WorkloadOptions& options) {
  if (!options.autocast || bytes_per_element(*options.dtype) == bytes_per_element(DType::fp32))
    return;
  Diagnostics diagnostics;
  diagnostics.error(onnx.where,
                    "`autocast` runs a network of fp32 or tf32 partly in 16 bits, and "
                    "this file is in " +
                        to_text(*options.dtype) +
                        " already; expected `dtype: fp32`, or no `autocast`");
  diagnostics.throw_if_errors();
}

}  // namespace

OnnxSpec read_onnx_workload(const std::filesystem::path& path) {
  auto graph = std::make_shared<const OnnxGraph>(read_onnx(path));
  return {graph->where, graph->name, graph, onnx_batch(*graph)};
}

std::int64_t onnx_batch(const OnnxGraph& graph) {
  if (graph.inputs.empty()) return 1;
  const auto& dims = graph.inputs.front().dims;
  if (!dims || dims->empty()) return 1;
  const std::int64_t batch = dims->front().size.value_or(1);
  return batch < 1 || batch > kMaxBatch ? 1 : batch;
}

DType onnx_dtype(const OnnxGraph& graph) {
  for (const OnnxInput& input : graph.inputs)
    if (const auto dtype = dtype_of(input.type)) return *dtype;
  for (const OnnxInitializer& initializer : graph.initializers)
    if (const auto dtype = dtype_of(initializer.tensor.type)) return *dtype;
  return DType::fp32;
}

Network expand(const OnnxGraph& graph, const WorkloadOptions& options) {
  return OnnxImporter(graph, options).import();
}

Workload build(const OnnxSpec& onnx, const WorkloadOptions& options) {
  WorkloadOptions resolved = options;
  resolved.dtype = options.dtype.value_or(onnx_dtype(*onnx.graph));
  check_autocast(onnx, resolved);
  const Network network = expand(*onnx.graph, resolved);
  Workload workload = build_step(
      onnx.name, network,
      step_options(resolved, resolved.optimizer.value_or(Optimizer::none), *resolved.dtype));
  set_batch(workload, onnx.batch, resolved);
  return workload;
}

}  // namespace plimsoll
