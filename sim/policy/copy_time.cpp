#include "policy/copy_time.hpp"

#include <algorithm>

namespace plimsoll {

Time copy_time(const Problem& problem, MemoryId from, MemoryId to, Bytes size) {
  if (from == to) return Time{};
  const Route& route = *problem.topology.route(from, to);
  const Memory& target = problem.platform[to];
  const auto round_up = [](Bytes b, Bytes block) {
    return (b.count() + block.count() - 1) / block.count();
  };
  const Bytes block = std::max(problem.platform[from].block, target.block);
  Time time = route.latency + transfer_time(block * round_up(size, block), route.bandwidth);
  if (target.erase_block > Bytes{}) time += target.erase_time * round_up(size, target.erase_block);
  return time;
}

}  // namespace plimsoll
