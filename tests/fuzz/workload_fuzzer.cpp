/// Any bytes give a workload or one InputError; a workload's stages cover its operators.
#include "workload/chain/chain_view.hpp"
#include "workload/workload_file.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace plimsoll;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr DocumentLimits kLimits{.bytes = 1 << 20, .depth = 64, .nodes = 20'000};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const WorkloadSource source = read_workload(parse_document(text, "fuzz", kLimits));
    const Workload workload = build(source, {.optimizer = Optimizer::adam});
    const ChainView view = chain_view(workload);
    if (!view.stages.empty() && view.stages.back().forward_end != workload.forwards) std::abort();
  } catch (const InputError& error) {
    if (error.diagnostics().empty()) std::abort();
  }
  return 0;
}
