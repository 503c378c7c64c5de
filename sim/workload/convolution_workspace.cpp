#include "workload/convolution_workspace.hpp"

#include <algorithm>

namespace plimsoll {

void add_convolution_workspace(Workload& workload, const Platform& platform) {
  Bytes limit;
  for (const Processor& processor : platform.processors)
    limit = std::max(limit, processor.convolution_workspace);
  for (Operator& op : workload.operators) op.workspace += std::min(op.lowering, limit);
}

}  // namespace plimsoll
