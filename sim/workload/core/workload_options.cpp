#include "workload/core/workload_options.hpp"

#include <map>

namespace plimsoll {

std::optional<std::int64_t> states_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::none:
    case Optimizer::sgd:
      return 0;
    case Optimizer::sgd_momentum:
    case Optimizer::lion:
      return 1;
    case Optimizer::adam:
    case Optimizer::adamw:
    case Optimizer::adamw_hf:
    case Optimizer::bert_adam:
    case Optimizer::adadelta:
      return 2;
    case Optimizer::adam_8bit:
    case Optimizer::adamw_8bit:
    case Optimizer::adafactor:
    case Optimizer::muon:
      break;
  }
  return std::nullopt;
}

Format<std::int64_t> batch_format() {
  return integer(1, kMaxBatch);
}

Format<Optimizer> optimizer_format() {
  return one_of<Optimizer>({{"none", Optimizer::none},
                            {"sgd", Optimizer::sgd},
                            {"sgd-momentum", Optimizer::sgd_momentum},
                            {"adam", Optimizer::adam},
                            {"adamw", Optimizer::adamw},
                            {"adamw-hf", Optimizer::adamw_hf},
                            {"bert-adam", Optimizer::bert_adam},
                            {"adadelta", Optimizer::adadelta},
                            {"adam-8bit", Optimizer::adam_8bit},
                            {"adamw-8bit", Optimizer::adamw_8bit},
                            {"adafactor", Optimizer::adafactor},
                            {"lion", Optimizer::lion},
                            {"muon", Optimizer::muon}});
}

Format<Loss> loss_format() {
  return one_of<Loss>({{"cross-entropy", Loss::cross_entropy},
                       {"fused-cross-entropy", Loss::fused_cross_entropy},
                       {"bce-with-logits", Loss::bce_with_logits},
                       {"mse", Loss::mse},
                       {"sum", Loss::sum},
                       {"none", Loss::none}});
}

Format<Framework> framework_format() {
  return one_of<Framework>(
      {{"pytorch-1.13", Framework::pytorch_1_13}, {"pytorch-2", Framework::pytorch_2}});
}

Format<DType> dtype_format() {
  return one_of<DType>(
      {{"fp32", DType::fp32}, {"tf32", DType::tf32}, {"fp16", DType::fp16}, {"bf16", DType::bf16}});
}

Format<DType> autocast_format() {
  return one_of<DType>({{"fp16", DType::fp16}, {"bf16", DType::bf16}});
}

Format<Trained> trained_format() {
  using What = Trained::What;
  auto read = [](const Node& node, Diagnostics& diagnostics) -> std::optional<Trained> {
    const std::map<std::string, What> words = {
        {"all", What::all}, {"bias", What::bias}, {"none", What::none}};
    if (node.is_scalar())
      if (const auto word = words.find(node.scalar()); word != words.end())
        return Trained{word->second, kWhole};
    Diagnostics of_share;
    if (node.is_scalar())
      if (const auto share = efficiency().read(node, of_share)) return Trained{What::all, *share};
    diagnostics.error(node.where(),
                      "expected `all`, `bias`, `none`, or the share of output channels that is "
                      "trained, such as 25 %; found " +
                          node.describe());
    return std::nullopt;
  };
  Shape shape;
  shape.title = "what is trained";
  shape.text = "all, bias, none, or a share of output channels: 25 %";
  return {std::move(read), std::move(shape)};
}

Format<LowRank> lora_format() {
  constexpr std::int64_t kMostRank = 1'000'000;
  constexpr std::size_t kMostPatterns = 100;
  return Record<LowRank>("lora", "Low-rank adapters beside frozen linear layers.")
      .required("rank", &LowRank::rank, located(integer(1, kMostRank)),
                "features between the two products")
      .required("of", &LowRank::of, list_of(located(text()), 1, kMostPatterns),
                "names of linear layers; `*` for any characters")
      .format();
}

Format<ElementBits> bits_format() {
  const auto width = integer(1, 32);
  return Record<ElementBits>("bits", "Widths of elements in bits; left out, the type's.")
      .optional("activations", &ElementBits::activations, width, "of values, made and kept")
      .optional("weights", &ElementBits::weights, width, "of parameters")
      .optional("gradients", &ElementBits::gradients, width, "of values and of parameters")
      .format();
}

Format<NamedIntegers> with_format() {
  return map_of(integer(0, kMaxBatch));
}

}  // namespace plimsoll
