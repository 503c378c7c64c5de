/// What a cost model may want to know of the shape that an operator's kernel works on, beside FLOPs
/// and traffic. 20 bytes an operator; zeros where nothing is known, which costs as if it did not
/// matter.
#pragma once

#include <cstdint>

namespace plimsoll {

struct KernelShape {
  /// Of a convolution of one group: its products are of `inputs` x `window` values for each of
  /// `outputs` channels.
  std::uint32_t outputs = 0, inputs = 0, window = 0;
  /// Parts that run apart, one after the other within each: the channels of a batch norm.
  std::uint32_t blocks = 0;
  /// A convolution that no algorithm by transforms is for: of one position, or with a stride, a
  /// dilation or groups (A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks",
  /// CVPR 2016, arXiv 1509.09308, and those by Fourier transforms need stride 1).
  bool is_direct = false;
  /// The gradients that a backward makes by a product.
  bool of_input = false, of_weight = false;
};

}  // namespace plimsoll
