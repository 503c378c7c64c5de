/// The memory that PyTorch takes for a convolution on a CPU, beside operands and result.
///
/// Most convolutions go to oneDNN, which computes in a layout of its own, blocks of 16 channels
/// where a CPU has vectors of 512 bits: both operands are copied into it, the result is made in it,
/// and copied out when the copies of the operands are gone (aten/src/ATen/native/mkldnn/Conv.cpp).
/// Channels are rounded up to whole blocks. What differs:
///   - an image of fewer than 16 channels under a window of several positions is read as it is, and
///     the gradient of its weight made in blocks of 8; of up to 3 channels, from the image as it
///     is;
///   - of depthwise convolutions the gradient of a weight wider than 3 is made without copies;
///   - channels of other groups are not rounded.
///
/// Transposed convolutions PyTorch runs itself, and those of one sample of up to 20,480 values
/// under windows that are not wider than 3 (use_mkldnn() in aten/src/ATen/native/Convolution.cpp;
/// on one thread 1 x 1 convolutions of fewer than 16 samples, too, which is not counted). They
/// write the windows of one sample out as a matrix.
///
/// Measured, of PyTorch 1.13.1 and oneDNN 2.6.3, on one thread: several add up parts of a weight's
/// gradient, each in a buffer of its own. The positions of one sample, which oneDNN writes out
/// under a 1 x 1 window with a stride, are left out.
#pragma once

#include "base/quantity.hpp"

#include <cstdint>

namespace plimsoll {

struct CpuConvolution {
  struct Image {
    std::int64_t channels = 1, positions = 1;
  };
  Image input, output;  ///< of one sample
  /// Of the weight.
  std::int64_t window_height = 1, window_width = 1, groups = 1;
  std::int64_t samples = 1;
  std::int64_t element = 4;  ///< bytes
  bool has_bias = false, is_transposed = false;
  bool are_matrices = false;  ///< a window of one position at every position
};

/// Beside its result, and beside the gradient of its input while that of the weight is made.
struct ConvolutionCopies {
  Bytes forward;
  Bytes of_input, of_weight;  ///< for one gradient
  Bytes of_both;              ///< one after the other
};

[[nodiscard]] ConvolutionCopies copies_of(const CpuConvolution& convolution);

}  // namespace plimsoll
