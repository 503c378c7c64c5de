#include "policy/pipeline/reruns/attention_cores.hpp"

#include "base/dense_id.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

class CoreFinder {
 public:
  CoreFinder(const Workload& workload, const SlotGraph& slot, const RerunGroups& groups)
      : workload_(workload), slot_(slot), groups_(groups), plan_(slot.graph, groups, 0) {}

  std::vector<Rerun> run() {
    std::vector<bool> is_taken(slot_.pause, false);
    for (std::uint32_t node = 0; node < slot_.pause; ++node) {
      if (is_taken[node] || !is_product(node)) continue;
      const std::vector<std::uint32_t> core = core_from(node);
      for (const std::uint32_t member : core) is_taken[member] = true;
      add(core);
    }
    std::ranges::sort(reruns_);
    const auto rest = std::ranges::unique(reruns_);
    reruns_.erase(rest.begin(), rest.end());
    return std::move(reruns_);
  }

 private:
  using Ids = std::vector<std::uint32_t>;

  static bool contains(const Ids& ids, std::uint32_t id) {
    return std::ranges::find(ids, id) != ids.end();
  }

  [[nodiscard]] bool multiplies(std::uint32_t node) const {
    const OperatorId op = slot_.parts[node].first;
    if (op == kNoOperator) return false;
    const OperatorClass its = workload_[op].operator_class;
    return its == OperatorClass::matmul || its == OperatorClass::attention;
  }

  /// Whether it multiplies values with each other, and none with a parameter.
  [[nodiscard]] bool is_product(std::uint32_t node) const {
    if (!multiplies(node)) return false;
    const OperatorId op = slot_.parts[node].first;
    return std::ranges::none_of(workload_.list(workload_[op].reads), [&](TensorId read) {
      const Tensor& tensor = workload_[read];  // gathered parameters are there for a while
      return tensor.lifetime == Lifetime::resident || tensor.tensor_class == TensorClass::parameter;
    });
  }

  /// The product and what reads it, up to the next products of values; empty where none comes.
  [[nodiscard]] Ids core_from(std::uint32_t product) const {
    Ids core{product};
    bool ends = false;
    for (std::size_t next = 0; next < core.size(); ++next)
      for (const std::uint32_t value : slot_.graph.nodes[core[next]].makes)
        for (const std::uint32_t reader : slot_.graph.values[value].readers) {
          if (reader >= slot_.pause || contains(core, reader)) continue;
          if (multiplies(reader))
            ends = ends || is_product(reader);
          else
            core.push_back(reader);
        }
    if (!ends) return {};
    std::ranges::sort(core);
    return core;
  }

  /// Of a core, from its end to its beginning: what is read by backwards, or by what runs again.
  void add(const Ids& core) {
    std::uint32_t stage = OperatorGraph::kNone;
    Ids again;
    for (auto node = core.rbegin(); node != core.rend(); ++node) {
      bool is_needed = false;
      for (const std::uint32_t value : slot_.graph.nodes[*node].makes)
        for (const std::uint32_t reader : slot_.graph.values[value].readers) {
          is_needed = is_needed || reader > slot_.pause || contains(again, reader);
          if (reader > slot_.pause) stage = std::min(stage, reader);
        }
      if (is_needed) again.push_back(*node);
    }
    for (const std::uint32_t node : again)
      if (const Rerun rerun{stage, groups_.of_node[node]}; plan_.may_run(rerun))
        reruns_.push_back(rerun);
  }

  const Workload& workload_;
  const SlotGraph& slot_;
  const RerunGroups& groups_;
  const StagedSchedule plan_;
  std::vector<Rerun> reruns_;
};

}  // namespace

std::vector<Rerun> attention_reruns(const Workload& workload, const SlotGraph& slot,
                                    const RerunGroups& groups) {
  return CoreFinder(workload, slot, groups).run();
}

}  // namespace plimsoll
