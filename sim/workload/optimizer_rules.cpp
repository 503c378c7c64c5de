#include "workload/optimizer_rules.hpp"

namespace plimsoll {
namespace {

using State = std::vector<std::pair<std::string, Bytes>>;

constexpr Bytes kFloat{4};
constexpr std::int64_t kQuantizedBlock = 2048, kLeastQuantized = 4096;

State moments(Elements elements, std::int64_t count) {
  State state;
  for (std::int64_t i = 1; i <= count; ++i)
    state.emplace_back("state_" + std::to_string(i), kFloat * elements.count());
  return state;
}

State quantized_moments(Elements elements) {
  if (elements.count() < kLeastQuantized) return moments(elements, 2);
  const std::int64_t blocks = (elements.count() - 1) / kQuantizedBlock + 1;
  State state;
  for (const char* moment : {"state_1", "state_2"}) {
    state.emplace_back(moment, Bytes{elements.count()});
    state.emplace_back(std::string(moment) + ".absmax", kFloat * blocks);
  }
  return state;
}

State factored_moment(const Dims& dims) {
  if (dims.size() < 2) return moments(elements_of(dims), 1);
  Dims rows(dims.begin(), dims.end() - 1), columns(dims.begin(), dims.end() - 2);
  columns.push_back(dims.back());
  return {{"rows", kFloat * elements_of(rows).count()},
          {"columns", kFloat * elements_of(columns).count()}};
}

}  // namespace

State optimizer_state(Optimizer optimizer, const Dims& parameter) {
  switch (optimizer) {
    case Optimizer::none:
    case Optimizer::sgd:
      return {};
    case Optimizer::sgd_momentum:
      return moments(elements_of(parameter), 1);
    case Optimizer::adam:
    case Optimizer::adamw:
      return moments(elements_of(parameter), 2);
    case Optimizer::adam_8bit:
    case Optimizer::adamw_8bit:
      return quantized_moments(elements_of(parameter));
    case Optimizer::adafactor:
      return factored_moment(parameter);
  }
  return {};
}

Bytes optimizer_temporaries(Optimizer optimizer, Elements parameter) {
  const bool holds_two = optimizer == Optimizer::adam || optimizer == Optimizer::adamw ||
                         optimizer == Optimizer::adafactor;
  return holds_two ? kFloat * 2 * parameter.count() : Bytes{};
}

/// Of 4 bytes an element. Once are read: gradient, parameter, moments; and written: all but the
/// gradient.
Bytes repeated_passes(Optimizer optimizer, Elements parameter) {
  const auto of = [&](std::int64_t all, std::int64_t once) {
    return kFloat * (all - once) * parameter.count();
  };
  switch (optimizer) {
    case Optimizer::none:
    case Optimizer::sgd:
    case Optimizer::adam_8bit:
    case Optimizer::adamw_8bit:
      return {};
    case Optimizer::sgd_momentum:
      return of(8, 5);
    case Optimizer::adam:
      return of(20, 7);
    case Optimizer::adamw:
      return of(22, 7);
    case Optimizer::adafactor:
      return of(21, 3);
  }
  return {};
}

std::int64_t update_flops(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::none:
      return 0;
    case Optimizer::sgd:
      return 2;
    case Optimizer::sgd_momentum:
      return 4;
    case Optimizer::adam:
    case Optimizer::adam_8bit:
    case Optimizer::adafactor:
      return 12;
    case Optimizer::adamw:
    case Optimizer::adamw_8bit:
      return 14;
  }
  return 0;
}

}  // namespace plimsoll
