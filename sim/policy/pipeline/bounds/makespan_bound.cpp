#include "policy/pipeline/bounds/makespan_bound.hpp"

#include "policy/pipeline/bounds/heads_and_tails.hpp"
#include "policy/pipeline/bounds/memory_bound.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

__extension__ using Wide = __int128;

std::int64_t of_one_microbatch(const TaskNetwork& network, const HeadsAndTails& ends) {
  std::int64_t longest = 0;
  for (std::size_t c = 0; c < network.classes.size(); ++c)
    longest = std::max(longest, ends.head[c] + network.classes[c].time + ends.tail[c]);
  return longest;
}

/// Jackson's bound of one machine.
std::int64_t of_device(const TaskNetwork& network, const HeadsAndTails& ends,
                       std::uint32_t device) {
  std::vector<std::uint32_t> own;
  for (std::uint32_t c = 0; c < network.classes.size(); ++c) {
    const bool is_used = network.splits || c % 3 != 2;  // whole backwards have no weight halves
    if (network.classes[c].device == device && is_used) own.push_back(c);
  }
  std::int64_t longest = 0;
  for (const std::uint32_t first : own)
    for (const std::uint32_t last : own) {
      std::int64_t work = 0;
      for (const std::uint32_t c : own)
        if (ends.head[c] >= ends.head[first] && ends.tail[c] >= ends.tail[last])
          work += network.classes[c].time * network.microbatches;
      if (work > 0) longest = std::max(longest, ends.head[first] + work + ends.tail[last]);
    }
  return longest;
}

}  // namespace

Time makespan_bound(const TaskNetwork& network, const std::vector<std::int64_t>& limits) {
  const HeadsAndTails ends = heads_and_tails(network);
  std::int64_t longest =
      std::max(of_one_microbatch(network, ends), memory_bound(network, ends, limits));
  for (std::uint32_t d = 0; d < network.devices; ++d)
    longest = std::max(longest, of_device(network, ends, d));
  return Time{longest};
}

Time two_way_bound(const TaskNetwork& network) {
  const std::vector<std::int64_t> head = heads_and_tails(network).head;
  Wide all = 0;
  for (const TaskNetwork::Class& it : network.classes) all += Wide{it.time} * network.microbatches;
  const std::uint32_t p = network.devices;
  for (std::uint32_t d = 0; d < p; ++d)
    all += std::min(head[3 * std::size_t{d}], head[3 * std::size_t{p - 1 - d}]);
  return Time{static_cast<std::int64_t>((all + p - 1) / p)};
}

}  // namespace plimsoll
