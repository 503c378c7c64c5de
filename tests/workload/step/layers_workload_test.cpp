#include "workload/step/layers_workload.hpp"

#include "workload/workload_text.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;
using Catch::Matchers::Contains;

namespace {

std::string layers_error(const std::string& layers, const std::string& shape = "[2, 8, 8]") {
  return error_of(network(shape, layers));
}

}  // namespace

TEST_CASE("backward runs as autograd would") {
  const Workload net =
      build_text(network("[4]", "  - linear: 8\n  - relu\n  - linear: 2\n", "mse"));
  std::string order;
  for (const Operator& op : net.operators) order += op.name + " ";
  CHECK(order ==
        "linear_1.forward relu_1.forward linear_2.forward mse_loss.forward "
        "mse_loss.backward linear_2.backward relu_1.backward linear_1.backward ");
  const Operator& relu = find_operator(net, "relu_1.forward");
  CHECK(names(net, relu.updates) == "linear_1");
  CHECK(names(net, relu.kept).empty());
  const Operator& relu_back = find_operator(net, "relu_1.backward");
  CHECK(names(net, relu_back.reads) == "linear_1.gradient linear_1");
  const Operator& first = find_operator(net, "linear_1.backward");
  CHECK(names(net, first.reads) == "linear_1.gradient input linear_1.weight linear_1.bias");
  CHECK(names(net, first.kept) == "linear_1.weight.gradient linear_1.bias.gradient");
  CHECK(net[first.forward].name == "linear_1.forward");
}

TEST_CASE("an addition hands the gradient on; the last contribution takes the others in") {
  const Workload net = build_text(network(
      "[4]",
      "  - linear: {features: 4, name: x}\n  - linear: 4\n  - add: {skip: x}\n  - linear: 1\n"));
  for (const Operator& op : net.operators) CHECK(op.name != "add_1.backward");
  // The sum's gradient is that of both branches; linear_2's backward makes x's gradient out of it
  // and its own.
  const Operator& branch = find_operator(net, "linear_2.backward");
  CHECK(names(net, branch.reads) == "add_1.gradient x linear_2.weight linear_2.bias");
  CHECK(names(net, branch.kept) == "x.gradient linear_2.weight.gradient linear_2.bias.gradient");
  const Operator& x = find_operator(net, "x.backward");
  CHECK(names(net, x.reads) == "x.gradient input x.weight x.bias");
}

TEST_CASE("of a concatenation's gradient each part reads its own, and adds to its own") {
  // Values of 4, 4 and 12 numbers; the weight of `b` is 4 x 4, and it has no bias.
  const auto net = [](const std::string& last) {
    return build_text(network("[4]",
                              "  - linear: {features: 4, name: a}\n"
                              "  - linear: {features: 4, bias: false, name: b}\n"
                              "  - linear: {features: 12, name: c, from: a}\n"
                              "  - concat: {parts: [" +
                                  last + "]}\n  - linear: 1\n"));
  };
  const Workload of_two = net("b, c");
  const Operator& b = find_operator(of_two, "b.backward");
  CHECK(names(of_two, b.reads) == "concat_1.gradient a b.weight a.gradient");
  // The gradients of b, a and the weight, a and the weight; and that of a once more, to add to it.
  CHECK(b.traffic == Bytes{4 * (4 + 4 + 16 + 4 + 16 + 4)});
  CHECK(b.additions.count == 1);
  CHECK(b.additions.counted == Bytes{4 * 4});
  CHECK(b.additions.apart == Bytes{4 * 4 * 3});
  // `a` is a part, too: what c and b make is added to its part of the whole.
  const Workload of_three = net("a, b, c");
  const Operator& c = find_operator(of_three, "c.backward");
  CHECK(c.additions.counted == Bytes{4 * 4});
  CHECK(c.additions.apart == Bytes{4 * 4 * 3});
}

TEST_CASE("parts of a gradient and the whole are added once, whichever is made first") {
  // q has 12 numbers, of which scores read 8; what comes in are 4.
  const auto net = [](const std::string& first, const std::string& second) {
    return build_text(network("[2, 4]", "  - linear: {features: 6, bias: false, name: q}\n  - " +
                                            first + "\n  - flatten: {name: flat}\n  - " + second +
                                            "\n  - flatten\n  - add: {skip: flat}\n"));
  };
  const std::string whole = "linear: {features: 2, bias: false, name: whole, from: q}";
  const std::string scores = "attention_scores: {heads: 1, name: scores, from: q}";
  // The part is made first: the whole, of the incoming gradient, q and a weight of 12 with their
  // gradients, reads it besides.
  const Workload part_first = net(whole, scores);
  const Operator& adds_whole = find_operator(part_first, "whole.backward");
  CHECK(adds_whole.traffic == Bytes{4 * (4 + 12 + 12 + 12 + 12 + 8)});
  CHECK(adds_whole.additions.count == 1);
  CHECK(adds_whole.additions.counted == Bytes{4 * 8});
  CHECK(adds_whole.additions.apart == Bytes{4 * 12 * 3});
  // The other way round the part, made of the incoming gradient and q, and read and written once
  // more, reads the whole besides.
  const Workload whole_first = net(scores, whole);
  const Operator& adds_part = find_operator(whole_first, "scores.backward");
  CHECK(adds_part.traffic == Bytes{4 * (4 + 12 + 8 + 8 * 2 + 12)});
  CHECK(adds_part.additions.count == 1);
  CHECK(adds_part.additions.counted == Bytes{4 * 12});
  CHECK(adds_part.additions.apart == Bytes{4 * 12 * 3});
  // With kernels of their own for additions the operators move as much in either order.
  for (const char* name : {"whole.backward", "scores.backward"}) {
    const Operator &a = find_operator(part_first, name), &b = find_operator(whole_first, name);
    CHECK(a.traffic - a.additions.counted == b.traffic - b.additions.counted);
  }
}

TEST_CASE("a tied weight has one gradient, to which the second contribution is added") {
  const std::string text =
      "workload: t\ninput: {shape: [3], type: indices}\nlayers:\n"
      "  - embedding: {entries: 11, features: 4, name: tokens}\n"
      "  - linear: {features: 11, bias: false, tied: tokens}\n";
  const Workload net = build_text(text, {.optimizer = Optimizer::adam});
  CHECK(net.parameters == 44);
  CHECK(net.macs == 3 * 4 * 11);
  const Operator& embedding = find_operator(net, "tokens.backward");
  CHECK(names(net, embedding.kept) == "tokens.weight.gradient");
  CHECK(embedding.workspace == Bytes{44 * 4});
  // The incoming gradient, the indices and a gradient of 44 numbers, which is read again, as is the
  // decoder's, and their sum written.
  CHECK(embedding.traffic == Bytes{3 * 4 * 4 + 3 * 8 + 44 * 4 * (1 + 3)});
  CHECK(embedding.additions.count == 1);
  CHECK(embedding.additions.counted == Bytes{44 * 4 * 3});
  CHECK(embedding.additions.apart == Bytes{44 * 4 * 3});
  CHECK(find_operator(net, "linear_1.backward").additions.count == 0);
  CHECK(find_operator(net, "linear_1.backward").workspace == Bytes{});
  CHECK(net.operators.size() - net.optimizer_begin == 1);
  // The embedding reads three rows of its table, not all: indices, rows, output.
  CHECK(find_operator(net, "tokens.forward").traffic == Bytes{3 * 8 + 2 * (3 * 4 * 4)});
}

TEST_CASE("contributions of a tied weight are added in halves, and in copies, too") {
  const std::string text =
      network("[4]",
              "  - linear: {features: 4, bias: false, name: first}\n"
              "  - linear: {features: 4, bias: false, name: second}\n"
              "  - linear: {features: 4, bias: false, tied: second, name: third}\n");
  // Incoming gradient and input of 4 numbers each, the weight's gradient of 16: what is incoming is
  // traffic of the half before.
  const Workload halves = build_text(text, {.split_backward = true});
  const Operator& half = find_operator(halves, "second.backward_weight");
  CHECK(half.traffic == Bytes{4 * (4 + 16 * (1 + 3))});
  CHECK(half.additions.count == 1);
  // A copy's gradient of 2 bytes a number is made anew, of the one that is there.
  const Workload copies = build_text(text, {.autocast = DType::fp16});
  const Operator& second = find_operator(copies, "second.backward");
  CHECK(second.additions.count == 1);
  CHECK(second.additions.counted == Bytes{2 * 16});
  CHECK(second.additions.apart == Bytes{2 * 16 * 3});
}

TEST_CASE("the optimizer updates each layer with parameters") {
  const std::string text = network("[4]", "  - linear: 8\n  - relu\n  - linear: 2\n", "mse");
  CHECK(build_text(text).operators.size() == build_text(text).optimizer_begin);
  const Workload net = build_text(text, {.optimizer = Optimizer::adamw});
  REQUIRE(net.operators.size() - net.optimizer_begin == 2);
  const Operator& update = net.operators[net.optimizer_begin];
  CHECK(update.phase == Phase::optimizer);
  CHECK(names(net, update.updates) ==
        "linear_1.weight linear_1.weight.state_1 linear_1.weight.state_2 "
        "linear_1.bias linear_1.bias.state_1 linear_1.bias.state_2");
  // 22 passes over 40 elements; two temporaries, of one tensor at a time.
  CHECK(update.traffic == Bytes{4 * 40 * 22});
  CHECK(update.workspace == Bytes{4 * 32 * 2});
}

TEST_CASE("a network without loss makes the gradient of its output in its last backward") {
  const Workload net = build_text(network("[4]", "  - linear: 3\n"));
  CHECK(names(net, find_operator(net, "linear_1.backward").kept) ==
        "linear_1.gradient linear_1.weight.gradient linear_1.bias.gradient");
}

TEST_CASE("numbers come from `with`, blocks and the layer's input") {
  const std::string text =
      "workload: w\nwith: {width: 4}\ninput: [2 * width]\nblocks:\n"
      "  grow:\n    with: {factor: 2, extra: 0}\n    layers: [linear: factor * in + "
      "extra]\nlayers:\n"
      "  - grow: {extra: 1}\n"                      // 17
      "  - grow: {factor: 1, repeat: width / 2}\n"  // 17, 17
      "  - grow: {repeat: width - 4}\n"             // left out
      "  - grow: 3\n";                              // 51
  const Workload net = build_text(text);
  CHECK(net.macs == 8 * 17 + 17 * 17 + 17 * 17 + 17 * 51);
  CHECK(net.operators[1].name == "grow_2/linear_1.forward");
  // Width 6: 12 inputs; 25; three times 25; two doublings; 300.
  const Workload wide = build_text(text, {.with = {{{"width", {}}, 6}}});
  CHECK(wide.macs == 12 * 25 + 3 * 25 * 25 + 25 * 50 + 50 * 100 + 100 * 300);
  CHECK_THAT(error_of(text, {.with = {{{"width", {}}, 5}}}),
             Contains("test.yaml:10:31") && Contains("5 / 2 is not a whole number"));
}

TEST_CASE("microbatches are built at their own size") {
  const std::string text = network("[4]", "  - linear: 8\n  - relu\n  - linear: 2\n", "mse");
  const Workload net = build_text(text, {.batch = 32, .microbatch = 8});
  CHECK(net.batch == 32);
  CHECK(net.microbatch == 8);
  CHECK(net.saved_bytes == build_text(text, {.batch = 8}).saved_bytes);
}

TEST_CASE("a split backward makes gradients of inputs and of weights apart") {
  // 8 samples: linear 4 -> 8 (32 weights, 8 biases), ReLU in place, linear 8 -> 2, MSE. The first
  // layer's input needs no gradient, so its backward is a weight half alone; ReLU has no weight.
  const std::string text = network("[4]", "  - linear: 8\n  - relu\n  - linear: 2\n", "mse");
  const Workload net = build_text(text, {.batch = 8, .split_backward = true});
  const Workload whole = build_text(text, {.batch = 8});
  const Operator& input = find_operator(net, "linear_2.backward_input");
  const Operator& weight = find_operator(net, "linear_2.backward_weight");
  // Either is a product of 8 x 2 x 8 multiply-adds.
  CHECK(input.flops == Flops{2 * 8 * 2 * 8});
  CHECK(weight.flops == Flops{2 * 8 * 2 * 8});
  CHECK(names(net, input.reads) == "linear_2.gradient linear_2.weight linear_2.bias");
  CHECK(names(net, input.kept) == "linear_1.gradient");
  CHECK(names(net, weight.reads) == "linear_2.gradient linear_1");
  CHECK(names(net, weight.kept) == "linear_2.weight.gradient linear_2.bias.gradient");
  const Operator& both = find_operator(whole, "linear_2.backward");
  CHECK(input.flops + weight.flops == both.flops);
  CHECK(input.traffic + weight.traffic == both.traffic);
  CHECK(find_operator(net, "linear_1.backward").phase == Phase::backward_weight);
  CHECK(find_operator(net, "relu_1.backward").phase == Phase::backward_input);
  CHECK(net.saved_bytes == whole.saved_bytes);
}

TEST_CASE("query, key and value have gradients of their own until their product needs one") {
  // 100 positions of 2 features: the values' gradient is 100 x 2, that of query and key twice that.
  const Workload net =
      build_text(network("[100, 2]", "  - linear: 2\n  - attention: {heads: 1, dropout: false}\n"));
  const Operator& context = find_operator(net, "attention_1/attention_context_1.backward");
  CHECK(names(net, context.kept) == "attention_1/softmax_1.gradient attention_1/qkv.gradient");
  CHECK(net[net.list(context.kept).back()].bytes == Bytes{4 * 100 * 2});
  const Operator& scores = find_operator(net, "attention_1/attention_scores_1.backward");
  CHECK(names(net, scores.kept) == "attention_1/qkv.gradient");
  CHECK(net[net.list(scores.kept).front()].bytes == Bytes{4 * 100 * 4});
  // Either counts the join of its part: reads the incoming gradient, what is kept (6 features) and,
  // the one, the scores; makes the part, which is read and written once more; the one, scores, too.
  CHECK(context.traffic == Bytes{4 * 100 * (2 + 6 + 100 + 3 * 2 + 100)});
  CHECK(scores.traffic == Bytes{4 * 100 * (100 + 6 + 3 * 4)});
  // The whole, 100 x 6, takes the room of what is made later: 100 x 2, a weight of 6 x 2, a bias.
  const Operator& product = find_operator(net, "attention_1/qkv.backward");
  CHECK(product.workspace == Bytes{4 * (100 * 6 - 100 * 2 - 6 * 2 - 6)});
}

TEST_CASE("a change in place of a view copies the gradient of what it views, and its own") {
  const auto workspace = [](const char* shape, const char* layers) {
    const Workload net =
        build_text(network(shape, std::string(layers) + "  - relu\n  - linear: 2\n"));
    return find_operator(net, "relu_1.backward").workspace.count();
  };
  // Over positions a product with a bias is a view of that of one matrix.
  CHECK(workspace("[4, 3]", "  - linear: 5\n") == 2 * 4 * 4 * 5);
  CHECK(workspace("[4, 3]", "  - linear: {features: 5, bias: false}\n") == 0);
  CHECK(workspace("[3]", "  - linear: 5\n") == 0);
  CHECK(workspace("[2, 8, 8]", "  - conv2d: {channels: 1, kernel: 1}\n  - flatten\n") ==
        2 * 4 * 64);
}

TEST_CASE("a block reads values by its own names") {
  const char* joined =
      "blocks:\n"
      "  inner: {reads: [x], layers: [{add: {skip: x}}]}\n"
      "  join:\n"
      "    with: {features: required}\n"
      "    reads: [left, right]\n"
      "    layers:\n"
      "      - linear: {from: left, features: features, name: one}\n"
      "      - inner: {from: right, reads: {x: one}}\n"
      "      - add: {skip: input}\n";
  const auto with_blocks = [&](const std::string& layers) {
    return "workload: w\ninput: [4]\n" + std::string(joined) + "layers:\n" + layers;
  };
  const std::string first =
      "  - linear: {features: 4, name: a}\n  - linear: {features: 4, name: b}\n";
  const Workload blocks =
      build_text(with_blocks(first + "  - join: {features: 4, reads: {right: a, left: b}}\n"));
  const Workload flat =
      build_text("workload: w\ninput: [4]\nlayers:\n" + first +
                 "  - linear: {from: b, features: 4, name: one}\n  - add: {from: a, skip: one}\n"
                 "  - add: {skip: b}\n");
  REQUIRE(blocks.operators.size() == flat.operators.size());
  for (std::size_t i = 0; i < flat.operators.size(); ++i) {
    CHECK(blocks.operators[i].flops == flat.operators[i].flops);
    CHECK(blocks.list(blocks.operators[i].reads).size() ==
          flat.list(flat.operators[i].reads).size());
  }
  CHECK(blocks.saved_bytes == flat.saved_bytes);
  const auto error = [&](const std::string& layers) {
    return error_of(with_blocks(first + layers));
  };
  CHECK_THAT(error("  - join: {features: 4, reads: {right: a}}\n"),
             Contains("`join` reads `left`; say what that is: `reads: {left: NAME}`"));
  CHECK_THAT(error("  - join: {features: 4, reads: {right: a, left: c}}\n"),
             Contains("no value `c` was named before this layer"));
  CHECK_THAT(error("  - join: {features: 4, reads: {right: a, lft: b}}\n"),
             Contains("`join` reads no `lft`") && Contains("did you mean `left`?"));
  CHECK_THAT(error("  - relu: {reads: {x: a}}\n"), Contains("`relu` reads no `x`"));
  CHECK_THAT(error_of("workload: w\ninput: [4]\nblocks: {b: {reads: [x, x], layers: [relu]}}\n"
                      "layers: [relu]\n"),
             Contains("the name `x` is taken"));
  CHECK_THAT(error_of("workload: w\ninput: [4]\nblocks: {b: {reads: [input], layers: [relu]}}\n"
                      "layers: [relu]\n"),
             Contains("the name `input` is taken"));
}

TEST_CASE("layers that cannot be are refused with their place") {
  CHECK_THAT(layers_error("  - cnov2d: {channels: 1, kernel: 1}\n"),
             Contains("test.yaml:5:5") && Contains("unknown layer `cnov2d`") &&
                 Contains("did you mean `conv2d`?"));
  CHECK_THAT(layers_error("  - conv2d: {channels: 1, kernl: 1}\n"),
             Contains("test.yaml:5:27") && Contains("`conv2d` has no `kernl`") &&
                 Contains("did you mean `kernel`?") && Contains("`conv2d` needs `kernel`"));
  CHECK_THAT(layers_error("  - conv2d: {channels: 1, kernel: 11}\n"),
             Contains("a window of 11 does not fit into 8 positions"));
  CHECK_THAT(layers_error("  - conv2d: {channels: 3, kernel: 1, groups: 2}\n"),
             Contains("2 groups do not divide 2 input and 3 output channels"));
  CHECK_THAT(layers_error("  - conv2d: {channels: 0, kernel: 1}\n"),
             Contains("dimensions are from 1"));
  CHECK_THAT(layers_error("  - linear: 3 / 2\n"), Contains("3 / 2 is not a whole number"));
  CHECK_THAT(layers_error("  - linear: 3 +\n"), Contains("it ends too early"));
  CHECK_THAT(layers_error("  - linear: 2 - 3\n"), Contains("`linear`: the number is -1"));
  CHECK_THAT(layers_error("  - linear: wdth\n"), Contains("unknown number `wdth`"));
  CHECK_THAT(layers_error("  - add: {skip: here}\n"), Contains("no value `here` was named before"));
  CHECK_THAT(layers_error("  - add\n"), Contains("`add` needs `skip`"));
  CHECK_THAT(layers_error("  - flatten: {name: flat}\n  - linear: 2\n  - add: {skip: flat}\n"),
             Contains("expected the shape of `skip`, [128], found [2]"));
  CHECK_THAT(layers_error("  - embedding: {entries: 3, features: 4}\n"),
             Contains("it reads indices"));
  CHECK_THAT(layers_error("  - {relu: , gelu: }\n"), Contains("a mapping with 2 keys"));
  CHECK_THAT(layers_error("  - relu: {name: a}\n  - relu: {name: a}\n"), Contains("`a` is taken"));
  CHECK_THAT(layers_error("  - relu: 3\n  - flatten: 3\n"), Contains("`flatten` takes no number"));
  CHECK_THAT(error_of("workload: w\nwith: {width: 1}\ninput: [1]\nlayers: [linear: width]\n",
                      {.with = {{{"widht", {"--set #1", 0, 0}}, 2}}}),
             Contains("--set #1") && Contains("did you mean `width`?"));
  CHECK_THAT(error_of("workload: w\n"), Contains("`layers`, `chain`, `graph` or `profile`"));
}

TEST_CASE("changes in place are allowed only where nothing else needs the bytes") {
  // GELU keeps its x: the ReLU after it that could take GELU's y in place may; one on a kept
  // storage not.
  CHECK_THAT(layers_error("  - conv2d: {channels: 2, kernel: 1, name: c}\n  - gelu\n"
                          "  - relu: {from: c, in_place: true}\n"),
             Contains("cannot work in place: `c` is needed elsewhere"));
  CHECK(layers_error("  - conv2d: {channels: 2, kernel: 1, name: c}\n  - gelu\n"
                     "  - relu: {from: c}\n")
            .empty());
  CHECK_THAT(layers_error("  - conv2d: {channels: 2, kernel: 1, name: c}\n  - relu\n"
                          "  - conv2d: {from: c, channels: 2, kernel: 1}\n"),
             Contains("as it was before `relu_1` changed it in place"));
}

TEST_CASE("blocks that contain each other and clash with layers are refused") {
  const std::string head = "workload: w\ninput: [4]\n";
  CHECK_THAT(error_of(head + "blocks:\n  a: {layers: [b]}\n  b: {layers: [a]}\nlayers: [a]\n"),
             Contains("`a` contains `b` contains `a`"));
  CHECK_THAT(error_of(head + "blocks:\n  relu: {layers: [gelu]}\nlayers: [relu]\n"),
             Contains("test.yaml:4:3") && Contains("is a layer already"));
  CHECK_THAT(error_of(head + "blocks:\n  attention: {layers: [gelu]}\nlayers: [relu]\n"),
             Contains("is a standard block"));
  CHECK_THAT(
      error_of(head + "blocks:\n  a: {with: {n: required}, layers: [linear: n]}\nlayers: [a]\n"),
      Contains("`a` needs `n`"));
}

TEST_CASE("hostile sizes end in a located error, not in overflow or exhaustion") {
  CHECK_THAT(error_of("workload: w\ninput: [1000000000, 1000000000, 1000000000]\nlayers: [relu]\n"),
             Contains("input: sizes out of range"));
  CHECK_THAT(
      layers_error("  - linear: {features: 1000000000}\n  - linear: {features: 1000000000}\n",
                   "[1000000000, 1000000]"),
      Contains("sizes out of range"));
  CHECK_THAT(layers_error("  - relu: {repeat: 1000000000}\n"), Contains("more than 100000 layers"));
  CHECK_THAT(layers_error("  - linear: 99999999999999999999\n"), Contains("out of range"));
  CHECK_THAT(error_of("workload: w\ninput: [4]\nblocks:\n"
                      "  a: {layers: [relu: {repeat: 1000000}]}\n"
                      "  b: {layers: [a: {repeat: 1000000}]}\nlayers: [b: {repeat: 1000000}]\n"),
             Contains("more than 100000 layers"));
  CHECK_THAT(layers_error("  - linear: " + std::string(300, '(') + "\n"),
             Contains("longer than 200"));
}

TEST_CASE("convolutions tell the shape of their kernels") {
  const Workload net = build_text(network(
      "[2, 16, 16]",
      "  - conv2d: {channels: 4, kernel: 3, padding: 1}\n  - conv2d: {channels: 6, kernel: 1}\n"
      "  - conv2d: {channels: 6, kernel: 3, stride: 2}\n"
      "  - conv2d: {channels: 6, kernel: 1, kernel_width: 3, dilation: 2}\n"
      "  - conv2d: {channels: 6, kernel: 1, groups: 2}\n"
      "  - conv2d: {channels: 6, kernel: 1, stride: 2, bias: false}\n"
      "  - conv2d: {channels: 12, kernel: 3, stride: 2, padding: 1, groups: 6}\n"
      "  - linear: 3\n"));
  const auto shape = [&](const std::string& name) { return find_operator(net, name).kernel; };
  const KernelShape first = shape("conv2d_1.forward");
  CHECK(first.outputs == 4);
  CHECK(first.inputs == 2);
  CHECK(first.window == 9);
  CHECK(first.convolution == ConvolutionShape::transformable);
  CHECK(first.has_bias);
  CHECK_FALSE((first.of_input || first.of_weight));
  // The input needs no gradient.
  CHECK_FALSE(shape("conv2d_1.backward").of_input);
  CHECK(shape("conv2d_1.backward").of_weight);
  CHECK(shape("conv2d_2.backward").of_input);
  CHECK(shape("conv2d_2.backward").of_weight);
  using Shape = ConvolutionShape;
  const std::pair<const char*, Shape> shapes[] = {
      {"conv2d_2", Shape::pointwise}, {"conv2d_3", Shape::direct}, {"conv2d_4", Shape::direct},
      {"conv2d_5", Shape::direct},    {"conv2d_6", Shape::direct}, {"conv2d_7", Shape::depthwise}};
  for (const auto& [name, expected] : shapes) {
    CAPTURE(name);
    CHECK(shape(std::string(name) + ".forward").convolution == expected);
    CHECK(shape(std::string(name) + ".backward").convolution == expected);
  }
  CHECK(shape("conv2d_4.forward").window == 3);
  // Of groups no sizes are told.
  CHECK(shape("conv2d_5.forward").inputs == 0);
  CHECK(shape("conv2d_5.backward").has_bias);
  CHECK_FALSE(shape("conv2d_6.forward").has_bias);
  CHECK_FALSE(shape("conv2d_6.backward").has_bias);
  CHECK_FALSE(shape("linear_1.forward").has_bias);
  // So do transposed ones.
  const Workload spread = build_text(
      network("[6, 8, 8]",
              "  - conv_transpose2d: {channels: 6, kernel: 3, padding: 1}\n"
              "  - conv_transpose2d: {channels: 6, kernel: 2, stride: 2}\n"
              "  - conv_transpose2d: {channels: 6, kernel: 3, padding: 1, groups: 6}\n"));
  const auto spreads = [&](const char* name) {
    return find_operator(spread, name).kernel.convolution;
  };
  CHECK(spreads("conv_transpose2d_1.forward") == Shape::transformable);
  CHECK(spreads("conv_transpose2d_2.backward") == Shape::direct);
  CHECK(spreads("conv_transpose2d_3.forward") == Shape::depthwise);
  // Halves have one product each.
  const Workload split = build_text(
      network("[2, 8, 8]",
              "  - conv2d: {channels: 4, kernel: 1}\n  - conv2d: {channels: 4, kernel: 1}\n"),
      {.split_backward = true});
  CHECK(find_operator(split, "conv2d_2.backward_input").kernel.of_input);
  CHECK_FALSE(find_operator(split, "conv2d_2.backward_input").kernel.of_weight);
  CHECK(find_operator(split, "conv2d_2.backward_weight").kernel.of_weight);
  CHECK_FALSE(find_operator(split, "conv2d_2.backward_input").kernel.has_bias);
  CHECK(find_operator(split, "conv2d_2.backward_weight").kernel.has_bias);
}
