#include "workload/operators/muon.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

constexpr std::int64_t kSteps = 5;
constexpr Bytes kBfloat{2}, kMoment{4};  ///< an element

/// As X has them: no more rows than columns.
struct Matrices {
  std::int64_t count = 1, rows = 1, columns = 1;
};

Matrices matrices_of(OperatorClass of_layer, const Dims& parameter) {
  Matrices it;
  if (of_layer == OperatorClass::convolution || parameter.size() == 2) {
    it.rows = parameter.front();
    it.columns = elements_of(Dims(parameter.begin() + 1, parameter.end())).count();
  } else {
    it.count = elements_of(Dims(parameter.begin(), parameter.end() - 2)).count();
    it.rows = parameter[parameter.size() - 2];
    it.columns = parameter.back();
  }
  if (it.rows > it.columns) std::swap(it.rows, it.columns);
  return it;
}

}  // namespace

bool is_orthogonalized(OperatorClass of_layer, const Dims& parameter) {
  const bool multiplies = of_layer == OperatorClass::matmul ||
                          of_layer == OperatorClass::convolution ||
                          of_layer == OperatorClass::attention;
  return multiplies && parameter.size() >= 2;
}

Orthogonalization orthogonalization_of(OperatorClass of_layer, const Dims& parameter) {
  const Matrices it = matrices_of(of_layer, parameter);
  const Elements x{elements_of({it.rows, it.columns})};
  const Elements square{elements_of({it.rows, it.rows})};
  Orthogonalization result;
  result.flops =
      (Flops{4} * x.count() * it.rows + Flops{2} * square.count() * it.rows) * kSteps * it.count;
  // m.lerp_(g), g.lerp_(m); x = g.bfloat16(), norm(x), x / norm; at the end x *= scale.
  const Bytes around = kMoment * (3 + 3 + 1) * x.count() + kBfloat * (1 + 1 + 2 + 2) * x.count();
  // A = x x'; b A, c A, (c A) A, their sum; a x, B x, their sum.
  const Bytes step =
      kBfloat * ((1 + 2 + 2 + 3) * x.count() + (1 + 1 + 2 + 2 + 3 + 3) * square.count());
  result.traffic = (around + step * kSteps) * it.count;
  // x, A, the B of the step before, b A, c A and (c A) A; or x, A, B, a x, B x and their sum.
  const Bytes of_squares = kBfloat * (x.count() + 5 * square.count());
  const Bytes of_products = kBfloat * (4 * x.count() + 2 * square.count());
  // Stacked matrices are multiplied together, as batches.
  result.workspace = std::max(of_squares, of_products) * it.count;
  constexpr std::uint32_t kAround = 2 + 4 + 1, kOfStep = 8;
  result.kernels = kAround + kOfStep * static_cast<std::uint32_t>(kSteps);
  return result;
}

MuonMomentum muon_momentum(Elements elements) {
  constexpr std::uint32_t kKernels = 3;
  // m.lerp_(g), g.lerp_(m); x = g.bfloat16().
  return {(kMoment * (3 + 3 + 1) + kBfloat) * elements.count(), kBfloat * elements.count(),
          kKernels};
}

Orthogonalization orthogonalization_of_direction(OperatorClass of_layer, const Dims& parameter) {
  const MuonMomentum momentum = muon_momentum(elements_of(parameter));
  Orthogonalization rest = orthogonalization_of(of_layer, parameter);
  rest.traffic -= momentum.traffic;
  rest.workspace -= momentum.direction;
  rest.kernels -= momentum.kernels;
  return rest;
}

}  // namespace plimsoll
