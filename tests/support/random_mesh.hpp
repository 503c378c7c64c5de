// Small meshes of ranks, with times, sizes, links and memories at random.
#pragma once

#include "support/dice.hpp"

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace plimsoll::test {

/// Four blocks of a transformer.
inline constexpr const char* kSmallModel =
    "workload: net\nframework: pytorch-2\ninput: {shape: [16], type: indices}\nblocks:\n  block:\n"
    "    layers:\n      - rms_norm\n"
    "      - grouped_attention: {heads: 4, kv_heads: 4, size: 8, out: 32}\n"
    "      - add: {skip: input, name: middle}\n      - rms_norm\n"
    "      - gated_mlp: {features: 64, out: 32}\n      - add: {skip: middle}\n"
    "layers:\n  - embedding: {entries: 96, features: 32}\n  - block: {repeat: 4}\n"
    "  - rms_norm\n  - linear: {features: 96, bias: false}\n";

/// Nodes of `tensor` GPUs. Gradients and messages between stages cross the same adapter.
inline std::string random_platform(Dice& dice, std::int64_t tensor, std::int64_t nodes) {
  const bool costs = dice(0, 1) == 0;
  const std::string collectives = fmt::format("collectives: {{start: {} us, memory: 1 GB/s{}}}, ",
                                              dice(0, 9), dice(0, 1) == 0 ? "" : ", slows: 20 %");
  const std::string cluster =
      tensor == 1 ? fmt::format(
                        "cluster: {{count: {}, topology: switch, link: {{name: nic, "
                        "bandwidth: {} MB/s, latency: {} us}}}}",
                        nodes, dice(1, 90), dice(0, 20))
                  : fmt::format(
                        "cluster: {{count: {}, topology: switch, link: {{name: nvlink, "
                        "bandwidth: {} MB/s, latency: {} us}}, nodes: {{count: {}, shared: "
                        "[fabric]}}}}",
                        tensor, dice(50, 900), dice(0, 5), nodes);
  const std::string adapter =
      tensor == 1 ? ""
                  : fmt::format(
                        "switches: [fabric], links: {{nic: {{between: [hbm, fabric], "
                        "bandwidth: {} MB/s, latency: {} us}}}}, ",
                        dice(1, 90), dice(0, 20));
  return fmt::format(
      "platform: {{platform: p, memories: {{hbm: {{capacity: {}, read: {{energy: 3 pJ/B}}}}}}, {}\n"
      "  processors: {{gpu: {{memory: hbm, compute: {{fp32: {} GFLOP/s}}, {}power: {{idle: 9 W, "
      "active: 40 W}}}}}},\n  {}}}\n",
      dice(0, 2) == 0 ? "250 kB" : "unlimited", adapter, dice(1, 50), costs ? collectives : "",
      cluster);
}

}  // namespace plimsoll::test
