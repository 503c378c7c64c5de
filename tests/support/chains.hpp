/// Chains and one-accelerator platforms for tests, in units: 1 s, 1 B, 1 B/s.
#pragma once

#include "base/document.hpp"
#include "platform/file/platform_file.hpp"
#include "workload/workload_file.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace plimsoll::test {

struct Chain {
  std::vector<std::int64_t> forward, backward;  ///< by stage
  std::vector<std::int64_t> output;             ///< a_0 first
  std::vector<std::int64_t> saved;
  std::vector<std::int64_t> forward_workspace, backward_workspace;

  [[nodiscard]] std::size_t stages() const { return forward.size(); }
};

/// Times and sizes of stages that are all alike; the chain's input is of `output`, too.
struct EqualStage {
  std::int64_t forward = 1, backward = 1, output = 10, saved = 10;
};

inline Chain equal_chain(std::size_t stages, const EqualStage& it = {}) {
  const auto all = [&](std::int64_t value) { return std::vector<std::int64_t>(stages, value); };
  return {all(it.forward),
          all(it.backward),
          std::vector<std::int64_t>(stages + 1, it.output),
          all(it.saved),
          {},
          {}};
}

inline std::string chain_yaml(const Chain& chain) {
  std::string text = fmt::format("workload: chain\ninput: {} B\nchain:\n", chain.output.front());
  for (std::size_t i = 0; i < chain.stages(); ++i) {
    text += fmt::format("  - {{name: s{}, forward: {} s, backward: {} s, output: {} B, saved: {} B",
                        i + 1, chain.forward[i], chain.backward[i], chain.output[i + 1],
                        chain.saved[i]);
    if (!chain.forward_workspace.empty())
      text += fmt::format(", forward_workspace: {} B, backward_workspace: {} B",
                          chain.forward_workspace[i], chain.backward_workspace[i]);
    text += "}\n";
  }
  return text;
}

inline Workload chain_workload(const Chain& chain) {
  return build(read_workload(parse_document(chain_yaml(chain), "chain.yaml")));
}

struct OneGpu {
  std::optional<std::int64_t> capacity;  ///< unlimited where absent
  std::int64_t bandwidth_out = 1, bandwidth_in = 1;
  std::string allocator = "ideal";
  std::string link = "";  ///< further keys: ", latency: 1 s"
};

inline std::string platform_yaml(const OneGpu& gpu) {
  const std::string capacity = gpu.capacity ? fmt::format("{} B", *gpu.capacity) : "unlimited";
  return fmt::format(
      "platform: one-gpu\nmemories:\n  hbm: {{capacity: {}, allocator: {}}}\n"
      "  dram: {{capacity: unlimited}}\nprocessors:\n  gpu: {{memory: hbm}}\n"
      "links:\n  pcie: {{between: [hbm, dram], bandwidth: {{to_dram: {} B/s, to_hbm: {} "
      "B/s}}{}}}\n",
      capacity, gpu.allocator, gpu.bandwidth_out, gpu.bandwidth_in, gpu.link);
}

inline Platform one_gpu(const OneGpu& gpu) {
  Diagnostics diagnostics;
  Platform platform =
      read_platform(parse_document(platform_yaml(gpu), "platform.yaml"), diagnostics);
  diagnostics.throw_if_errors();
  return platform;
}

}  // namespace plimsoll::test
