#include "policy/parallel/least_collectives.hpp"

#include "plan/build/rank_collectives.hpp"

#include <algorithm>
#include <stdexcept>
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
      where_(parallel.where),
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
  const std::vector<MemoryId> memories = memories_of(*likes, platform_);
  const CollectiveForm form = form_of(collective, memories, bytes);
  return choice_.time_of(form, collective, memories, bytes, CollectiveChoice::Groups::first)
      .value_or(Time{});
}

CollectiveForm LeastCollectives::form_of(const Collective& collective,
                                         std::span<const MemoryId> memories, Bytes bytes) {
  if (is_pass(collective.kind)) return {};
  return chooses_ ? choice_.of(collective, memories, bytes)
                  : CollectiveForm{spreading_.algorithm, 0, 1};
}

/// Of several stages the plan tells what each of them exchanges.
void LeastCollectives::require_ways() {
  if (spreading_.likes.size() != 1) return;
  const std::vector<MemoryId> memories = memories_of(spreading_.likes.front(), platform_);
  constexpr Bytes kAny{1};
  for (const Collective& collective : all_of_step()) {
    const CollectiveForm form = form_of(collective, memories, kAny);
    if (!choice_.time_of(form, collective, memories, kAny)) refuse_ways(collective, form, memories);
  }
}

/// What its operators are, and how its gradients are reduced.
std::vector<Collective> LeastCollectives::all_of_step() const {
  std::vector<Collective> all;
  const auto add = [&](const Collective& it) {
    if (it.kind != CollectiveKind::none && std::ranges::count(all, it) == 0) all.push_back(it);
  };
  for (const Operator& op : workload_.operators) add(op.collective);
  for (const Tensor& tensor : workload_.tensors) {
    if (tensor.tensor_class != TensorClass::gradient || tensor.home != Home::processor ||
        (tensor.lifetime != Lifetime::accumulated && tensor.lifetime != Lifetime::resident))
      continue;
    add({spreading_.of_gradients, MeshAxis::data, tensor.is_of_experts});
    if (spreading_.has_copies()) add({CollectiveKind::all_reduce, MeshAxis::replica});
  }
  return all;
}

void LeastCollectives::refuse_ways(const Collective& collective, const CollectiveForm& form,
                                   std::span<const MemoryId> memories) const {
  const std::vector<RankLevel> levels = levels_of(spreading_.axes, collective, form);
  const std::vector<std::uint32_t> members = members_of(0, levels);
  for (std::size_t apart = 1; apart < members.size(); ++apart)
    for (std::uint32_t first = 0; first < memories.size(); ++first)
      for (std::size_t i = 0; is_first(first, levels) && i < members.size(); ++i) {
        const MemoryId from = memories[first + members[i]];
        const MemoryId to = memories[first + members[(i + apart) % members.size()]];
        if (spreading_.chosen_on->route(from, to) == nullptr)
          refuse_missing_way(where_, platform_[from].name, platform_[to].name);
      }
  throw std::logic_error("a form of a collective lacks a way that its members have");
}

}  // namespace plimsoll
