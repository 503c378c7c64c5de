#include "workload/cost/kernel_workspace.hpp"

#include "workload/workload_text.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

std::vector<Processor> with_limits(std::initializer_list<std::int64_t> limits) {
  std::vector<Processor> processors;
  for (const std::int64_t limit : limits) {
    Processor processor;
    processor.convolution_workspace = Bytes{limit};
    processors.push_back(processor);
  }
  return processors;
}

}  // namespace

TEST_CASE("a convolution takes its windows as a matrix, or its weight, up to the limit") {
  // Batch 3, 2 channels of 8 x 8. `a`: 3 x 3 at every position, 2 * 9 * 64 * 3 values of 4 bytes.
  // `b`: to 100 channels at one position, where the weight of 100 x 4 x 8 x 8 is more than the
  // matrix of 4 x 8 x 8 * 3. `c`: 1 x 1, none. `d`, transposed: 2 x 2 for each of 100 channels of 3
  // samples, 1,200 values, but a weight of 100 x 2 x 2 x 2.
  const std::string layers =
      "  - conv2d: {channels: 4, kernel: 3, padding: 1, name: a}\n"
      "  - conv2d: {channels: 100, kernel: 8, name: b}\n"
      "  - conv2d: {channels: 100, kernel: 1, name: c}\n"
      "  - conv_transpose2d: {channels: 2, kernel: 2, name: d}\n";
  constexpr std::int64_t a = 4 * 2 * 9 * 64 * 3, b = 4 * 100 * 4 * 64, d = 4 * 100 * 2 * 4;
  Workload net = build_text(network("[2, 8, 8]", layers), {.batch = 3});
  const auto workspace = [&](const char* op) { return find_operator(net, op).workspace.count(); };
  add_kernel_workspace(net, with_limits({0, 1'000'000}));
  for (const char* half : {"forward", "backward"}) {
    CHECK(workspace((std::string("a.") + half).c_str()) == a);
    CHECK(workspace((std::string("b.") + half).c_str()) == b);
    CHECK(workspace((std::string("c.") + half).c_str()) == 0);
    CHECK(workspace((std::string("d.") + half).c_str()) == d);
  }
  net = build_text(network("[2, 8, 8]", layers), {.batch = 3});
  add_kernel_workspace(net, with_limits({5000, 6000}));
  CHECK(workspace("a.forward") == 6000);
  CHECK(workspace("d.backward") == d);
  net = build_text(network("[2, 8, 8]", layers), {.batch = 3});
  add_kernel_workspace(net, with_limits({0}));
  CHECK(workspace("a.forward") == 0);
}

TEST_CASE("a library with a layout of its own copies operands and results") {
  // Batch 3. `a`: 2 channels of 8 x 8 to 4 of 8 x 8. `b`: 1 x 1, to 100 channels.
  const std::string layers =
      "  - conv2d: {channels: 4, kernel: 3, padding: 1, name: a}\n"
      "  - conv2d: {channels: 100, kernel: 1, bias: false, name: b}\n";
  // In blocks of 16 channels, but that `a` reads its image as it is.
  constexpr std::int64_t middle = 4 * 3 * 4 * 64;
  constexpr std::int64_t blocked_middle = 4 * middle, blocked_out = 28 * middle;
  constexpr std::int64_t a = 4 * 4 * 2 * 9, blocked_a = 4 * a;
  constexpr std::int64_t b = 4 * 100 * 4, blocked_b = 4 * 112 * 16;
  std::vector<Processor> oneDnn = with_limits({0});
  oneDnn.front().convolution_layout = ConvolutionLayout::blocked;
  const auto workspace = [&](const WorkloadOptions& options, const char* op) {
    Workload net = build_text(network("[2, 8, 8]", layers), options);
    const Bytes before = find_operator(net, op).workspace;
    add_kernel_workspace(net, oneDnn);
    return (find_operator(net, op).workspace - before).count();
  };
  const WorkloadOptions whole{.batch = 3}, split{.batch = 3, .split_backward = true};
  // What is copied out is more than the operands, and than what padding adds to it.
  CHECK(workspace(whole, "a.forward") == blocked_middle);
  CHECK(workspace(whole, "b.forward") == blocked_out);
  // The gradient of the weight comes last: its operands, then itself while it is copied out.
  // A bias of 4 channels is one of 16, and has 128 bytes to align it.
  CHECK(workspace(whole, "a.backward") == blocked_a + blocked_middle + (4 * 16 + 128) - a);
  CHECK(workspace(whole, "b.backward") == blocked_middle + blocked_out + blocked_b - b);
  CHECK(workspace(split, "b.backward_input") == blocked_out + blocked_b + blocked_middle - middle);
  CHECK(workspace(split, "b.backward_weight") == blocked_middle + blocked_out + blocked_b - b);
  CHECK(kernel_key(oneDnn) != kernel_key(with_limits({0})));
}

TEST_CASE(
    "a batch norm's backward takes as much as its input on a CPU, where that has a gradient") {
  const std::string layers =
      "  - batch_norm\n  - conv2d: {channels: 4, kernel: 1}\n  - batch_norm\n";
  std::vector<Processor> oneDnn = with_limits({0});
  oneDnn.front().convolution_layout = ConvolutionLayout::blocked;
  Workload net = build_text(network("[2, 8, 8]", layers), {.batch = 3});
  add_kernel_workspace(net, with_limits({1'000'000}));
  CHECK(find_operator(net, "batch_norm_2.backward").workspace == Bytes{});
  add_kernel_workspace(net, oneDnn);
  CHECK(find_operator(net, "batch_norm_1.backward").workspace == Bytes{});
  CHECK(find_operator(net, "batch_norm_2.backward").workspace == Bytes{4 * 3 * 4 * 64});
}
