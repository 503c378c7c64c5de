#include "workload/operators/convolution_copies.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

constexpr std::int64_t kBlock = 16, kSmallBlock = 8;
constexpr std::int64_t kReadAsIs = 3;
constexpr Bytes kAlignment{128};  ///< of oneDNN's scratchpads, taken in full
constexpr std::int64_t kSmallWindow = 3, kSmallSample = 20'480;

std::int64_t rounded_up_to_block(std::int64_t channels, std::int64_t block) {
  return (channels + block - 1) / block * block;
}

/// Sizes of operands and result in one layout, or of copies of them; a bias is copied only where
/// its channels are rounded.
struct Sizes {
  Bytes input, weight, output, bias;
};

class Copies {
 public:
  explicit Copies(const CpuConvolution& convolution)
      : it_(convolution),
        window_(it_.window_height * it_.window_width),
        is_depthwise_(it_.groups > 1 && it_.groups == it_.input.channels &&
                      it_.groups == it_.output.channels),
        is_thin_(it_.groups == 1 && window_ > 1 && it_.input.channels < kBlock),
        plain_(sizes(1)),
        blocked_(it_.groups > 1 && !is_depthwise_ ? plain_ : sizes(kBlock)) {}

  [[nodiscard]] ConvolutionCopies of_layout() const {
    const Sizes forward = is_thin_ ? as_is() : blocked_, weight = for_weight();
    const Bytes bias = it_.has_bias ? Bytes{it_.element} * it_.output.channels : Bytes{};
    ConvolutionCopies copies;
    copies.forward =
        beside(plain_.output, forward.output, forward.input + forward.weight + forward.bias);
    copies.of_input = beside(plain_.input, blocked_.input, blocked_.weight + blocked_.output);
    copies.of_weight =
        std::max(weight.input + weight.output + weight.weight + weight.bias - plain_.weight,
                 weight.weight + bias);
    copies.of_both = std::max(copies.of_weight, copies.of_input - plain_.weight - bias);
    return copies;
  }

  [[nodiscard]] ConvolutionCopies of_matrix() const {
    const Bytes matrix = Bytes{it_.element} * window_ *
                         (it_.is_transposed ? it_.output.channels * it_.input.positions
                                            : it_.input.channels * it_.output.positions);
    const Bytes taken = it_.are_matrices && !it_.is_transposed ? Bytes{} : matrix;
    return {taken, taken, taken, taken};
  }

 private:
  [[nodiscard]] Sizes sizes(std::int64_t block) const {
    const std::int64_t in = rounded_up_to_block(it_.input.channels, block),
                       out = rounded_up_to_block(it_.output.channels, block);
    const Bytes channel = Bytes{it_.element} * it_.samples;
    return {channel * in * it_.input.positions,
            Bytes{it_.element} * window_ * in * (is_depthwise_ ? 1 : out / it_.groups),
            channel * out * it_.output.positions, rounded_bias(block)};
  }

  [[nodiscard]] Bytes rounded_bias(std::int64_t block) const {
    const std::int64_t out = rounded_up_to_block(it_.output.channels, block);
    if (!it_.has_bias || out == it_.output.channels) return {};
    return Bytes{it_.element} * out + kAlignment;
  }

  /// The image is not copied, and its channels in the weight are not rounded.
  [[nodiscard]] Sizes as_is() const {
    const std::int64_t out = rounded_up_to_block(it_.output.channels, kBlock);
    return {Bytes{}, Bytes{it_.element} * window_ * it_.input.channels * out, blocked_.output,
            rounded_bias(kBlock)};
  }

  /// While the gradient of the weight is made.
  [[nodiscard]] Sizes for_weight() const {
    if (is_depthwise_ && std::max(it_.window_height, it_.window_width) > kSmallWindow)
      return {Bytes{}, plain_.weight, Bytes{}, Bytes{}};
    if (!is_thin_) return blocked_;
    return it_.input.channels <= kReadAsIs ? as_is() : sizes(kSmallBlock);
  }

  /// What is there beside a result: the copies of the operands and the result before it is copied
  /// out, then that alone.
  static Bytes beside(Bytes result, Bytes copy, Bytes operands) {
    return std::max(operands + copy - result, copy);
  }

  const CpuConvolution& it_;
  std::int64_t window_;
  bool is_depthwise_;
  bool is_thin_;  ///< few channels, which oneDNN reads as they are
  Sizes plain_, blocked_;
};

bool goes_to_onednn(const CpuConvolution& it) {
  if (it.is_transposed) return false;
  return it.groups > 1 || it.samples > 1 ||
         std::min(it.window_height, it.window_width) > kSmallWindow ||
         it.input.channels * it.input.positions > kSmallSample;
}

}  // namespace

ConvolutionCopies copies_of(const CpuConvolution& convolution) {
  const Copies copies(convolution);
  return goes_to_onednn(convolution) ? copies.of_layout() : copies.of_matrix();
}

}  // namespace plimsoll
