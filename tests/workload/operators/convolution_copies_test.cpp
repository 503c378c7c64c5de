#include "workload/operators/convolution_copies.hpp"

#include "support/oracles.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::json;

CpuConvolution::Image image(const json& dims) {
  return {dims.at(0), dims.at(1).get<std::int64_t>() * dims.at(2).get<std::int64_t>()};
}

CpuConvolution convolution(const json& row) {
  CpuConvolution it;
  it.input = image(row.at("input"));
  it.output = image(row.at("output"));
  it.window_height = it.window_width = row.at("kernel");
  it.groups = row.value("groups", 1);
  it.samples = row.at("samples");
  it.has_bias = row.value("bias", false);
  it.is_transposed = row.value("transposed", false);
  it.are_matrices = row.at("kernel") == 1;
  return it;
}

}  // namespace

TEST_CASE("convolutions on a CPU copy what PyTorch was measured to copy") {
  const json data = test::oracle("convolution_copies.json");
  REQUIRE(data.at("rows").size() == 15);
  for (const json& row : data.at("rows")) {
    CAPTURE(row.dump());
    const ConvolutionCopies copies = copies_of(convolution(row));
    CHECK(row.at("forward") == copies.forward.count());
    const Bytes backward = row.value("of_input", true) ? copies.of_both : copies.of_weight;
    CHECK(row.at("backward") == backward.count());
  }
}

TEST_CASE("each gradient of a convolution copies what it reads and what it makes") {
  // One sample of 32 channels at 100 x 100 positions to 48, under 1 x 1: whole blocks.
  CpuConvolution it;
  it.input = {32, 10'000};
  it.output = {48, 10'000};
  constexpr std::int64_t in = 4 * 32 * 10'000, out = 4 * 48 * 10'000, weight = 4 * 32 * 48;
  const ConvolutionCopies copies = copies_of(it);
  CHECK(copies.forward == Bytes{std::max(in + weight, out)});
  CHECK(copies.of_input == Bytes{out + weight});
  CHECK(copies.of_weight == Bytes{in + out});
  CHECK(copies.of_both == copies.of_weight);
}

}  // namespace plimsoll
