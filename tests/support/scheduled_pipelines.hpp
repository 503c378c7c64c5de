/// Every schedule of pipelines with a flush on four devices, and chains and platforms for them, for
/// tests.
#pragma once

#include "property/random_chains.hpp"

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace plimsoll::test {

/// A ring of devices, each with a link of its own to one host memory.
inline std::string ring_with_host(std::int64_t devices, const std::string& pcie) {
  std::string memories = "  dram: {capacity: unlimited}\n", processors, links;
  for (std::int64_t i = 0; i < devices; ++i) {
    memories += fmt::format("  hbm{}: {{capacity: unlimited}}\n", i);
    processors += fmt::format("  gpu{0}: {{memory: hbm{0}}}\n", i);
    links += fmt::format("  pcie{0}: {{between: [hbm{0}, dram], {1}}}\n", i, pcie);
    if (i + 1 < devices || devices > 2)
      links += fmt::format("  l{0}: {{between: [hbm{0}, hbm{1}]}}\n", i, (i + 1) % devices);
  }
  return "platform: ring\nmemories:\n" + memories + "processors:\n" + processors + "links:\n" +
         links;
}

/// A schedule, and the slots that it has on four devices.
struct Scheduled {
  const char* name;
  std::int64_t slots;
};
inline constexpr Scheduled kSchedules[] = {
    {"gpipe", 4},
    {"1f1b", 4},
    {"pipedream", 4},
    {"pipedream-2bw", 4},
    {"zb-h1", 4},
    {"zb-h2", 4},
    {"zb-1p", 4},
    {"zb-2p", 4},
    {"dualpipe", 4},
    {"chimera", 4},
    {"interleaved-1f1b", 8},
    {"looped-bfs", 8},
    {"zb-v", 8},
    {"v-half", 8},
    {"v-min", 8},
    {"1f1b-v", 8},
    {"dualpipe-v", 8},
    {"interleaved-zb", 8},
    {"hanayo", 8},
};

inline std::string policy_of(const Scheduled& it, const std::string& more) {
  return fmt::format(
      "{{name: pipeline/{}, microbatches: 8, virtual_stages: {}, devices: [gpu0, "
      "gpu1, gpu2, gpu3]{}}}",
      it.name, it.slots / 4, more);
}

inline std::string random_split_chain(Dice& dice, std::int64_t stages) {
  std::string text = fmt::format("workload: w\ninput: {} B\nchain:\n", dice(0, 2));
  for (std::int64_t i = 0; i < stages; ++i) {
    const std::int64_t output = dice(0, 2), saved = output + dice(0, 4);
    text += fmt::format(
        "  - {{name: s{}, forward: {} s, backward_input: {} s, backward_weight: {} s, output: {} "
        "B, saved: {} B, held_for_weight_gradient: {} B, parameters: {} B, forward_workspace: {} "
        "B}}\n",
        i, dice(0, 4), dice(0, 4), dice(0, 4), output, saved, dice(0, saved), dice(0, 2),
        dice(0, 2));
  }
  return text;
}

}  // namespace plimsoll::test
