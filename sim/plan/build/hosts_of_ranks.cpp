#include "plan/build/hosts_of_ranks.hpp"

#include "platform/core/links_between.hpp"

#include <algorithm>
#include <cstddef>

namespace plimsoll {

namespace {

class Hosts {
 public:
  Hosts(MemoryId of_first, const Platform& platform, const Topology& topology)
      : platform_(platform), topology_(topology) {
    const Memory& wanted = platform[of_first];
    for (std::uint32_t m = 0; m < platform.memories.size(); ++m)
      if (platform.memories[m].key() == wanted.key()) likes_.push_back(MemoryId{m});
  }

  [[nodiscard]] std::size_t count() const { return likes_.size(); }

  [[nodiscard]] std::size_t links(ProcessorId from, MemoryId to) const {
    return links_between(platform_, topology_, platform_[from].memory, to);
  }

  /// Of a processor, the nearest first.
  [[nodiscard]] std::vector<MemoryId> in_order(ProcessorId of) const {
    std::vector<MemoryId> order = likes_;
    std::ranges::stable_sort(order, {}, [&](MemoryId m) { return links(of, m); });
    return order;
  }

 private:
  const Platform& platform_;
  const Topology& topology_;
  std::vector<MemoryId> likes_;
};

}  // namespace

std::vector<MemoryId> hosts_of_ranks(MemoryId of_first, const PlayedRanks& ranks,
                                     const Spreading& spreading, const Platform& platform,
                                     const Topology& topology) {
  const Hosts hosts(of_first, platform, topology);
  std::vector<MemoryId> all(ranks.count(), of_first);
  if (hosts.count() == 1) return all;
  const auto& likes = *std::ranges::min_element(
      spreading.likes, {}, [&](const auto& its) { return hosts.links(its.front(), of_first); });
  const std::vector<MemoryId> of_its = hosts.in_order(likes.front());
  const auto place = std::ranges::find(of_its, of_first) - of_its.begin();
  for (std::uint32_t rank = 0; rank < ranks.count(); ++rank)
    all[rank] = hosts.in_order(likes[ranks.rank(rank)])[static_cast<std::size_t>(place)];
  return all;
}

}  // namespace plimsoll
