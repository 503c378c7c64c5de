/// What networks keep in autograd's words, for tests that compare with recordings of it.
#pragma once

#include "workload/network/kept_tensors.hpp"

#include <map>
#include <string>
#include <string_view>

namespace plimsoll {

inline std::string dtype_of(const KeptTensor& kept) {
  switch (kept.type) {
    case ElementType::value:
      return kept.dtype == DType::fp16   ? "float16"
             : kept.dtype == DType::bf16 ? "bfloat16"
                                         : "float32";
    case ElementType::statistic:
      return "float32";
    case ElementType::boolean:
      return "bool";
    case ElementType::index:
      return "int64";
    case ElementType::number:
      return "float64";
  }
  return "";
}

/// Autograd's name of what a rule's operator is.
inline std::string node_of(const KeptTensor& kept) {
  static const std::map<std::string_view, std::string> names = {
      {"conv2d", "Convolution"},
      {"conv_transpose2d", "Convolution"},
      {"linear", "Addmm"},
      {"batch_norm", "NativeBatchNorm"},
      {"layer_norm", "NativeLayerNorm"},
      {"relu", "Relu"},
      {"relu6", "Hardtanh"},
      {"gelu", "Gelu"},
      {"softmax", "Softmax"},
      {"max_pool", "MaxPool2DWithIndices"},
      {"avg_pool", "AvgPool2D"},
      {"adaptive_avg_pool", "AdaptiveAvgPool2D"},
      {"global_avg_pool", "Mean"},
      {"dropout", "NativeDropout"},
      {"product", "Bmm"},
      {"scale", "Mul"},
      {"masked_fill", "MaskedFill"},
      {"log_softmax", "LogSoftmax"},
      {"nll_loss", "NllLoss"}};
  if (kept.role == "factor") return "Mul";  // the weight of a loss is a product of its own
  return names.at(kept.kind);
}

}  // namespace plimsoll
