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

Format<DType> loss_dtype_format() {
  return one_of<DType>({{"fp32", DType::fp32}});
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

Format<Fp8> fp8_format() {
  constexpr std::int64_t kMostHistory = 1'000'000;
  const auto recipe = one_of<Fp8Recipe>({{"none", Fp8Recipe::none},
                                         {"delayed", Fp8Recipe::delayed},
                                         {"current", Fp8Recipe::current},
                                         {"block", Fp8Recipe::block},
                                         {"mxfp8", Fp8Recipe::mxfp8}});
  auto alone = mapped<Fp8Recipe, Fp8>(recipe, [](Fp8Recipe value) { return Fp8{.recipe = value}; });
  auto record = Record<Fp8>("fp8", "Dense layers in fp8, as Transformer Engine runs them.")
                    .required("recipe", &Fp8::recipe, recipe, "how values are scaled")
                    .optional("history", &Fp8::history, integer(1, kMostHistory),
                              "of `delayed`: steps whose largest values are kept; default 1024")
                    .optional("weights", &Fp8::caches_weights,
                              one_of<bool>({{"cached", true}, {"anew", false}}),
                              "one copy in fp8 a step, or one for each microbatch; default cached")
                    .format();
  return either(std::move(alone), std::move(record));
}

Format<NamedIntegers> with_format() {
  return map_of(integer(0, kMaxBatch));
}

}  // namespace plimsoll
