/// Low-rank adapters (LowRank of workload/core/workload_options.hpp) beside linear layers:
///
///   y = W x + s B (A x),   A of [rank, features in], B of [features out, rank]
///
/// as PEFT has it, without dropout: the frozen product, two without a bias, one by a number, a sum.
/// The adapters keep x, A x and, in PyTorch 1.13, the number; the frozen product keeps nothing.
#pragma once

#include "workload/core/workload_options.hpp"
#include "workload/network/network_builder.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

class LowRankAdapters {
 public:
  static constexpr std::string_view kAdapted = "linear";

  LowRankAdapters(const LowRank& lora, Framework framework);

  /// Whether the linear layer of this name has one; asked in the order of execution.
  [[nodiscard]] bool take(const std::string& name);
  /// The value that takes the place of `output`, which the layer made of `input`. Throws InputError
  /// at the rank where it exceeds the layer's features, LayerError as NetworkBuilder.
  [[nodiscard]] std::uint32_t add(NetworkBuilder& builder, std::uint32_t input,
                                  std::uint32_t output, const std::string& name) const;
  /// Throws InputError, with the nearest names, for patterns that no linear layer matched.
  void check() const;

 private:
  LowRank lora_;
  Framework framework_;
  std::vector<bool> is_used_;       ///< by pattern
  std::vector<std::string> names_;  ///< of linear layers
};

}  // namespace plimsoll
