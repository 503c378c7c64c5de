#include "workload/cost/kernel_workspace.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {
namespace {

bool is_blocked(const Processor& processor) {
  return processor.convolution_layout == ConvolutionLayout::blocked;
}

Bytes limit_of(std::span<const Processor> processors) {
  Bytes limit;
  for (const Processor& processor : processors)
    limit = std::max(limit, processor.convolution_workspace);
  return limit;
}

}  // namespace

std::string kernel_key(std::span<const Processor> processors) {
  return fmt::format("{}{}", std::ranges::any_of(processors, is_blocked) ? "blocked " : "",
                     limit_of(processors).count());
}

void add_kernel_workspace(Workload& workload, std::span<const Processor> processors) {
  const Bytes limit = limit_of(processors);
  const bool blocked = std::ranges::any_of(processors, is_blocked);
  for (Operator& op : workload.operators)
    op.workspace +=
        std::max(std::min(op.scratch.lowering, limit), blocked ? op.scratch.on_cpu : Bytes{});
}

}  // namespace plimsoll
