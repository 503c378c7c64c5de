/// What libraries of convolutions take beside operands and results, by how they work.
#pragma once

#include "base/quantity.hpp"

namespace plimsoll {

/// Of one convolution; which of the two it takes a platform says
/// (workload/convolution_workspace.hpp).
struct ConvolutionScratch {
  Bytes lowering;  ///< to write its windows out as a matrix, or its weight in another layout
  Bytes relayout;  ///< to hold operands and results in a layout of the library's own
};

}  // namespace plimsoll
