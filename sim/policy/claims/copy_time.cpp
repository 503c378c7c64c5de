#include "policy/claims/copy_time.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

std::int64_t blocks(Bytes bytes, Bytes block) {
  return (bytes.count() + block.count() - 1) / block.count();
}

}  // namespace

Time copy_time(const Problem& problem, MemoryId from, MemoryId to, Bytes bytes) {
  if (from == to) return Time{};
  const Memory& target = problem.platform[to];
  Time time = problem.topology.route(from, to)->latency + moving_time(problem, from, to, bytes);
  if (target.erase_block > Bytes{}) time += target.erase_time * blocks(bytes, target.erase_block);
  return time;
}

Bytes whole_blocks(const Problem& problem, MemoryId from, MemoryId to, Bytes bytes) {
  const Bytes block = std::max(problem.platform[from].block, problem.platform[to].block);
  return block * blocks(bytes, block);
}

Time moving_time(const Problem& problem, MemoryId from, MemoryId to, Bytes bytes) {
  if (from == to) return Time{};
  return transfer_time(whole_blocks(problem, from, to, bytes),
                       problem.topology.route(from, to)->bandwidth);
}

}  // namespace plimsoll
