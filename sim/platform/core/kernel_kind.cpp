#include "platform/core/kernel_kind.hpp"

#include <array>

namespace plimsoll {
namespace {

using K = KernelKind;

constexpr std::array<const char*, kKernelKinds> kNames{"matmul",
                                                       "convolution",
                                                       "attention",
                                                       "normalization",
                                                       "pooling",
                                                       "elementwise",
                                                       "embedding",
                                                       "loss",
                                                       "optimizer",
                                                       "other",
                                                       "direct_convolution",
                                                       "pointwise_convolution",
                                                       "depthwise_convolution",
                                                       "convolution_bias",
                                                       "fused_attention",
                                                       "convolution_backward",
                                                       "direct_convolution_backward",
                                                       "pointwise_convolution_backward",
                                                       "depthwise_convolution_backward",
                                                       "convolution_bias_backward",
                                                       "pooling_backward",
                                                       "fused_attention_backward"};

constexpr std::array<K, kKernelKinds - kOperatorClasses> kParents{
    kind_of(OperatorClass::convolution),
    K::direct_convolution,
    K::direct_convolution,
    kind_of(OperatorClass::elementwise),
    kind_of(OperatorClass::attention),
    kind_of(OperatorClass::convolution),
    K::direct_convolution,
    K::pointwise_convolution,
    K::depthwise_convolution,
    K::convolution_bias,
    kind_of(OperatorClass::pooling),
    K::fused_attention};

}  // namespace

KernelKind parent_of(KernelKind kind) {
  return kParents[static_cast<std::size_t>(kind) - kOperatorClasses];
}

KernelKind backward_of(KernelKind kind) {
  constexpr auto kFirst = static_cast<std::size_t>(K::convolution_backward);
  for (std::size_t i = kFirst; i < kKernelKinds; ++i)
    if (kParents[i - kOperatorClasses] == kind) return static_cast<K>(i);
  return kind;
}

std::string to_text(OperatorClass of_class) {
  return to_text(kind_of(of_class));
}

std::string to_text(KernelKind kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace plimsoll
