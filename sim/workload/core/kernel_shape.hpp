/// The shape that an operator's kernel works on, for cost models that need more than FLOPs and
/// traffic. 20 bytes an operator; zeros if nothing is known, which costs as if shape did not
/// matter.
#pragma once

#include <cstdint>

namespace plimsoll {

/// How a library may go about a convolution. Algorithms by transforms, which multiply less, need
/// windows of several positions that move by one, without dilation or groups (A. Lavin, S. Gray,
/// "Fast Algorithms for Convolutional Neural Networks", CVPR 2016, arXiv 1509.09308, and those by
/// Fourier transforms).
enum class ConvolutionShape : std::uint8_t {
  transformable,
  direct,     ///< with a stride, a dilation or groups
  pointwise,  ///< windows of one position: a matrix product
  depthwise   ///< groups of one channel, for which libraries have kernels of their own
};

struct KernelShape {
  /// Of a convolution of one group: its products are of `inputs` x `window` values for each of
  /// `outputs` channels.
  std::uint32_t outputs = 0, inputs = 0, window = 0;
  ConvolutionShape convolution = ConvolutionShape::transformable;
  /// A convolution that adds a bias, or whose backward sums the gradient of one.
  bool has_bias = false;
  /// The gradients that a backward makes by a product.
  bool of_input = false, of_weight = false;
  /// Attention that never stores its scores.
  bool fuses_attention = false;
};

}  // namespace plimsoll
