#include "scenario/run/uncut_stage.hpp"

#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr double kMostOfAll = 0.8;
/// Operators of a stage that might be divided.
constexpr std::uint32_t kMany = 20;

}  // namespace

std::string note_on_uncut_stage(const ChainView& chain, const Workload& workload) {
  const ChainStage* most = nullptr;
  double of_most = 0, all = 0;
  for (const ChainStage& stage : chain.stages) {
    double flops = 0;
    for (std::uint32_t op = stage.forward_begin; op < stage.forward_end; ++op)
      flops += static_cast<double>(workload.operators[op].flops.count());
    all += flops;
    if (most != nullptr && flops <= of_most) continue;
    most = &stage;
    of_most = flops;
  }
  if (most == nullptr || of_most <= kMostOfAll * all ||
      most->forward_end - most->forward_begin < kMany)
    return {};
  return fmt::format(
      "one stage of the chain, {} to {}, has {:.0f} % of its FLOPs: something reaches past every "
      "operator in it, so policies of chains and pipelines take it as a whole; `remat/blocks`, "
      "`remat/search` and `hybrid/graph` do not",
      workload.operators[most->forward_begin].name, workload.operators[most->forward_end - 1].name,
      std::floor(100 * of_most / all));
}

}  // namespace plimsoll
