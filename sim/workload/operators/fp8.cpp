#include "workload/operators/fp8.hpp"

#include "workload/operators/layer_error.hpp"

namespace plimsoll {
namespace {

constexpr std::int64_t kScaledBlock = 128, kMxBlock = 32;
constexpr std::int64_t kScaleBytes = 4;

std::int64_t blocks(std::int64_t size, std::int64_t of) {
  return (size + of - 1) / of;
}

std::int64_t padded(std::int64_t size, std::int64_t to) {
  return blocks(size, to) * to;
}

Bytes product(std::int64_t a, std::int64_t b) {
  return Bytes{a} * b;
}

/// Of one matrix by rows; by columns those of its transpose.
Bytes block_scales(Quantized what, std::int64_t rows, std::int64_t columns) {
  const Bytes scales =
      what == Quantized::weight
          ? product(blocks(rows, kScaledBlock), padded(blocks(columns, kScaledBlock), 4))
          : product(blocks(columns, kScaledBlock), padded(rows, 4));
  return scales * kScaleBytes;
}

/// Likewise, of 1 byte.
Bytes mx_scales(std::int64_t rows, std::int64_t columns) {
  return product(padded(rows, kScaledBlock), padded(blocks(columns, kMxBlock), 4));
}

Bytes layout_scales(Fp8Recipe recipe, Quantized what, std::int64_t rows, std::int64_t columns) {
  if (recipe == Fp8Recipe::block) return block_scales(what, rows, columns);
  return recipe == Fp8Recipe::mxfp8 ? mx_scales(rows, columns) : Bytes{};
}

OperatorEffect quantize(const RuleCall& call) {
  OperatorEffect effect;
  effect.output = call.inputs.front();
  effect.gradient = OperatorEffect::Gradient::same;
  return effect;
}

}  // namespace

Fp8Matrix fp8_matrix_of(const Dims& dims, std::int64_t batch) {
  Elements rows{batch};
  for (std::size_t d = 0; d + 1 < dims.size(); ++d) rows *= dims[d];
  return {rows.count(), dims.back(), 1};
}

bool scales_tensors(Fp8Recipe recipe) {
  return recipe == Fp8Recipe::delayed || recipe == Fp8Recipe::current;
}

Bytes fp8_bytes(Fp8Recipe recipe, Quantized what, const Fp8Matrix& matrix, Fp8Layouts layouts) {
  const auto& [rows, columns, count] = matrix;
  Bytes bytes;
  if (layouts.rows) bytes += product(rows, columns) + layout_scales(recipe, what, rows, columns);
  if (layouts.columns) bytes += product(rows, columns) + layout_scales(recipe, what, columns, rows);
  if (scales_tensors(recipe)) bytes += Bytes{kScaleBytes};
  return bytes * count;
}

Bytes fp8_state(const Fp8& fp8, std::int64_t products) {
  constexpr std::int64_t kTensors = 5;
  if (!scales_tensors(fp8.recipe)) return Bytes{};
  const std::int64_t largest = fp8.recipe == Fp8Recipe::delayed ? fp8.history : 1;
  return Bytes{kScaleBytes} * (1 + largest) * kTensors * products;
}

void check_fp8_matrix(Fp8Recipe recipe, const Fp8Matrix& matrix, bool is_of_experts) {
  const bool is_mx = recipe == Fp8Recipe::mxfp8;
  const std::int64_t of_rows = is_mx ? kMxBlock : 8, of_columns = is_mx ? kMxBlock : 16;
  if ((is_of_experts || matrix.rows % of_rows == 0) && matrix.columns % of_columns == 0) return;
  throw LayerError("products in fp8 read rows in multiples of " + std::to_string(of_rows) +
                       " and features in multiples of " + std::to_string(of_columns) + ", found " +
                       std::to_string(matrix.rows) + " rows of " + std::to_string(matrix.columns) +
                       " features",
                   "rows are samples of the microbatch times positions");
}

bool may_be_in_fp8(const OperatorRule& rule) {
  return rule.kind == "linear" || rule.kind == "expert_linear";
}

const OperatorRule& quantize_rule() {
  static const OperatorRule kRule{
      "quantize", OperatorClass::elementwise, Autocast::input, {}, quantize, "to fp8"};
  return kRule;
}

}  // namespace plimsoll
