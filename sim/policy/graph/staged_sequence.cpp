#include "policy/graph/staged_sequence.hpp"

#include <algorithm>

namespace plimsoll {

std::vector<std::uint32_t> staged_sequence(const RerunGroups& groups, std::vector<Rerun> reruns) {
  std::ranges::sort(reruns);
  std::vector<std::uint32_t> sequence, stage;
  auto rerun = reruns.begin();
  for (std::uint32_t node = 0; node < groups.of_node.size(); ++node) {
    stage.clear();
    for (; rerun != reruns.end() && rerun->stage == node; ++rerun) {
      const std::vector<std::uint32_t>& nodes = groups.groups[rerun->group].nodes;
      stage.insert(stage.end(), nodes.begin(), nodes.end());
    }
    std::ranges::sort(stage);
    sequence.insert(sequence.end(), stage.begin(), stage.end());
    sequence.push_back(node);
  }
  return sequence;
}

}  // namespace plimsoll
