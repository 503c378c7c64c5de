#include "policy/online/run/remakes.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

namespace plimsoll {

Remakes::Remakes(const StorageGraph& graph, const OnlinePolicy& policy, Masks masks)
    : graph_(graph), is_read_again_(graph.storages.size(), false), made_again_(graph.nodes.size()) {
  const auto stays = [&](std::uint32_t storage) {
    return masks == Masks::keep && graph.storages[storage].is_drawn;
  };
  for (std::uint32_t s = 0; s < graph.storages.size(); ++s)
    can_be_remade_.push_back(!graph.groups[graph.storages[s].group].runs_once && !stays(s) &&
                             policy.may_release(graph, s));
  for (std::uint32_t node = 0; node < graph.nodes.size(); ++node) {
    const std::vector<std::uint32_t>& makes = graph.nodes[node].makes;
    if (std::ranges::none_of(makes, stays)) continue;
    std::ranges::copy_if(makes, std::back_inserter(made_again_[node]), std::not_fn(stays));
    if (made_again_[node].empty()) continue;
    for (const std::uint32_t s : makes)
      if (stays(s)) is_read_again_[s] = true;
  }
}

}  // namespace plimsoll
