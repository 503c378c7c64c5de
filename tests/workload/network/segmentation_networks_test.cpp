/// What networks with unpooling, skip connections and recurrence keep, added up by hand: no
/// recording of them is at hand.
#include "workload/network/kept_tensors.hpp"
#include "workload/workload_text.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;
using Catch::Matchers::Contains;

namespace {

std::int64_t saved(const char* name, std::int64_t batch, const NamedIntegers& with) {
  return build(read_workload(read_document(shipped(name))), {.batch = batch, .with = with})
      .saved_bytes.count();
}

/// Convolution, batch norm and ReLU of c channels over so many pixels: the convolution's output,
/// the ReLU's, mean and deviation.
std::int64_t normalized(std::int64_t pixels, std::int64_t c) {
  return 2 * 4 * pixels * c + 2 * 4 * c;
}

/// Log-softmax, target and total weight of a cross entropy over rows of k classes.
std::int64_t cross_entropy(std::int64_t rows, std::int64_t k) {
  return 4 * rows * k + 8 * rows + 4;
}

}  // namespace

TEST_CASE("U-Net keeps each level once, and its copies in the concatenations") {
  const auto by_hand = [](std::int64_t batch, std::int64_t r, std::int64_t width) {
    std::int64_t sum = 0;
    for (std::int64_t level = 0; level < 5; ++level) {
      const std::int64_t pixels = batch * (r >> level) * (r >> level), c = width << level;
      sum += 2 * normalized(pixels, c);
      if (level == 4) break;
      sum += (4 + 8) * pixels / 4 * c;                        // pooled values, and their indices
      sum += 4 * pixels * 2 * c + 2 * normalized(pixels, c);  // on the way up
    }
    return sum + cross_entropy(batch * r * r, 2);
  };
  CHECK(saved("unet", 1, {}) == by_hand(1, 256, 64));
  CHECK(saved("unet", 3, {{{"resolution", {}}, 64}, {{"width", {}}, 8}}) == by_hand(3, 64, 8));
}

TEST_CASE("SegNet keeps indices once, for the pooling and for what undoes it") {
  const auto by_hand = [](std::int64_t batch, std::int64_t height, std::int64_t width) {
    // Convolutions of each level by their channels, down and up; the last one has neither norm nor
    // ReLU, and reads the ReLU before it.
    const std::vector<std::vector<std::int64_t>> down = {
        {64, 64}, {128, 128}, {256, 256, 256}, {512, 512, 512}, {512, 512, 512}};
    const std::vector<std::vector<std::int64_t>> up = {
        {64}, {128, 64}, {256, 256, 128}, {512, 512, 256}, {512, 512, 512}};
    std::int64_t sum = 0, rows = batch * height * width;
    for (std::size_t level = 0; level < 5; ++level, height /= 2, width /= 2) {
      const std::int64_t pixels = batch * height * width, c = down[level].back();
      const std::int64_t pooled = batch * (height / 2) * (width / 2);
      for (const std::int64_t channels : down[level]) sum += normalized(pixels, channels);
      for (const std::int64_t channels : up[level]) sum += normalized(pixels, channels);
      sum += 8 * pooled * c;                 // indices
      if (level < 4) sum += 4 * pooled * c;  // pooled values, which the next level's weights need
      sum += 4 * pixels * c;                 // the unpooled values
    }
    return sum + cross_entropy(rows, 12);
  };
  // 45 rows are pooled to 22, and unpooled to 45 again.
  CHECK(saved("segnet", 1, {}) == by_hand(1, 360, 480));
  CHECK(saved("segnet", 2, {{{"height", {}}, 72}, {{"width", {}}, 96}}) == by_hand(2, 72, 96));
}

TEST_CASE("an LSTM keeps its input, and of each position four gates, two cells and a state") {
  const auto by_hand = [](std::int64_t batch, std::int64_t s, std::int64_t h) {
    // Before each LSTM and after the last one a dropout: a mask, and the value that is read next.
    const std::int64_t value = batch * s * h;
    return 3 * (1 + 4) * value + 2 * 7 * 4 * value + cross_entropy(batch * s, 10'000);
  };
  CHECK(saved("lstm-lm", 1, {}) == by_hand(1, 35, 650));
  CHECK(saved("lstm-lm", 20, {{{"hidden", {}}, 1500}}) == by_hand(20, 35, 1500));
  // Counted in PyTorch 1.13.1 (CPU), 4 samples of 7 words: Embedding(100, 32), LSTM(32, 48, 2),
  // Linear(48, 100), without what goes in.
  const std::string words =
      "workload: t\ninput: {shape: [7], type: indices}\nloss: sum\nlayers:\n"
      "  - embedding: {entries: 100, features: 32}\n";
  const std::string head = "  - linear: 100\n";
  const auto kept = [&](const std::string& layers) {
    return build_text(words + layers + head, {.batch = 4}).saved_bytes.count();
  };
  CHECK(kept("  - lstm: 48\n  - lstm: 48\n") == 89'600);
  CHECK(kept("  - lstm: 48\n") == 46'592);
  CHECK(kept("  - lstm: {features: 48, bias: false}\n") == 46'592);
  // Frozen it keeps neither x nor states.
  CHECK(kept("  - lstm: {features: 48, trained: none}\n") == 37'632);
  // As one call of a library: x, y, four gates and a cell.
  CHECK(kept("  - lstm: {features: 48, fused: true}\n") == 4 * 7 * (32 + 6 * 48) * 4);
}

TEST_CASE("an unpooling reads the indices of its pooling, forward and backward") {
  const std::string layers =
      "  - conv2d: {channels: 2, kernel: 1}\n  - max_pool: {kernel: 2, name: p}\n"
      "  - conv2d: {channels: 2, kernel: 1}\n  - max_unpool: {pool: p}\n";
  const Workload net = build_text(network("[2, 9, 8]", layers), {.batch = 3});
  CHECK(names(net, find_operator(net, "max_unpool_1.forward").reads) == "conv2d_2 p.indices");
  CHECK(names(net, find_operator(net, "max_unpool_1.backward").reads) == "p.indices");
  CHECK(names(net, find_operator(net, "p.forward").kept) == "p p.indices");
  // A pooling that runs again for a later part of the forward makes them again.
  CHECK(names(net, find_operator(net, "p.forward").bare) == "p p.indices");
  // Output of the first convolution (x of the pooling) and of the pooling (x of the second one),
  // and the indices: 9 rows are pooled to 4.
  CHECK(net.saved_bytes.count() == 3 * 2 * (4 * 9 * 8 + (4 + 8) * 4 * 4));
  const auto error = [](const std::string& text) { return error_of(network("[2, 8, 8]", text)); };
  CHECK_THAT(error("  - max_unpool\n"), Contains("`max_unpool` needs `pool`"));
  CHECK_THAT(
      error("  - max_unpool: {pool: q}\n"),
      Contains("test.yaml:5:5") && Contains("`pool` names no earlier layer that pools: `q`"));
  CHECK_THAT(error("  - relu: {name: q}\n  - max_unpool: {pool: q}\n"),
             Contains("`pool` names `q`, which is a relu; expected a max_pool"));
  CHECK_THAT(
      error("  - max_pool: {kernel: 2, name: q}\n  - upsample: 2\n  - max_unpool: {pool: q}\n"),
      Contains("expected what the pooling made, [2, 4, 4], found [2, 8, 8]"));
}

TEST_CASE("an auxiliary output has a loss of its own, times a number that is kept") {
  const std::string layers =
      "  - linear: {features: 8, name: trunk}\n  - linear: {features: 10, name: side}\n"
      "  - linear: {from: trunk, features: 10}\n";
  const std::string text = network("[4]", layers, "cross-entropy");
  const Workload net = build_text(text + "auxiliary: [side]\n", {.batch = 2});
  // The trunk's output once; two losses over ten classes, one with its number.
  CHECK(net.saved_bytes.count() == 2 * 8 * 4 + 2 * cross_entropy(2, 10) + 8);
  CHECK(find_operator(net, "side/nll_loss.backward").phase == Phase::backward);
  CHECK_THAT(error_of(text + "auxiliary: [sied]\n"),
             Contains("test.yaml:8:13") && Contains("no value of `layers` is named `sied`") &&
                 Contains("did you mean `side`?"));
}

TEST_CASE("one position of a sequence keeps all of it") {
  // x of the head is a view of one position: the storage of all five stays, 4 features each.
  const Workload net = build_text(
      network("[5, 3]", "  - linear: 4\n  - select: 2\n  - linear: {features: 1, name: head}\n"),
      {.batch = 2});
  CHECK(net.saved_bytes.count() == 2 * 5 * 4 * 4);
  CHECK(net.macs == 2 * (5 * 3 * 4 + 4));
  // The gradient of one position is made for all.
  const Operator& head = find_operator(net, "head.backward");
  CHECK(net[net.list(head.kept).front()].bytes == Bytes{2 * 1 * 4});
  CHECK(net[net.list(head.kept)[1]].bytes == Bytes{2 * 5 * 4 * 4});
  CHECK_THAT(error_of(network("[5, 3]", "  - select: 5\n")),
             Contains("expected a sequence with a position 5 (counted from 0), found [5, 3]"));
  // An image of 2 x 3 pixels becomes 6 positions, with a learned one in front 7.
  const Workload tokens = build_text(network(
      "[4, 2, 3]", "  - tokens\n  - class_token\n  - linear: {features: 2, bias: false}\n"));
  CHECK(tokens.macs == 7 * 4 * 2);
  CHECK(tokens.parameters == 4 + 4 * 2);
}
