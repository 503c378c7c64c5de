/// Clusters of GPUs for the tests of parallel axes, and how long their collectives take.
#pragma once

#include "base/quantity.hpp"

#include <string>

#include <fmt/format.h>

namespace plimsoll::test {

/// A cluster `c` of n GPUs: 1 GFLOP/s in fp32, 2 in bf16.
inline std::string trainers(std::int64_t n, const std::string& topology, const std::string& link) {
  return fmt::format(
      "platform: c\nmemories: {{hbm: {{capacity: unlimited, bandwidth: 1 GB/s}}}}\nprocessors: "
      "{{gpu: {{memory: hbm, compute: {{fp32: 1 GFLOP/s, bf16: 2 GFLOP/s}}, power: {{idle: 10 W, "
      "active: 30 W}}}}}}\ncluster: {{count: {}, topology: {}, link: {{name: l, {}}}}}\n",
      n, topology, link);
}

/// n-1 rounds of 1/n of the bytes each, on links of 1 GB/s (1000 ps a byte) and 1 us.
inline Time half_ring(std::int64_t n, std::int64_t bytes) {
  return Time{1'000'000 + (bytes + n - 1) / n * 1000} * (n - 1);
}

}  // namespace plimsoll::test
