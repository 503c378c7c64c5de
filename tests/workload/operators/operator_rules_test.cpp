#include "workload/operators/operator_rules.hpp"

#include "workload/workload_text.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;
using Catch::Matchers::Contains;

namespace {

/// Bytes that one layer keeps. A convolution (or dense layer) before it makes its input a value of
/// its own and keeps only the network's input; the loss keeps nothing.
std::int64_t kept(const std::string& shape, const std::string& layers,
                  const WorkloadOptions& options = {}) {
  return build_text(network(shape, layers), options).saved_bytes.count();
}

const std::string kImage = "[2, 8, 8]";
const std::string kMake = "  - conv2d: {channels: 2, kernel: 1}\n";  // a value of 2 x 8 x 8
const std::string kMakeRows = "  - linear: 4\n";                     // a value of [.., 4]

}  // namespace

TEST_CASE("each operator keeps what its rule says") {
  constexpr std::int64_t x = 2 * 8 * 8 * 4;
  CHECK(kept(kImage, kMake) == 0);  // the network's input never counts
  CHECK(kept(kImage, kMake + "  - conv2d: {channels: 3, kernel: 3}\n") == x);
  CHECK(kept(kImage, kMake + "  - batch_norm\n") == x + 2 * 2 * 4);  // mean, 1/std of 2 channels
  CHECK(kept(kImage, kMake + "  - group_norm: 1\n", {.batch = 3}) == 3 * (x + 2 * 4));
  CHECK(kept(kImage, kMake + "  - group_norm: 2\n", {.batch = 3}) == 3 * (x + 2 * 2 * 4));
  CHECK(kept(kImage, kMake + "  - instance_norm\n", {.batch = 3}) == 3 * (x + 2 * 2 * 4));
  // A copy of its weight for each sample.
  CHECK(kept(kImage, kMake + "  - instance_norm: 1\n", {.batch = 3}) == 3 * (x + 3 * 2 * 4));
  CHECK(kept(kImage, kMake + "  - relu\n") == x);
  CHECK(kept(kImage, kMake + "  - relu6\n") == x);  // the private copy
  CHECK(kept(kImage, kMake + "  - relu6: {in_place: false}\n") == x);
  CHECK(kept(kImage, kMake + "  - gelu\n") == x);
  for (const std::string kind : {"mish", "softplus", "elu", "hard_sigmoid", "exp", "sqrt", "rsqrt",
                                 "reciprocal", "log", "pow", "abs", "sin", "cos"})
    CHECK(kept(kImage, kMake + "  - " + kind + "\n") == x);
  for (const std::string layer : {"neg", "resize: {height: 5, width: 9}", "pad: {top: 1, right: 2}",
                                  "scale: {kept: false}", "global_sum"})
    CHECK(kept(kImage, kMake + "  - " + layer + "\n") == 0);
  CHECK(kept(kImage, kMake + "  - dropout\n") == 2 * 8 * 8);  // one byte an element
  CHECK(kept(kImage, kMake + "  - dropout: {fused: 0}\n") == x);
  CHECK(kept(kImage, kMake + "  - max_pool: 2\n") == x + 2 * 4 * 4 * 8);
  CHECK(kept(kImage, kMake + "  - avg_pool: 2\n") == x);
  CHECK(kept(kImage, kMake + "  - adaptive_avg_pool: 8\n") == x);
  CHECK(kept(kImage, kMake + "  - global_avg_pool\n") == x);
  CHECK(kept(kImage, kMake + "  - flatten\n") == 0);
  CHECK(kept(kImage, kMake + "  - copy\n") == 0);
  CHECK(kept(kImage, kMake + "  - scale\n") == 8);
  constexpr std::int64_t rows = 3 * 4 * 4;
  CHECK(kept("[3, 5]", kMakeRows + "  - linear: 7\n") == rows);
  CHECK(kept("[3, 5]", kMakeRows + "  - layer_norm\n") == rows + 2 * 3 * 4);
  CHECK(kept("[3, 5]", kMakeRows + "  - softmax\n") == rows);
  CHECK(kept("[3, 5]", kMakeRows + "  - position_embedding: 9\n") == 8 * 3);
  CHECK(kept("[3, 5]", kMakeRows + "  - take: 2\n", {.batch = 6}) == 6 * 8 * 2);
  CHECK(kept("[3, 5]", kMakeRows + "  - segment_embedding: 2\n", {.batch = 6}) == 6 * 8 * 3);
}

TEST_CASE("a difference keeps nothing, a quotient both of its sides") {
  constexpr std::int64_t x = 2 * 8 * 8 * 4;
  const std::string made =
      "  - conv2d: {channels: 2, kernel: 1, name: a}\n"
      "  - conv2d: {from: input, channels: 2, kernel: 1, name: b}\n";
  CHECK(kept(kImage, made + "  - sub: {from: a, by: b}\n") == 0);
  CHECK(kept(kImage, made + "  - div: {from: a, by: b}\n") == 2 * x);
  // Broadcast: the mean of each channel, which itself keeps what it is of.
  const std::string mean = "  - global_avg_pool: {from: b, name: m}\n";
  CHECK(kept(kImage, made + mean + "  - div: {from: a, by: m}\n") == 2 * x + 2 * 4);
  CHECK_THAT(error_of(network(kImage, made + mean + "  - sub: {from: m, by: a}\n")),
             Contains("does not fit values [2]"));
}

TEST_CASE("element-wise operators take what broadcasts, not what only divides") {
  const auto by = [](const std::string& kind, const std::string& shape) {
    // One value of [3, 4]; another of `shape`, by a view of rows and a dense layer.
    return error_of(network("[3, 4]", "  - linear: {features: 4, name: a}\n" + shape + "  - " +
                                          kind + ": {from: a, by: b}\n"));
  };
  const std::string six = "  - flatten: {from: input}\n  - linear: {features: 6, name: b}\n";
  const std::string four = "  - flatten: {from: input}\n  - linear: {features: 4, name: b}\n";
  const std::string column = "  - linear: {from: input, features: 1, name: b}\n";
  for (const std::string kind : {"multiply", "sub", "div"}) {
    CHECK_THAT(by(kind, six), Contains("a factor [6] does not fit values [3, 4]"));
    CHECK(by(kind, four).empty());
    CHECK(by(kind, column).empty());
  }
  // Learned numbers: of a shape that takes each dimension or leaves it out.
  for (const std::string elements : {"1", "3", "4", "12"})
    CHECK(error_of(network("[3, 4]", "  - gain: " + elements + "\n")).empty());
  for (const std::string elements : {"2", "6"}) {
    CHECK_THAT(error_of(network("[3, 4]", "  - gain: " + elements + "\n")),
               Contains(elements + " learned numbers do not fit values [3, 4]"));
    CHECK_THAT(error_of(network("[3, 4]", "  - bias: " + elements + "\n")),
               Contains(elements + " learned numbers do not fit values [3, 4]"));
  }
  CHECK_THAT(error_of(network("[3, 4]", "  - bias: {elements: 12, rows: 2}\n")),
             Contains("12 learned numbers do not fit 2 rows"));
  CHECK_THAT(error_of(network("[2, 8, 8]", "  - masked_fill: {rows: 4, columns: 8}\n")),
             Contains("a mask [1, 4, 8] does not broadcast to the values [2, 8, 8]"));
}

TEST_CASE("a padded or resized image has the size that was asked for") {
  const auto output = [](const std::string& layer) {
    return build_text(network(kImage, kMake + "  - " + layer + "\n  - flatten\n  - linear: 1\n"))
        .macs;
  };
  const std::int64_t before = 2 * 2 * 8 * 8;  // of the convolution
  CHECK(output("pad: {top: 1, bottom: 2, left: 3}") == before + 2 * 11 * 11);
  CHECK(output("resize: {height: 3, width: 20}") == before + 2 * 3 * 20);
  CHECK_THAT(error_of(network(kImage, "  - resize: {height: 0, width: 1}\n")),
             Contains("height and width must be at least 1"));
}

TEST_CASE("patterns keep each storage once") {
  constexpr std::int64_t x = 2 * 8 * 8 * 4, statistics = 2 * 2 * 4;
  // conv, ReLU, conv: y of the ReLU is x of the next; conv, BN, ReLU: two; with ReLU6 three.
  CHECK(kept(kImage, kMake + "  - relu\n" + kMake) == x);
  CHECK(kept(kImage, kMake + "  - batch_norm\n  - relu\n" + kMake) == 2 * x + statistics);
  CHECK(kept(kImage, kMake + "  - batch_norm\n  - relu6\n" + kMake) == 3 * x + statistics);
  // As one operator, batch norm and ReLU keep the same, and nothing of what is added in between.
  CHECK(kept(kImage, kMake + "  - batch_norm_relu\n" + kMake) == 2 * x + statistics);
  CHECK(kept(kImage,
             "  - conv2d: {channels: 2, kernel: 1, name: a}\n"
             "  - conv2d: {from: input, channels: 2, kernel: 1}\n"
             "  - batch_norm_add_relu: {skip: a}\n" +
                 kMake) == 2 * x + statistics);
  // Softmax and dropout as one operator keep what they keep apart, and the next reader its input.
  for (const char* both : {"  - softmax\n  - dropout\n", "  - softmax_dropout\n"})
    CHECK(kept("[4]", std::string("  - linear: 4\n") + both + "  - linear: 3\n") == 16 + 4 + 16);
  // A flattened view keeps the storage that it looks at.
  CHECK(kept(kImage, kMake + "  - relu\n  - flatten\n  - linear: 3\n") == x);
  // The mask, and the dropped value that the next layer reads.
  CHECK(kept("[4]", "  - linear: 4\n  - relu\n  - dropout\n  - linear: 3\n") == 16 + 4 + 16);
  // A concatenation is a storage of its own, even of a single part.
  CHECK(kept(kImage, "  - conv2d: {channels: 2, kernel: 1, name: a}\n  - concat: {parts: [a]}\n" +
                         kMake) == x);
}

TEST_CASE("losses keep their targets") {
  const auto with_loss = [](const std::string& loss, const std::string& shape) {
    return build_text(network(shape, "  - linear: 10\n", loss), {.batch = 2}).saved_bytes.count();
  };
  CHECK(with_loss("cross-entropy", "[5]") == 2 * 10 * 4 + 2 * 8 + 4);
  CHECK(with_loss("cross-entropy", "[3, 5]") == 2 * 3 * 10 * 4 + 2 * 3 * 8 + 4);
  CHECK(with_loss("bce-with-logits", "[5]") == 2 * (2 * 10 * 4));
  CHECK(with_loss("mse", "[5]") == 2 * (2 * 10 * 4));
  CHECK(with_loss("sum", "[5]") == 0);
  CHECK(with_loss("none", "[5]") == 0);
}

TEST_CASE("the dtype sizes values, not masks, indices and statistics") {
  const std::string layers =
      kMake + "  - batch_norm\n  - relu\n  - max_pool: 2\n  - dropout\n" + kMake;
  constexpr std::int64_t elements = 2 * 8 * 8, pooled = 2 * 4 * 4;
  // conv y, ReLU y; statistics; indices; mask; dropout y.
  CHECK(kept(kImage, layers, {.dtype = DType::fp16}) ==
        2 * elements * 2 + 2 * 2 * 4 + pooled * 8 + pooled + pooled * 2);
  const Workload half = build_text(network(kImage, kMake), {.dtype = DType::bf16});
  CHECK(half.parameter_bytes == Bytes{(2 * 2 + 2) * 2});
}

TEST_CASE("parameters, multiply-adds and shapes of products") {
  // 6 output channels, 2 groups: each sees 2 of 4 inputs through 3 x 3; (9 + 2 - 3) / 2 + 1 = 5
  // positions.
  const Workload conv = build_text(
      network("[4, 9, 9]",
              "  - conv2d: {channels: 6, kernel: 3, stride: 2, padding: 1, groups: 2}\n"),
      {.batch = 2});
  CHECK(conv.parameters == 6 * 2 * 9 + 6);
  CHECK(conv.macs == 2 * 6 * 5 * 5 * (2 * 9));
  CHECK(find_operator(conv, "conv2d_1.forward").flops == Flops{2 * conv.macs});
  // The network's input needs no gradient: one product backward; the second layer needs two.
  const Workload dense =
      build_text(network("[5]", "  - linear: 7\n  - linear: {features: 3, bias: false}\n"));
  CHECK(dense.parameters == 5 * 7 + 7 + 7 * 3);
  CHECK(find_operator(dense, "linear_1.backward").flops == Flops{2 * 5 * 7});
  CHECK(find_operator(dense, "linear_2.backward").flops == Flops{2 * 2 * 7 * 3});
  // Reads 5 values and 42 parameters, makes 7 values.
  CHECK(find_operator(dense, "linear_1.forward").traffic == Bytes{4 * (5 + 42 + 7)});
  // Dilation 3 lets a window of 3 reach over 7: 9 - 7 + 1 positions.
  CHECK(build_text(network("[1, 9, 9]",
                           "  - conv2d: {channels: 1, kernel: 3, dilation: 3, bias: false}\n"))
            .macs == 3 * 3 * 9);
}

TEST_CASE("attention, fused and not") {
  constexpr std::int64_t s = 6, h = 8, a = 2, rows = s * h * 4, scores = a * s * s;
  const std::string norm = "  - layer_norm\n";
  // x and statistics of the norm (x itself is the input), its y, QKV, factor, softmax, mask of
  // dropout and what it lets through, context.
  const std::int64_t plain = 2 * s * 4 + rows + 3 * rows + 8 + scores * (4 + 1 + 4) + rows;
  CHECK(kept("[6, 8]", norm + "  - attention: 2\n") == plain);
  CHECK(kept("[6, 8]", norm + "  - attention: {heads: 2, causal: true}\n") == plain + s * s);
  // Without dropout the product reads the softmax's y.
  CHECK(kept("[6, 8]", norm + "  - attention: {heads: 2, dropout: false}\n") == plain - scores * 5);
  // Fused: norm, QKV, the result and one number a row.
  CHECK(kept("[6, 8]", norm + "  - fused_attention: 2\n") ==
        2 * s * 4 + rows + 3 * rows + rows + a * s * 4);
  const Workload attention = build_text(network("[6, 8]", "  - attention: 2\n"));
  CHECK(attention.macs == s * h * 3 * h + 2 * s * s * h + s * h * h);
  CHECK(attention.parameters == 4 * h * h + 4 * h);
}

// Two windows of 9 positions: scores are 2 x 2 x 9 x 9, a table has 5 x 5 numbers a head.
TEST_CASE("attention within windows") {
  constexpr std::int64_t s = 18, h = 8, a = 2, near = 9, rows = s * h * 4;
  const std::string layers =
      "  - linear: {features: 3 * in, name: qkv}\n"
      "  - attention_scores: {heads: 2, windows: 2}\n"
      "  - window_bias: {heads: 2, window: 3}\n"
      "  - softmax\n"
      "  - attention_context: {heads: 2, windows: 2, values: qkv}\n";
  const Workload attention = build_text(network("[18, 8]", layers));
  CHECK(attention.saved_bytes.count() == 3 * rows + a * s * near * 4);
  CHECK(attention.macs == s * h * 3 * h + 2 * s * near * h);
  CHECK(attention.parameters == 3 * h * h + 3 * h + 5 * 5 * a);
  // Four positions of 8 features become one of 32; the norm keeps it, and two numbers a row.
  CHECK(kept("[16, 8]", "  - merge_positions: 2\n  - layer_norm\n") == 16 * 8 * 4 + 4 * 2 * 4);
  CHECK(build_text(network("[16, 8]", "  - merge_positions: 2\n  - linear: 3\n")).macs ==
        4 * 32 * 3);
  CHECK_THAT(error_of(network("[16, 8]", "  - merge_positions: 3\n")),
             Contains("positions in squares of 9, [positions, features], found [16, 8]"));
  CHECK_THAT(error_of(network("[16, 24]", "  - attention_scores: {heads: 2, windows: 3}\n")),
             Contains("expected positions in 3 equal windows, found 16"));
  CHECK_THAT(error_of(network("[8, 4, 4]", "  - window_bias: {heads: 2, window: 3}\n")),
             Contains("scores of 2 heads in windows, [.., 9, 9], found [8, 4, 4]"));
  // Over all positions.
  CHECK(build_text(network("[16, 8]", "  - global_avg_pool\n  - linear: 3\n")).macs == 8 * 3);
}

TEST_CASE("windows may differ in height and width, and reach over the end") {
  const auto macs = [](const std::string& layers) {
    return build_text(network("[2, 8, 8]", layers)).macs;
  };
  // 3 channels of 8 x 8 from windows of 1 x 7 over 2 channels, padded by 0 and 3.
  CHECK(macs("  - conv2d: {channels: 3, kernel: 1, kernel_width: 7, padding_width: 3}\n") ==
        3 * 8 * 8 * 2 * 7);
  // Stride 2 down and 1 across: 4 x 8.
  CHECK(macs("  - conv2d: {channels: 3, kernel: 1, stride: 2, stride_width: 1}\n") ==
        3 * 4 * 8 * 2);
  // A window of 3 at every second of 8 positions fits 3 times; with `ceil` a fourth begins at 6.
  // Flattened: 2 x 3 x 3 and 2 x 4 x 4 features.
  CHECK(macs("  - max_pool: {kernel: 3, stride: 2}\n  - flatten\n  - linear: 1\n") == 18);
  CHECK(macs("  - max_pool: {kernel: 3, stride: 2, ceil: true}\n  - flatten\n  - linear: 1\n") ==
        32);
  // A window of 1 at every second of 8: the fifth would begin at 8, behind the end.
  CHECK(macs("  - avg_pool: {kernel: 1, stride: 2, ceil: true}\n  - flatten\n  - linear: 1\n") ==
        32);
}

TEST_CASE("a transposed convolution undoes the shape of a convolution") {
  // 8 x 8 spread by windows of 2 at stride 2: 16 x 16; every input element meets 3 x 2 x 2 weights.
  const Workload net =
      build_text(network("[2, 8, 8]",
                         "  - conv_transpose2d: {channels: 3, kernel: 2, stride: 2}\n  - flatten\n"
                         "  - linear: {features: 1, bias: false}\n"));
  CHECK(net.parameters == 2 * 3 * 2 * 2 + 3 + 3 * 16 * 16);
  CHECK(net.macs == 2 * 8 * 8 * 3 * 2 * 2 + 3 * 16 * 16);
  CHECK(kept(kImage, kMake + "  - conv_transpose2d: {channels: 3, kernel: 2, stride: 2}\n") ==
        2 * 8 * 8 * 4);
  // (8 - 1) * 2 + 3 - 2 * 1 + 1 = 16.
  CHECK(build_text(network("[1, 8, 8]",
                           "  - conv_transpose2d: {channels: 1, kernel: 3, stride: 2, padding: 1, "
                           "output_padding: 1}\n  - flatten\n  - linear: 1\n"))
            .macs == 8 * 8 * 9 + 16 * 16);
}

TEST_CASE("products, masks and factors keep what their gradients need") {
  constexpr std::int64_t x = 2 * 8 * 8 * 4;
  CHECK(kept(kImage, kMake + "  - leaky_relu\n") == x);
  CHECK(kept(kImage, kMake + "  - hard_swish\n") == x);
  CHECK(kept(kImage, kMake + "  - shift\n") == 0);
  CHECK(kept(kImage, kMake + "  - upsample: 2\n") == 0);
  CHECK(kept(kImage, kMake + "  - masked_fill: {rows: 8, columns: 8}\n", {.batch = 3}) == 8 * 8);
  CHECK(kept(kImage, kMake + "  - masked_fill: {rows: 1, columns: 8, per_sample: 1}\n",
             {.batch = 3}) == 3 * 8);
  // Both operands. The network's input does not count, and needs no gradient, for which the other
  // factor would be kept.
  CHECK(kept(kImage, "  - conv2d: {channels: 2, kernel: 1, name: a}\n" + kMake +
                         "  - product: {right: a}\n") == 2 * x);
  CHECK(kept(kImage, kMake + "  - multiply: {by: input}\n") == 0);
  CHECK(kept(kImage, "  - conv2d: {channels: 2, kernel: 1, name: a}\n" + kMake +
                         "  - multiply: {by: a}\n") == 2 * x);
  CHECK(build_text(network(kImage, "  - product: {right: input}\n")).macs == 2 * 8 * 8 * 8);
  CHECK_THAT(error_of(network("[2, 8, 4]", "  - product: {right: input}\n")),
             Catch::Matchers::Contains("expected matrices [.., m, k] and [.., k, n], found [2, 8, "
                                       "4] and [2, 8, 4]"));
  CHECK_THAT(
      error_of(network("[3, 5]", "  - take: 4\n")),
      Catch::Matchers::Contains("expected a sequence of at least 4 positions, found [3, 5]"));
  CHECK_THAT(error_of(network(kImage, "  - masked_fill: {rows: 9, columns: 8, heads: 2}\n")),
             Catch::Matchers::Contains("a mask [2, 9, 8] has more elements"));
}
