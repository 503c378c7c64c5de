/// Any bytes give a workload or one InputError; a workload's stages cover its operators.
#include "workload/chain/chain_view.hpp"
#include "workload/onnx/onnx_file.hpp"
#include "workload/workload_file.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace plimsoll;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const auto graph = std::make_shared<const OnnxGraph>(parse_onnx(bytes, "fuzz"));
    const OnnxSpec spec{graph->where, graph->name, graph, onnx_batch(*graph)};
    const Workload workload = build(WorkloadSource{spec}, {.optimizer = Optimizer::adam});
    const ChainView view = chain_view(workload);
    if (!view.stages.empty() && view.stages.back().forward_end != workload.forwards) std::abort();
  } catch (const InputError& error) {
    if (error.diagnostics().empty()) std::abort();
  }
  return 0;
}
