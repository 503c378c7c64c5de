/// Rows of devices and chains of equal stages with split backwards, for tests.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace plimsoll::test {

/// gpu0.. with hbm0.., neighbours joined by links of `latency` (with its unit).
inline std::string row_yaml(std::int64_t devices, const std::string& latency) {
  std::string memories, processors, links;
  for (std::int64_t i = 0; i < devices; ++i) {
    memories += fmt::format("  hbm{}: {{capacity: unlimited}}\n", i);
    processors += fmt::format("  gpu{0}: {{memory: hbm{0}}}\n", i);
    if (i + 1 < devices)
      links +=
          fmt::format("  l{0}: {{between: [hbm{0}, hbm{1}], latency: {2}}}\n", i, i + 1, latency);
  }
  if (!links.empty()) links = "links:\n" + links;
  return "platform: row\nmemories:\n" + memories + "processors:\n" + processors + links;
}

/// Times with their units; `held` of `saved` bytes are for the weight half.
struct SplitStage {
  std::string forward, input, weight;
  std::int64_t saved = 1, held = 1;
};

inline std::string split_chain_yaml(std::int64_t stages, const SplitStage& it) {
  std::string text = "workload: equal\nchain:\n";
  for (std::int64_t i = 0; i < stages; ++i)
    text += fmt::format(
        "  - {{name: s{}, forward: {}, backward_input: {}, backward_weight: {}, saved: {} B, "
        "held_for_weight_gradient: {} B}}\n",
        i, it.forward, it.input, it.weight, it.saved, it.held);
  return text;
}

}  // namespace plimsoll::test
