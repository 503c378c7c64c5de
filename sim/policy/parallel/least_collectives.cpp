#include "policy/parallel/least_collectives.hpp"

#include "plan/build/rank_collectives.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace plimsoll {

namespace {

Spreading with_ways(Spreading spreading, const Topology& topology) {
  spreading.chosen_on = &topology;
  return spreading;
}

}  // namespace

LeastCollectives::LeastCollectives(Spreading spreading, const MeshOptions& parallel,
                                   const Workload& workload, const Platform& platform,
                                   const Topology& topology)
    : workload_(workload),
      platform_(platform),
      chooses_(parallel.collectives == MeshOptions::Algorithm::automatic),
      spreading_(with_ways(std::move(spreading), topology)),
      choice_(spreading_, platform) {}

Time LeastCollectives::of(OperatorId id, ProcessorId processor) {
  const Operator& op = workload_[id];
  const MemoryId memory = platform_[processor].memory;
  Bytes bytes;
  for (const TensorId moved : workload_.list(moved_by(op))) bytes += workload_[moved].bytes;
  const Key key{op.collective.kind, op.collective.axis, op.collective.of_experts, memory, bytes};
  const auto [known, is_new] = known_.try_emplace(key);
  if (is_new) known->second = time_of(op.collective, memory, bytes);
  return known->second;
}

Time LeastCollectives::time_of(const Collective& collective, MemoryId memory, Bytes bytes) {
  const auto has_it = [&](const std::vector<ProcessorId>& likes) {
    return platform_[likes.front()].memory == memory;
  };
  const auto likes = std::ranges::find_if(spreading_.likes, has_it);
  if (likes == spreading_.likes.end()) return Time{};
  std::vector<MemoryId> memories;
  for (const ProcessorId like : *likes) memories.push_back(platform_[like].memory);
  const CollectiveForm form = is_pass(collective.kind) ? CollectiveForm{}
                              : chooses_               ? choice_.of(collective, memories, bytes)
                                                       : CollectiveForm{spreading_.algorithm, 0, 1};
  return choice_.time_of(form, collective, memories, bytes, CollectiveChoice::Groups::first)
      .value_or(Time{});
}

}  // namespace plimsoll
