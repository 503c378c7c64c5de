#include "plan/build/hosts_of_ranks.hpp"

#include "base/dense_id.hpp"
#include "platform/core/links_between.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace plimsoll {

namespace {

class Hosts {
 public:
  Hosts(MemoryId of_first, const Platform& platform, const Topology& topology)
      : platform_(platform), topology_(topology), linked_(platform.memories.size()) {
    const Memory& wanted = platform[of_first];
    for (std::uint32_t m = 0; m < platform.memories.size(); ++m)
      if (platform.memories[m].key() == wanted.key()) likes_.push_back(MemoryId{m});
    for (const Link& link : platform.links)
      for (const auto& [from, to] : {std::pair(link.between[0], link.between[1]),
                                     std::pair(link.between[1], link.between[0])})
        if (platform[to].key() == wanted.key()) linked_[index(from)].push_back(to);
    for (auto& linked : linked_) {
      std::ranges::sort(linked);
      linked.erase(std::ranges::unique(linked).begin(), linked.end());
    }
  }

  [[nodiscard]] std::size_t count() const { return likes_.size(); }

  [[nodiscard]] std::size_t links(ProcessorId from, MemoryId to) const {
    return links_between(platform_, topology_, platform_[from].memory, to);
  }

  /// Of a processor, the nearest first: those that a link joins to its memory, and if more than `few` are asked for,
  /// all others, too.
  [[nodiscard]] std::vector<MemoryId> in_order(ProcessorId of, std::size_t few) const {
    const std::vector<MemoryId>& linked = linked_[index(platform_[of].memory)];
    if (few <= linked.size()) return linked;
    std::vector<std::pair<std::size_t, MemoryId>> order;
    for (const MemoryId m : likes_) order.emplace_back(links(of, m), m);
    std::ranges::sort(order);
    std::vector<MemoryId> all;
    for (const auto& [distance, m] : order) all.push_back(m);
    return all;
  }

 private:
  const Platform& platform_;
  const Topology& topology_;
  std::vector<MemoryId> likes_;
  std::vector<std::vector<MemoryId>> linked_;  ///< by memory
};

}  // namespace

std::vector<MemoryId> hosts_of_ranks(MemoryId of_first, const Spreading& spreading,
                                     const Platform& platform, const Topology& topology) {
  const Hosts hosts(of_first, platform, topology);
  std::vector<MemoryId> all(spreading.ranks(), of_first);
  if (hosts.count() == 1) return all;
  const auto& likes = *std::ranges::min_element(
      spreading.likes, {}, [&](const auto& its) { return hosts.links(its.front(), of_first); });
  const std::vector<MemoryId> of_its = hosts.in_order(likes.front(), hosts.count());
  const auto place = static_cast<std::size_t>(std::ranges::find(of_its, of_first) - of_its.begin());
  for (std::uint32_t rank = 0; rank < all.size(); ++rank)
    all[rank] = hosts.in_order(likes[rank], place + 1)[place];
  return all;
}

}  // namespace plimsoll
