#include "workload/network/kept_tensors.hpp"

namespace plimsoll {
namespace {

class Lister {
 public:
  explicit Lister(const Network& network)
      : network_(network), seen_(network.storages.size(), false) {}

  std::vector<KeptTensor> list() {
    for (const NetworkOperator& op : network_.operators) {
      for (const std::uint32_t input : op.kept) add_value(op, "x", input);
      if (op.keeps_output) add_value(op, "y", op.output);
      if (op.keeps_weight_copy) add_copies(op);
      if (keeps_fp8_weight(network_, op)) add_fp8_copy(op);
      if (op.has_backward)
        for (const KeptExtra& extra : op.effect.extras) add_extra(op, extra);
      if (op.pool != kNoValue && op.has_backward) add_indices(op);
    }
    return std::move(kept_);
  }

 private:
  void add_value(const NetworkOperator& op, const char* role, std::uint32_t id) {
    const NetworkValue& value = network_.values[id];
    const NetworkStorage& storage = network_.storages[value.storage];
    KeptTensor kept{op.name, op.rule->kind, role, {network_.batch}, value.type, {},
                    {},      storage.bytes};
    kept.dims.insert(kept.dims.end(), value.dims.begin(), value.dims.end());
    kept.type = value.indices ? ElementType::index : ElementType::value;
    const Elements elements = elements_of(kept.dims);
    kept.bytes = value.indices ? Bytes{bytes_of(ElementType::index, 0)} * elements.count()
                               : bytes_of(elements, value.type, value.bits);
    kept.is_input = storage.is_input;
    kept.is_shared = seen_[value.storage];
    seen_[value.storage] = true;
    kept_.push_back(std::move(kept));
  }

  void add_extra(const NetworkOperator& op, const KeptExtra& extra) {
    const Bytes size = kept_bytes(op, extra);
    kept_.push_back(
        {op.name, op.rule->kind, extra.name, extra.dims, op.type, extra.type, size, size});
  }

  /// Of its weights, one of which may be another layer's, copied there for both.
  void add_copies(const NetworkOperator& op) {
    if (op.tied != kNoValue) {
      const NetworkOperator& owner = network_.operators[op.tied];
      add_copy(op, owner.effect.parameters.front());
      kept_.back().is_shared = owner.keeps_weight_copy;
    }
    for (const auto& parameter : op.effect.parameters)
      if (!is_bias(parameter.first)) add_copy(op, parameter);
  }

  void add_fp8_copy(const NetworkOperator& op) {
    const bool is_tied = op.tied != kNoValue;
    const NetworkOperator& owner = is_tied ? network_.operators[op.tied] : op;
    const auto& [name, dims] = owner.effect.parameters.front();
    const Bytes size = fp8_weight(network_, op, dims).bytes;
    kept_.push_back(
        {op.name, op.rule->kind, name, dims, DType::fp8, ElementType::value, size, size});
    kept_.back().is_shared = is_tied && keeps_fp8_weight(network_, owner);
  }

  void add_copy(const NetworkOperator& op, const std::pair<std::string, Dims>& parameter) {
    add_extra(op, {parameter.first, parameter.second, ElementType::value});
  }

  /// Those of the pooling, which keeps them where it has a backward of its own.
  void add_indices(const NetworkOperator& op) {
    const NetworkOperator& pool = network_.operators[op.pool];
    add_extra(op, pool.effect.extras.front());
    kept_.back().is_shared = pool.has_backward;
  }

  const Network& network_;
  std::vector<bool> seen_;  ///< by storage
  std::vector<KeptTensor> kept_;
};

}  // namespace

std::vector<KeptTensor> kept_tensors(const Network& network) {
  return Lister(network).list();
}

}  // namespace plimsoll
