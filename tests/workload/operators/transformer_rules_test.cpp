#include "workload/workload_text.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;
using Catch::Matchers::Contains;

namespace {

constexpr std::int64_t kRows = 6, kWidth = 8;

/// Layers over a value of [6, 8] that a dense layer before them makes.
std::string layers_over_rows(const std::string& layers, const std::string& head = "") {
  return head + network("[6, 8]", "  - linear: {features: 8, bias: false, name: made}\n" + layers);
}

Workload over_rows(const std::string& layers, const WorkloadOptions& options = {}) {
  return build_text(layers_over_rows(layers), options);
}

std::int64_t kept(const std::string& layers, const WorkloadOptions& options = {}) {
  return over_rows(layers, options).saved_bytes.count();
}

/// Query, key and value of so many heads of 4 features.
std::string heads_of(std::int64_t heads, std::int64_t kv_heads) {
  const auto linear = [](std::int64_t features, const char* name) {
    return "  - linear: {from: made, features: " + std::to_string(features) +
           ", bias: false, name: " + name + "}\n";
  };
  return linear(heads * 4, "q") + linear(kv_heads * 4, "k") + linear(kv_heads * 4, "v");
}

std::string attend(const std::string& arguments) {
  return "  - dot_product_attention: {of: [q, k, v], " + arguments + "}\n";
}

}  // namespace

TEST_CASE("norms, positions and gates keep what their rules say") {
  constexpr std::int64_t x = kRows * kWidth * 4;
  CHECK(kept("  - fused_rms_norm\n") == x + kRows * 4);
  // In 16 bits the number of a row stays in fp32.
  CHECK(kept("  - fused_rms_norm\n", {.batch = 3, .dtype = DType::bf16}) ==
        3 * (x / 2 + kRows * 4));
  // Composed, with a mean that keeps its x: x, its squares, the number of a row, the quotient.
  CHECK(kept("  - rms_norm\n") == 3 * x + kRows * 4);
  const WorkloadOptions newer = {.framework = Located<Framework>{Framework::pytorch_2, {}}};
  CHECK(kept("  - rms_norm\n", newer) == x + kRows * 4);
  CHECK(kept("  - rms_norm: {fused: false}\n", newer) == 2 * x + kRows * 4);
  CHECK(over_rows("  - head_norm: {heads: 2, size: 4}\n").parameters == kWidth * kWidth + 4);
  for (const std::string kind :
       {"rotary", "fused_rotary", "rotary: {size: 4, rotated: 2}", "rotate_half", "rows: 4",
        "slice: 3", "transpose", "row_sum", "split_heads: 2", "repeat_features: 3"})
    CHECK(kept("  - " + kind + "\n") == 0);
  CHECK(kept("  - row_mean\n") == x);
  CHECK(kept("  - row_mean: {kept: false}\n") == 0);
  // Both inputs, of which the one is the other; as two operators SiLU's y as well.
  const std::string other = "  - linear: {features: 8, bias: false, name: other}\n";
  CHECK(kept(other + "  - swiglu: {from: made, by: other}\n") == 2 * x);
  CHECK(kept(other + "  - silu: {from: made}\n  - multiply: {by: other}\n") == 3 * x);
}

TEST_CASE("fused attention keeps query, key, value, the result and a number a row and head") {
  constexpr std::int64_t heads = 6, kv_heads = 2, size = 4, made = kRows * kWidth * 4;
  const auto saved = [&](const std::string& arguments) {
    return kept(heads_of(heads, kv_heads) + attend("heads: 6, kv_heads: 2" + arguments),
                {.batch = 1}) -
           made;
  };
  constexpr std::int64_t all =
      2 * kRows * heads * size * 4 + 2 * kRows * kv_heads * size * 4 + kRows * heads * 4;
  CHECK(saved("") == all);
  CHECK(saved(", causal: true") == all);
  CHECK(saved(", causal: true, window: 2") == all);
}

TEST_CASE("fused attention multiplies for the pairs that it looks at") {
  constexpr std::int64_t heads = 6, size = 4, batch = 3;
  const auto flops = [&](const std::string& arguments) {
    const Workload net = over_rows(heads_of(heads, 2) + attend("heads: 6, kv_heads: 2" + arguments),
                                   {.batch = batch});
    const std::string name = "dot_product_attention_1";
    // The forward has two products, the backward these and the scores once more: five.
    CHECK(find_operator(net, name + ".backward").flops.count() * 2 ==
          find_operator(net, name + ".forward").flops.count() * 5);
    return find_operator(net, name + ".forward").flops.count();
  };
  const auto of_pairs = [&](std::int64_t pairs) { return 2 * 2 * pairs * heads * size * batch; };
  CHECK(flops("") == of_pairs(kRows * kRows));
  CHECK(flops(", causal: true") == of_pairs(1 + 2 + 3 + 4 + 5 + 6));
  CHECK(flops(", causal: true, window: 2") == of_pairs(1 + 2 + 2 + 2 + 2 + 2));
  CHECK(flops(", causal: true, window: 9") == of_pairs(1 + 2 + 3 + 4 + 5 + 6));
  // Of one product of query, key and value: two products of 6 x 6 x 8, or 21 pairs.
  const auto core = [&](const std::string& arguments) {
    const Workload net = over_rows("  - linear: 24\n  - attention_core: {" + arguments + "}\n");
    return find_operator(net, "attention_core_1.forward").flops.count();
  };
  CHECK(core("heads: 2") == 2 * 2 * 36 * 8);
  CHECK(core("heads: 2, causal: true") == 2 * 2 * 21 * 8);
}

TEST_CASE("attention says what its heads and windows must be") {
  const auto error = [](const std::string& layers) { return error_of(layers_over_rows(layers)); };
  CHECK_THAT(error(heads_of(12, 5) + attend("heads: 12, kv_heads: 5")),
             Contains("test.yaml:9:5") && Contains("12 heads cannot share 5 heads of key") &&
                 Contains("`kv_heads` may be 1, 2, 3, 4, 6 or 12"));
  // A standard block says it where the file names it, fused or not.
  for (const std::string fused : {"true", "false"}) {
    CHECK_THAT(error("  - grouped_attention: {heads: 12, kv_heads: 5, size: 4, out: 8, fused: " +
                     fused + "}\n"),
               Contains("test.yaml:6:5") && Contains("12 heads cannot share 5 heads of key") &&
                   Contains("1, 2, 3, 4, 6 or 12"));
    CHECK_THAT(error("  - grouped_attention: {heads: 2, kv_heads: 2, size: 4, out: 8, causal: "
                     "false, window: 3, fused: " +
                     fused + "}\n"),
               Contains("test.yaml:6:5") && Contains("a `window` needs `causal: true`"));
  }
  CHECK_THAT(error(heads_of(3, 3) + attend("heads: 5")), Contains("in 5 heads, found [6, 12]"));
  CHECK_THAT(error(heads_of(3, 3) + "  - slice: {from: k, features: 4, name: short}\n" +
                   "  - dot_product_attention: {of: [q, short, v], heads: 3}\n"),
             Contains("in 3 heads, found [6, 4]"));
  CHECK_THAT(error("  - rotary: {size: 3}\n"), Contains("whole heads of 3, found [6, 8]"));
  CHECK_THAT(error("  - rotary: {size: 4, rotated: 3}\n"), Contains("cannot turn in pairs"));
  CHECK_THAT(error("  - slice: 9\n"), Contains("at least 9 features, found [6, 8]"));
  CHECK_THAT(error("  - rows: 5\n"), Contains("whole rows of 5"));
  CHECK_THAT(error("  - swiglu: {by: input}\n  - linear: 3\n  - swiglu: {by: made}\n"),
             Contains("the shape of `by`, [6, 8]"));
}

TEST_CASE("separate products repeat keys and values for the heads of the query") {
  // Scores, twice: as softmax's y and, with dropout, what is left of it; a mask; a number. The
  // query, and key and value of all six heads; of the batch of 2 each.
  constexpr std::int64_t batch = 2, heads = 6, size = 4, h = kRows * kWidth * 4;
  constexpr std::int64_t scores = heads * kRows * kRows * 4, each = kRows * heads * size * 4;
  const auto saved = [&](const std::string& arguments) {
    return kept(heads_of(heads, 2) + "  - scaled_dot_product_attention: {heads: 6, kv_heads: 2, " +
                    arguments + "reads: {query: q, key: k, value: v}}\n",
                {.batch = batch});
  };
  CHECK(saved("") == batch * (h + 3 * each + scores) + 8);
  CHECK(saved("causal: true, ") == batch * (h + 3 * each + scores) + 8 + kRows * kRows);
  CHECK(saved("dropout: true, ") == batch * (h + 3 * each + 2 * scores + scores / 4) + 8);
}

TEST_CASE("a network follows its framework, and a scenario may choose another") {
  const auto saved = [](const std::string& head, const WorkloadOptions& options = {}) {
    return build_text(layers_over_rows("  - attention: {heads: 2, dropout: false}\n", head),
                      options)
        .saved_bytes.count();
  };
  constexpr std::int64_t x = kRows * kWidth * 4, scores = 2 * kRows * kRows * 4;
  // x, query, key and value, and the result; then the softmax and a number, or a number a row.
  CHECK(saved("") == 5 * x + scores + 8);
  CHECK(saved("framework: pytorch-2\n") == 5 * x + 2 * kRows * 4);
  CHECK(saved("framework: pytorch-2\n", {.framework = Located<Framework>{
                                             Framework::pytorch_1_13, {}}}) == 5 * x + scores + 8);
  // Not fused, without the number; neither do means keep what they average there.
  CHECK(build_text(layers_over_rows("  - attention: {heads: 2, dropout: false, fused: false}\n",
                                    "framework: pytorch-2\n"))
            .saved_bytes.count() == 5 * x + scores);
  CHECK(build_text(layers_over_rows("  - row_mean\n", "framework: pytorch-2\n")).saved_bytes ==
        Bytes{});
  CHECK(build_text(layers_over_rows("  - row_mean: {kept: true}\n", "framework: pytorch-2\n"))
            .saved_bytes == Bytes{x});
  CHECK_THAT(error_of(layers_over_rows("  - relu\n", "with: {pytorch_2: 1}\n")),
             Contains("`pytorch_2` follows from `framework`"));
  CHECK_THAT(error_of(layers_over_rows("  - relu\n", "framework: pytorch-3\n")),
             Contains("did you mean `pytorch-2`?"));
}

TEST_CASE("experts get the rows that are routed to them") {
  const auto rows = [](const std::string& arguments) {
    const Workload net =
        over_rows("  - dispatch: {experts: 4, top_k: 2" + arguments + "}\n", {.batch = 3});
    // 8 bytes each for a row's position and its expert.
    return net.saved_bytes.count() / (3 * 16);
  };
  CHECK(rows("") == kRows * 2);
  // Room for 12 / 4 rows each; half of that, rounded up.
  CHECK(rows(", capacity: 100") == 4 * 3);
  CHECK(rows(", capacity: 50") == 4 * 2);
  // One of the four has a quarter, or a third more, at most all positions: twice a quarter of 12.
  CHECK(rows(", held: 1") == 3);
  CHECK(rows(", held: 1, load: 134") == 5);
  CHECK(rows(", held: 1, load: 200") == kRows);
  const auto error = [](const std::string& layers) { return error_of(layers_over_rows(layers)); };
  CHECK_THAT(error("  - dispatch: {experts: 4, top_k: 5}\n"),
             Contains("takes 5 of 4 experts") && Contains("`top_k` is from 1 to 4"));
  CHECK_THAT(error("  - mixture: {experts: 4, top_k: 5, features: 3, out: 8}\n"),
             Contains("test.yaml:6:5") && Contains("the largest 5 of 4 values"));
  CHECK_THAT(error("  - dispatch: {experts: 4, top_k: 2, held: 5}\n"),
             Contains("holds 5 of 4 experts"));
  CHECK_THAT(error("  - dispatch: {experts: 4, top_k: 2, load: 120}\n"),
             Contains("get what is routed"));
  CHECK_THAT(
      error("  - dispatch: {experts: 4, top_k: 2, held: 1, load: 201}\n"),
      Contains("a load of 201 % is 7 rows, and 6 positions that choose 1 of the experts held "
               "here make 6; `load` is from 1 to 200"));
  CHECK_THAT(error("  - mixture: {experts: 4, top_k: 2, features: 3, out: 8, held: 1, load: 90, "
                   "capacity: 100}\n"),
             Contains("test.yaml:6:5") &&
                 Contains("`capacity` says how many rows each expert has, full or not, and `load` "
                          "another number; leave one of them out"));
}

TEST_CASE("a mixture has the parameters and products of its experts") {
  constexpr std::int64_t batch = 3, h = kWidth, experts = 4, top_k = 2, f = 5;
  const auto mixture = [&](const std::string& more) {
    return over_rows("  - mixture: {experts: 4, top_k: 2, features: 5, out: 8" + more + "}\n",
                     {.batch = batch});
  };
  constexpr std::int64_t made = h * h, router = h * experts;
  CHECK(mixture("").parameters == made + router + experts * 3 * h * f);
  CHECK(mixture("").macs == batch * kRows * (made + router + top_k * 3 * h * f));
  // Of one of four experts a quarter of the rows; the router is whole.
  CHECK(mixture(", held: 1").parameters == made + router + 3 * h * f);
  CHECK(mixture(", held: 1").macs ==
        batch * (kRows * (made + router) + kRows * top_k / 4 * 3 * h * f));
  // Kept not fused, of each row: what it gathered, gate, SiLU, the other product and theirs, what
  // experts made and that times its weight, two indices and the weight. Fused neither SiLU nor the
  // weighted rows.
  constexpr std::int64_t rows = batch * kRows * top_k;
  CHECK(mixture("").saved_bytes.count() - mixture(", fused: true").saved_bytes.count() ==
        rows * 4 * (f + h));
  // Each of the three products of the experts' backwards has the arithmetic of two forwards.
  const Workload net = mixture("");
  CHECK(find_operator(net, "mixture_1/expert_linear_2.backward").flops.count() ==
        2 * find_operator(net, "mixture_1/expert_linear_2.forward").flops.count());
}

TEST_CASE("losses keep logits, or what makes them") {
  const auto saved = [](const std::string& head, const std::string& layers,
                        const WorkloadOptions& options) {
    return build_text(layers_over_rows(layers, head), options).saved_bytes.count();
  };
  constexpr std::int64_t batch = 3, rows = batch * kRows, classes = 10, x = rows * kWidth * 4;
  const WorkloadOptions options = {.batch = batch, .loss = Loss::fused_cross_entropy};
  CHECK(saved("", "  - linear: 10\n", options) == x + rows * classes * 4 + rows * (4 + 8));
  const std::string file =
      "workload: net\ninput: [6, 8]\nlayers:\n  - linear: {features: 8, name: made}\n";
  const auto in_pieces = [&](const std::string& chunks) {
    return build_text(file + "  - linear_cross_entropy: {features: 10" + chunks + "}\n",
                      {.batch = batch});
  };
  const Workload net = in_pieces("");
  CHECK(net.saved_bytes.count() == x + rows * (4 + 8));
  CHECK(net.parameters == 8 * 8 + 8 + 8 * classes);
  CHECK(net.macs == rows * (8 * 8 + 8 * classes));
  const Operator& backward = find_operator(net, "linear_cross_entropy_1.backward");
  CHECK(backward.flops.count() == 3 * 2 * rows * 8 * classes + 5 * rows * classes);
  CHECK(backward.workspace == Bytes{});
  // Four pieces of 18 rows are of 5 rows at most; the backward has their gradient as well.
  const Workload four = in_pieces(", chunks: 4");
  CHECK(find_operator(four, "linear_cross_entropy_1.forward").workspace.count() == 5 * classes * 4);
  CHECK(find_operator(four, "linear_cross_entropy_1.backward").workspace.count() ==
        2 * 5 * classes * 4);
  CHECK_THAT(error_of(file + "  - linear_cross_entropy: {features: 10, chunks: 7}\n"),
             Contains("7 chunks of 6 rows"));
  CHECK_THAT(error_of(file + "  - linear_cross_entropy: 10\n  - relu\n"),
             Contains("no layer comes after the loss"));
  CHECK_THAT(error_of(file + "  - linear_cross_entropy: 10\n", {.loss = Loss::sum}),
             Contains("is a loss already; expected `loss: none`"));
}
