/// What ranks of an axis exchange of the values of a network and of their gradients (operators/exchange_rules.hpp). With
/// `overlaps_exchanges` the gradients of weights that an exchange is for wait until it has been issued. Internal to this
/// folder.
#pragma once

#include "workload/step/fp8_operators.hpp"
#include "workload/step/parameter_copies.hpp"

#include <cstdint>
#include <map>
#include <vector>

namespace plimsoll {

class ExchangeOperators {
 public:
  ExchangeOperators(PartialStep& step, StepGradients& gradients, ParameterCopies& copies,
                    Fp8Operators& fp8)
      : step_(step),
        gradients_(gradients),
        copies_(copies),
        fp8_(fp8),
        exchanges_(step.network.gradients.size(), kNoValue),
        gathered_again_(step.network.storages.size(), kNoTensor) {}

  /// Through which exchange the gradient of a value goes that layers multiply by their weights.
  void note(std::size_t i);
  /// What ranks exchange takes no time where it is issued (workload/core/collective.hpp).
  void add_forward(const NetworkOperator& op, StepLayer& layer);
  /// Behind which the gradient of the weight of a layer is made; kNoValue: behind none.
  [[nodiscard]] std::uint32_t exchange_of(const NetworkOperator& op) const;
  void add_backward(std::size_t i);
  /// The gradients of the weights of a layer: at once, or when the exchange has been issued that the gradient of its
  /// input is for.
  void add_weight_half(std::size_t i, OperatorSpec weight);
  /// What the backward of an operator reads of a value that it kept: of one that was gathered, all
  /// parts, gathered again before the first backward that reads them.
  TensorId kept_of(const NetworkOperator& op, const StepLayer& layer, std::uint32_t value);

 private:
  [[nodiscard]] static bool sums_gradient(const NetworkOperator& op);
  [[nodiscard]] std::uint32_t quantizes_before(std::size_t exchange) const;
  ValueGradient gather_quantized(std::size_t exchange, std::uint32_t i,
                                 const ValueGradient& incoming);
  [[nodiscard]] OperatorSpec exchange_spec(const NetworkOperator& op, Phase phase,
                                           CollectiveKind kind) const;
  [[nodiscard]] OperatorId forward_of_exchange(std::size_t i) const;
  void add_now(std::size_t i, OperatorSpec weight);
  void pass_back(const NetworkOperator& op, OperatorId forward, ValueGradient its);

  struct WeightHalf {
    std::size_t layer = 0;
    OperatorSpec spec;
  };

  PartialStep& step_;
  StepGradients& gradients_;
  ParameterCopies& copies_;
  Fp8Operators& fp8_;
  /// By number of gradient: operators, where their backwards overlap.
  std::vector<std::uint32_t> exchanges_;
  std::vector<TensorId> gathered_again_;                        ///< by storage: for backwards
  std::map<std::uint32_t, std::vector<WeightHalf>> postponed_;  ///< by exchange
};

}  // namespace plimsoll
