#include "workload/chain/chain_view.hpp"

#include "workload/workload_text.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;

TEST_CASE("an abstract chain is seen as itself") {
  const Workload chain = build_text(
      "workload: w\ninput: 1 B\nchain:\n"
      "  - {name: p, forward: 1 s, backward: 1 s, output: 2 B, saved: 5 B, gradient: 3 B}\n"
      "  - {name: q, forward: 1 s, backward: 1 s, output: 4 B, saved: 6 B, gradient: 7 B, "
      "parameters: 8 B}\n");
  const ChainView view = chain_view(chain);
  REQUIRE(view.stages.size() == 2);
  CHECK(chain[view.stages[0].output].name == "p.output");
  CHECK(view.stages[0].output_bytes == Bytes{2});
  CHECK(view.stages[0].gradient_bytes == Bytes{3});
  CHECK(view.stages[0].saved_bytes == Bytes{5});
  CHECK(view.stages[1].output == kNoTensor);
  CHECK(view.stages[1].output_bytes == Bytes{4});
  CHECK(view.stages[1].gradient_bytes == Bytes{7});
  CHECK(view.stages[1].parameter_bytes == Bytes{8});
  REQUIRE(view.backward(1).size() == 1);
  CHECK(chain[view.backward(1)[0]].name == "q.backward");
  REQUIRE(view.saved(0).size() == 1);
  CHECK(chain[view.saved(0)[0]].name == "p.saved");
}

TEST_CASE("a network is cut where one value separates before from after") {
  const Workload net = build_text(network(
      "[2, 4, 4]",
      "  - conv2d: {channels: 2, kernel: 1}\n"           // changed in place by the ReLU: no cut
      "  - relu\n"                                       // cut
      "  - conv2d: {channels: 2, kernel: 1, name: a}\n"  // read twice: cut, one value crosses
      "  - conv2d: {channels: 3, kernel: 1, name: b}\n"  // a and b cross: no cut
      "  - conv2d: {channels: 2, kernel: 1}\n"           // a crosses, too: no cut
      "  - add: {skip: a}\n"                             // cut
      "  - global_avg_pool\n",
      "mse"));
  const ChainView view = chain_view(net);
  REQUIRE(view.stages.size() == 5);
  const std::uint32_t ends[] = {2, 3, 6, 7, 8};
  for (std::size_t s = 0; s < 5; ++s) CHECK(view.stages[s].forward_end == ends[s]);
  CHECK(net[view.stages[0].output].name == "conv2d_1");
  CHECK(net[view.stages[1].output].name == "a");
  CHECK(net[view.stages[2].output].name == "add_1");
  // Stage 2: a (read by two convolutions) is stage 1's; b and the sum are its own.
  CHECK(view.stages[1].saved_bytes == Bytes{2 * 16 * 4});
  CHECK(view.stages[2].saved_bytes == Bytes{3 * 16 * 4 + 2 * 16 * 4});
  CHECK(view.stages[2].gradient_bytes == Bytes{2 * 16 * 4});
  // The addition has no backward of its own.
  REQUIRE(view.backward(2).size() == 2);
  CHECK(net[view.backward(2)[0]].name == "conv2d_4.backward");
  CHECK(view.stages[4].output == kNoTensor);
}

TEST_CASE("what has no backward goes with the stage after it") {
  // A concatenation of one value separates before from after, but hands its gradient on.
  const Workload net = build_text(network("[4, 2, 2]",
                                          "  - conv2d: {channels: 4, kernel: 1, name: a}\n"
                                          "  - concat: {parts: [a]}\n"
                                          "  - conv2d: {channels: 4, kernel: 1}\n",
                                          "none"));
  const ChainView view = chain_view(net);
  REQUIRE(view.stages.size() == 2);
  CHECK(view.stages[0].forward_end == 1);
  CHECK(view.stages[1].forward_end == 3);
  for (std::size_t s = 0; s < 2; ++s) CHECK_FALSE(view.backward(s).empty());
}

TEST_CASE("residual networks are cut at their blocks") {
  // stem: conv, BN with ReLU, pooling; 8 blocks; pooling, dense layer, log-softmax, loss.
  const Workload net = build(read_workload(read_document(shipped("resnet18"))));
  CHECK(chain_view(net).stages.size() == 3 + 8 + 4);
}
