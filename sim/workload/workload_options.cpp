#include "workload/workload_options.hpp"

namespace plimsoll {

std::int64_t states_of(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::none:
    case Optimizer::sgd:
      return 0;
    case Optimizer::sgd_momentum:
      return 1;
    case Optimizer::adam:
    case Optimizer::adamw:
      return 2;
  }
  return 0;
}

Format<std::int64_t> batch_format() {
  return integer(1, kMaxBatch);
}

Format<Optimizer> optimizer_format() {
  return one_of<Optimizer>({{"none", Optimizer::none},
                            {"sgd", Optimizer::sgd},
                            {"sgd-momentum", Optimizer::sgd_momentum},
                            {"adam", Optimizer::adam},
                            {"adamw", Optimizer::adamw}});
}

Format<Loss> loss_format() {
  return one_of<Loss>({{"cross-entropy", Loss::cross_entropy},
                       {"bce-with-logits", Loss::bce_with_logits},
                       {"mse", Loss::mse},
                       {"sum", Loss::sum},
                       {"none", Loss::none}});
}

Format<DType> dtype_format() {
  return one_of<DType>({{"fp32", DType::fp32}, {"fp16", DType::fp16}, {"bf16", DType::bf16}});
}

Format<NamedIntegers> with_format() {
  return map_of(integer(0, kMaxBatch));
}

}  // namespace plimsoll
