#include "plan/build/collective.hpp"

#include <bit>
#include <cassert>
#include <utility>

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

std::uint32_t part_left(AllReduce algorithm, std::uint32_t members, std::uint32_t member) {
  return algorithm == AllReduce::ring ? (member + 1) % members : member;
}

/// Parts of a level are as many parts of the whole as the levels behind it have members.
std::vector<CollectiveSend> sends_in_levels(AllReduce algorithm,
                                            std::span<const std::uint32_t> levels,
                                            std::uint32_t member) {
  std::uint32_t members = 1;
  for (const std::uint32_t level : levels) members *= level;
  std::vector<CollectiveSend> first_halves, second_halves;
  std::uint32_t stride = 1, held = 0, parts = members;
  for (const std::uint32_t level : levels) {
    const std::uint32_t place = member / stride % level, of_node = member - place * stride;
    parts /= level;
    std::vector<CollectiveSend> sends = sends_of(algorithm, level, place);
    for (CollectiveSend& send : sends) {
      send.to = of_node + send.to * stride;
      send.from = of_node + send.from * stride;
      send.part = {held + send.part.first * parts, send.part.count * parts, members,
                   send.part.adds};
    }
    const auto half = sends.begin() + static_cast<std::ptrdiff_t>(sends.size() / 2);
    first_halves.insert(first_halves.end(), sends.begin(), half);
    second_halves.insert(second_halves.begin(), half, sends.end());
    held += part_left(algorithm, level, place) * parts;
    stride *= level;
  }
  first_halves.insert(first_halves.end(), second_halves.begin(), second_halves.end());
  return first_halves;
}

std::vector<CollectiveSend> all_to_all_sends(AllReduce algorithm, std::uint32_t members,
                                             std::uint32_t member) {
  std::vector<CollectiveSend> sends;
  for (std::uint32_t round = 1; round < members; ++round) {
    const bool is_ring = algorithm == AllReduce::ring;
    const std::uint32_t to = is_ring ? (member + round) % members : member ^ round;
    const std::uint32_t from = is_ring ? (member + members - round) % members : to;
    sends.push_back({to, from, {to, 1, members, false}});
  }
  return sends;
}

namespace {

CollectiveSend pass_send(CollectiveKind kind, std::uint32_t members, std::uint32_t member) {
  CollectiveSend send{(member + 1) % members, (member + members - 1) % members, {0, 1, 1, false}};
  if (kind == CollectiveKind::pass_back) std::swap(send.to, send.from);
  return send;
}

/// The rounds of an all-reduce that a collective consists of.
std::vector<CollectiveSend> rounds_of(CollectiveKind kind, std::vector<CollectiveSend> all_reduce) {
  const auto half = all_reduce.begin() + static_cast<std::ptrdiff_t>(all_reduce.size() / 2);
  if (kind == CollectiveKind::reduce_scatter) all_reduce.erase(half, all_reduce.end());
  if (kind == CollectiveKind::all_gather) all_reduce.erase(all_reduce.begin(), half);
  return all_reduce;
}

}  // namespace

std::vector<CollectiveSend> sends_of(CollectiveKind kind, AllReduce algorithm,
                                     std::span<const std::uint32_t> levels, std::uint32_t member) {
  std::uint32_t n = 1;
  for (const std::uint32_t size : levels) n *= size;
  if (is_pass(kind)) return {pass_send(kind, n, member)};
  std::vector<CollectiveSend> sends =
      kind == CollectiveKind::all_to_all
          ? all_to_all_sends(algorithm, n, member)
          : rounds_of(kind, sends_in_levels(algorithm, levels, member));
  sends.front().part.opens = parts_opened(kind, n);
  return sends;
}

std::uint32_t parts_opened(CollectiveKind kind, std::uint32_t members) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::all_to_all:
      return 2 * members;
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
      return members + 1;
    case CollectiveKind::none:
    case CollectiveKind::pass_on:
    case CollectiveKind::pass_back:
    case CollectiveKind::fetch:
    case CollectiveKind::store:
      return 0;
  }
  return 0;
}

AllReduceEnds add_all_reduce(PlanBuilder& builder, AllReduce algorithm,
                             std::span<const MemoryId> members,
                             std::span<const TensorId> gradients) {
  if (members.size() < 2 || gradients.empty()) return {};
  const auto n = static_cast<std::uint32_t>(members.size());
  const std::uint32_t group = builder.new_group();
  std::vector<std::vector<CollectiveSend>> sends;
  for (std::uint32_t i = 0; i < n; ++i) sends.push_back(sends_of(algorithm, n, i));
  for (auto& of_member : sends)
    of_member.front().part.opens = parts_opened(CollectiveKind::all_reduce, n);
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
  const auto n = static_cast<std::uint32_t>(members.size());
  std::vector<CollectiveSend> sends = sends_of(algorithm, n, 0);
  sends.front().part.opens = parts_opened(CollectiveKind::all_reduce, n);
  std::vector<StepId> after;
  for (const CollectiveSend& send : sends)
    after = {builder.reduce(builder.channel(members[0], members[send.to], members[send.from]),
                            gradients, send.part, group, after)};
  return {after};
}

}  // namespace plimsoll
