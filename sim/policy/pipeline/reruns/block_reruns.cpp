#include "policy/pipeline/reruns/block_reruns.hpp"

#include "base/dense_id.hpp"
#include "workload/core/operator_traits.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

bool gathers_parameters(const Workload& workload, const SlotGraph& slot, std::uint32_t node) {
  const OperatorId op = slot.parts[node].first;
  return op != kNoOperator && gathers_for_forward(workload[op]);
}

class BlockFinder {
 public:
  BlockFinder(const Workload& workload, const SlotGraph& slot, const RerunGroups& groups,
              std::span<const ForwardRange> blocks)
      : workload_(workload),
        slot_(slot),
        groups_(groups),
        schedule_(slot.graph, groups, 0),
        block_of_forward_(workload.forwards, kNone) {
    for (std::uint32_t b = 0; b < blocks.size(); ++b)
      std::fill(block_of_forward_.begin() + blocks[b].begin,
                block_of_forward_.begin() + blocks[b].end, b);
    for (std::uint32_t node = 0; node < slot.graph.nodes.size(); ++node)
      block_of_.push_back(block_of(slot.parts[node].first));
    is_again_.resize(slot.pause, false);
    stage_.resize(blocks.size(), OperatorGraph::kNone);
  }

  std::vector<Rerun> run() {
    for (std::uint32_t node = slot_.pause; node-- > 0;)
      if (block_of_[node] != kNone && !gathers(node)) look_at(node);
    for (std::uint32_t node = 0; node < slot_.pause; ++node)
      if (is_again_[node]) {
        add(node, stage_[block_of_[node]]);
        add_gathers_for(node);
      }
    std::ranges::sort(reruns_);
    const auto rest = std::ranges::unique(reruns_);
    reruns_.erase(rest.begin(), rest.end());
    return std::move(reruns_);
  }

 private:
  /// Of a forward, or of the one that a backward belongs to.
  [[nodiscard]] std::uint32_t block_of(OperatorId op) const {
    if (op == kNoOperator) return kNone;
    const OperatorId forward = workload_[op].phase == Phase::forward ? op : workload_[op].forward;
    return forward == kNoOperator ? kNone : block_of_forward_[index(forward)];
  }

  [[nodiscard]] bool gathers(std::uint32_t node) const {
    return gathers_parameters(workload_, slot_, node);
  }

  void add(std::uint32_t node, std::uint32_t stage) {
    if (const Rerun rerun{stage, groups_.of_node[node]}; schedule_.may_run(rerun))
      reruns_.push_back(rerun);
  }

  /// Those of its parameters, wherever they were first; not of what is still there, for backwards.
  void add_gathers_for(std::uint32_t node) {
    for (const std::uint32_t read : slot_.graph.nodes[node].reads) {
      const OperatorGraph::Value& value = slot_.graph.values[read];
      const bool stays = !value.readers.empty() && value.readers.back() > slot_.pause;
      if (value.maker < slot_.pause && gathers(value.maker) && !stays)
        add(value.maker, stage_[block_of_[node]]);
    }
  }

  /// Whether what it makes is read by backwards of its block, or by what of it runs again.
  void look_at(std::uint32_t node) {
    for (const std::uint32_t value : slot_.graph.nodes[node].makes)
      for (const std::uint32_t reader : slot_.graph.values[value].readers) {
        if (block_of_[reader] != block_of_[node]) continue;
        if (reader > slot_.pause) {
          is_again_[node] = true;
          std::uint32_t& stage = stage_[block_of_[node]];
          stage = std::min(stage, reader);
        } else if (is_again_[reader]) {
          is_again_[node] = true;
        }
      }
  }

  const Workload& workload_;
  const SlotGraph& slot_;
  const RerunGroups& groups_;
  const StagedSchedule schedule_;
  std::vector<Rerun> reruns_;
  std::vector<std::uint32_t> block_of_forward_;  ///< by operator
  std::vector<std::uint32_t> block_of_;          ///< by node
  std::vector<bool> is_again_;                   ///< by node before the pause
  std::vector<std::uint32_t> stage_;             ///< by block: its first backward that reads of it
};

}  // namespace

void let_gathers_run_again(const Workload& workload, SlotGraph& slot) {
  for (std::uint32_t node = 0; node < slot.pause; ++node)
    if (gathers_parameters(workload, slot, node)) slot.graph.nodes[node].runs_once = false;
}

std::vector<Rerun> block_reruns(const Workload& workload, const SlotGraph& slot,
                                const RerunGroups& groups, std::span<const ForwardRange> blocks) {
  return BlockFinder(workload, slot, groups, blocks).run();
}

}  // namespace plimsoll
