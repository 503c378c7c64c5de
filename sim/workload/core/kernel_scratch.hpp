/// Workspaces that library kernels use beside operands and results, by library.
#pragma once

#include "base/quantity.hpp"

namespace plimsoll {

/// Of one operator; which of the two it takes a platform says (workload/cost/kernel_workspace.hpp).
struct KernelScratch {
  Bytes lowering;  ///< a convolution's windows as a matrix, or its weight in another layout
  Bytes on_cpu;    ///< of PyTorch's kernels for CPUs
};

}  // namespace plimsoll
