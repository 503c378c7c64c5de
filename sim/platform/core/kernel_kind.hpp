/// Kinds of operators that reach different shares of a processor's peaks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace plimsoll {

/// Classes of operators that reach different shares of a processor's peak.
enum class OperatorClass : std::uint8_t {
  matmul,
  convolution,
  attention,
  normalization,
  pooling,
  elementwise,
  embedding,
  loss,
  optimizer,
  other
};
inline constexpr std::size_t kOperatorClasses = 10;

/// The classes, and then kinds that a platform may tell apart: each reaches what the kind that
/// stands for it reaches (parent_of) where the platform does not say more.
enum class KernelKind : std::uint8_t {
  direct_convolution = kOperatorClasses,  ///< with a stride, a dilation or groups
  pointwise_convolution,                  ///< of one position
  depthwise_convolution,                  ///< of groups of one channel
  convolution_bias,                       ///< where kernels of its own add it (Kernels::bias)
  fused_attention,                        ///< scores are never stored
  convolution_backward,
  direct_convolution_backward,
  pointwise_convolution_backward,
  depthwise_convolution_backward,
  convolution_bias_backward,
  pooling_backward,
  fused_attention_backward
};
inline constexpr std::size_t kKernelKinds = kOperatorClasses + 12;

/// Whether it is made of multiply-adds, but for little.
[[nodiscard]] constexpr bool multiplies(OperatorClass of_class) {
  return of_class == OperatorClass::matmul || of_class == OperatorClass::convolution ||
         of_class == OperatorClass::attention;
}

[[nodiscard]] constexpr KernelKind kind_of(OperatorClass of_class) {
  return static_cast<KernelKind>(of_class);
}
[[nodiscard]] constexpr bool is_class(KernelKind kind) {
  return static_cast<std::size_t>(kind) < kOperatorClasses;
}
/// The kind that stands for one that is no class; it comes before it.
[[nodiscard]] KernelKind parent_of(KernelKind kind);
/// The kind of the backward of such a forward; the same where the two are one.
[[nodiscard]] KernelKind backward_of(KernelKind kind);

/// As written in files: "matmul", "direct_convolution".
[[nodiscard]] std::string to_text(OperatorClass);
[[nodiscard]] std::string to_text(KernelKind);

}  // namespace plimsoll
