// Devices in a row and chains for them, at random.
#pragma once

#include "support/dice.hpp"

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace plimsoll::test {

/// "gpu0, gpu1, ..".
inline std::string devices(std::int64_t count) {
  std::string names;
  for (std::int64_t d = 0; d < count; ++d) names += fmt::format("{}gpu{}", d == 0 ? "" : ", ", d);
  return names;
}

/// Devices in a row, with times, sizes, links and powers at random.
inline std::string random_chain(Dice& dice, std::int64_t devices_,
                                const std::string& capacity = "unlimited") {
  std::string memories, processors, links, stages;
  for (std::int64_t d = 0; d < devices_; ++d) {
    memories += fmt::format("hbm{}: {{capacity: {}}}, ", d, capacity);
    processors += fmt::format("gpu{}: {{memory: hbm{}, power: {{idle: 10 W, active: {} W}}}}, ", d,
                              d, dice(20, 200));
    if (d > 0)
      links += fmt::format(
          "l{}: {{between: [hbm{}, hbm{}], bandwidth: {} MB/s, latency: {} ms, sharing: {}}}, ", d,
          d - 1, d, dice(1, 40), dice(0, 30), dice(0, 1) == 0 ? "fifo" : "fair");
  }
  const std::int64_t count = devices_ * dice(1, 3);
  for (std::int64_t s = 0; s < count; ++s)
    stages += fmt::format(
        "    - {{name: s{}, forward: {} ms, backward_input: {} ms, backward_weight: {} ms, "
        "output: {} kB, saved: {} kB,\n"
        "       optimizer_step: {} ms}}\n",
        s, dice(1, 40), dice(1, 40), dice(1, 40), dice(1, 400), dice(400, 900), dice(0, 90));
  return fmt::format(
      "scenario: s\n"
      "platform: {{platform: p, energy: {{regulator_efficiency: 87 %}}, memories: {{{}}},\n"
      "  processors: {{{}}},\n"
      "  links: {{{}}}}}\n"
      "workload:\n"
      "  workload: w\n"
      "  input: 3 kB\n"
      "  chain:\n{}",
      memories, processors, links, stages);
}

}  // namespace plimsoll::test
