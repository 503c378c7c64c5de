#include "policy/pipeline/bounds/knapsack_bound.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

__extension__ using Wide = __int128;

bool is_denser(const KnapsackItem& a, const KnapsackItem& b) {
  return Wide{a.worth} * b.size > Wide{b.worth} * a.size;
}

/// What `room` is worth where it holds a share of one of `goods`; rounded down.
std::int64_t worth_of(std::int64_t room, const KnapsackItem& goods) {
  return static_cast<std::int64_t>(Wide{room} * goods.worth / goods.size);
}

}  // namespace

std::int64_t knapsack_bound(std::vector<KnapsackItem> goods, std::int64_t room) {
  std::erase_if(goods, [](const KnapsackItem& it) { return it.worth == 0; });
  std::ranges::stable_sort(goods, is_denser);
  std::int64_t worth = 0;
  for (auto it = goods.begin(); it != goods.end(); ++it) {
    const std::int64_t fits = it->size == 0 ? it->count : std::min(it->count, room / it->size);
    worth += fits * it->worth;
    room -= fits * it->size;
    if (fits == it->count) continue;
    const auto next = it + 1;
    const std::int64_t no_more = next == goods.end() ? 0 : worth_of(room, *next);
    if (it == goods.begin() || (it - 1)->size == 0) return worth + no_more;
    const std::int64_t one_more = it->worth - worth_of(it->size - room, *(it - 1));
    return worth + std::max(no_more, one_more);
  }
  return worth;
}

}  // namespace plimsoll
