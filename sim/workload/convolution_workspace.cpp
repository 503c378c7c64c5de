#include "workload/convolution_workspace.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {
namespace {

bool is_blocked(const Processor& processor) {
  return processor.convolution_layout == ConvolutionLayout::blocked;
}

Bytes limit_of(const Platform& platform) {
  Bytes limit;
  for (const Processor& processor : platform.processors)
    limit = std::max(limit, processor.convolution_workspace);
  return limit;
}

}  // namespace

std::string convolution_key(const Platform& platform) {
  return fmt::format("{}{}", std::ranges::any_of(platform.processors, is_blocked) ? "blocked " : "",
                     limit_of(platform).count());
}

void add_convolution_workspace(Workload& workload, const Platform& platform) {
  const Bytes limit = limit_of(platform);
  const bool blocked = std::ranges::any_of(platform.processors, is_blocked);
  for (Operator& op : workload.operators)
    op.workspace +=
        std::max(std::min(op.scratch.lowering, limit), blocked ? op.scratch.relayout : Bytes{});
}

}  // namespace plimsoll
