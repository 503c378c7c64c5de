#include "plan/build/collective.hpp"

#include <bit>
#include <cassert>

namespace plimsoll {

namespace {

/// Member i sends part i first, and in every later round the part that it received in the round
/// before; after n-1 rounds that is the whole sum of a part.
std::vector<CollectiveSend> ring_sends(std::uint32_t n, std::uint32_t member) {
  std::vector<CollectiveSend> sends;
  for (std::uint32_t round = 0; round < 2 * (n - 1); ++round)
    sends.push_back({(member + 1) % n,
                     (member + n - 1) % n,
                     {(member + 2 * n - round) % n, 1, n, round < n - 1}});
  return sends;
}

/// Halving: of the parts that it still adds, a member keeps the half in which it is itself.
std::vector<CollectiveSend> tree_sends(std::uint32_t n, std::uint32_t member) {
  std::vector<CollectiveSend> sends;
  for (std::uint32_t distance = n / 2; distance > 0; distance /= 2) {
    const std::uint32_t partner = member ^ distance;
    sends.push_back({partner, partner, {partner / distance * distance, distance, n, true}});
  }
  for (std::uint32_t distance = 1; distance < n; distance *= 2) {
    const std::uint32_t partner = member ^ distance;
    sends.push_back({partner, partner, {member / distance * distance, distance, n, false}});
  }
  return sends;
}

}  // namespace

std::vector<CollectiveSend> sends_of(AllReduce algorithm, std::uint32_t members,
                                     std::uint32_t member) {
  assert(member < members);
  if (algorithm == AllReduce::ring) return ring_sends(members, member);
  assert(std::has_single_bit(members));
  return tree_sends(members, member);
}

/// Parts of the nodes' rings hold n / k parts of the whole each. After the first half a member holds
/// the sum of the one before which it has sent last.
std::vector<CollectiveSend> hierarchical_sends(std::uint32_t node, std::uint32_t members,
                                               std::uint32_t member) {
  assert(members % node == 0);
  const std::uint32_t nodes = members / node, place = member % node, of_node = member - place;
  std::vector<CollectiveSend> within = ring_sends(node, place);
  for (CollectiveSend& send : within) {
    send.to += of_node;
    send.from += of_node;
    send.part = {send.part.first * nodes, nodes, members, send.part.adds};
  }
  const std::uint32_t held = (place + 1) % node * nodes;
  std::vector<CollectiveSend> between = ring_sends(nodes, member / node);
  for (CollectiveSend& send : between) {
    send.to = send.to * node + place;
    send.from = send.from * node + place;
    send.part = {held + send.part.first, 1, members, send.part.adds};
  }
  within.insert(within.begin() + static_cast<std::ptrdiff_t>(within.size() / 2), between.begin(),
                between.end());
  return within;
}

std::vector<CollectiveSend> sends_of(CollectiveKind kind, std::vector<CollectiveSend> all_reduce) {
  const auto half = all_reduce.begin() + static_cast<std::ptrdiff_t>(all_reduce.size() / 2);
  if (kind == CollectiveKind::reduce_scatter) all_reduce.erase(half, all_reduce.end());
  if (kind == CollectiveKind::all_gather) all_reduce.erase(all_reduce.begin(), half);
  return all_reduce;
}

AllReduceEnds add_all_reduce(PlanBuilder& builder, AllReduce algorithm,
                             std::span<const MemoryId> members,
                             std::span<const TensorId> gradients) {
  if (members.size() < 2 || gradients.empty()) return {};
  const auto n = static_cast<std::uint32_t>(members.size());
  const std::uint32_t group = builder.new_group();
  std::vector<std::vector<CollectiveSend>> sends;
  for (std::uint32_t i = 0; i < n; ++i) sends.push_back(sends_of(algorithm, n, i));
  std::vector<StepId> before, now(n), after;
  for (std::size_t round = 0; round < sends.front().size(); ++round) {
    for (std::uint32_t i = 0; i < n; ++i) {
      const CollectiveSend& send = sends[i][round];
      after.clear();
      if (round > 0)
        for (const std::uint32_t member :
             {i, sends[i][round - 1].from, sends[send.to][round - 1].from})
          after.push_back(before[member]);
      now[i] = builder.reduce(builder.channel(members[i], members[send.to]), gradients, send.part,
                              group, after);
    }
    before = now;
  }
  AllReduceEnds ends;
  for (std::uint32_t i = 0; i < n; ++i) ends.push_back({before[i], before[sends[i].back().from]});
  return ends;
}

AllReduceEnds add_folded_all_reduce(PlanBuilder& builder, AllReduce algorithm,
                                    std::span<const MemoryId> members,
                                    std::span<const TensorId> gradients) {
  if (members.size() < 2 || gradients.empty()) return {};
  const std::uint32_t group = builder.new_group();
  std::vector<StepId> after;
  for (const CollectiveSend& send :
       sends_of(algorithm, static_cast<std::uint32_t>(members.size()), 0))
    after = {builder.reduce(builder.channel(members[0], members[send.to], members[send.from]),
                            gradients, send.part, group, after)};
  return {after};
}

}  // namespace plimsoll
