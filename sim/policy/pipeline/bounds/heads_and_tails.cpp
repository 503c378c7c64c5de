#include "policy/pipeline/bounds/heads_and_tails.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

std::vector<std::int64_t> heads(const TaskNetwork& network) {
  std::vector<std::int64_t> head;
  for (const TaskNetwork::Class& it : network.classes) head.push_back(network.before[it.device]);
  std::vector<std::uint32_t> missing, ready;
  for (std::uint32_t c = 0; c < network.classes.size(); ++c) {
    missing.push_back(network.classes[c].inputs);
    if (missing.back() == 0) ready.push_back(c);
  }
  while (!ready.empty()) {
    const std::uint32_t c = ready.back();
    ready.pop_back();
    const TaskNetwork::Class& it = network.classes[c];
    for (const TaskNetwork::Handover& handover : it.next) {
      if (handover.to == TaskNetwork::kNone) break;
      head[handover.to] = std::max(head[handover.to], head[c] + it.time + handover.lag());
      if (--missing[handover.to] == 0) ready.push_back(handover.to);
    }
  }
  return head;
}

}  // namespace

HeadsAndTails heads_and_tails(const TaskNetwork& network) {
  return {heads(network), heads(network.turned_round())};
}

}  // namespace plimsoll
