#include "policy/online/run/storage_graph.hpp"

#include "base/dense_id.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

void add_once(std::vector<std::uint32_t>& list, std::uint32_t entry) {
  if (std::ranges::find(list, entry) == list.end()) list.push_back(entry);
}

bool is_costly(OperatorClass of) {
  return of == OperatorClass::convolution || of == OperatorClass::matmul ||
         of == OperatorClass::attention;
}

class StorageReader {
 public:
  StorageReader(const Workload& workload, const OperatorGraph& graph, const RerunGroups& groups)
      : workload_(workload), graph_(graph), groups_(groups), of_value_(graph.values.size()) {}

  StorageGraph read() {
    add_groups();
    add_storages();
    for (std::uint32_t node = 0; node < graph_.nodes.size(); ++node) add_node(node);
    for (StorageGraph::Group& group : it_.groups) add_parents(group);
    add_children();
    add_resident();
    it_.time = graph_.time();
    return std::move(it_);
  }

 private:
  void add_groups() {
    for (const RerunGroups::Group& group : groups_.groups) {
      StorageGraph::Group& its = it_.groups.emplace_back();
      its.nodes = group.nodes;
      its.cost = group.time;
      its.runs_once = group.runs_once;
    }
  }

  void add_storages() {
    for (std::uint32_t v = 0; v < graph_.values.size(); ++v) {
      const OperatorGraph::Value& value = graph_.values[v];
      if (value.inside != OperatorGraph::kNone) continue;
      of_value_[v] = static_cast<std::uint32_t>(it_.storages.size());
      const std::uint32_t group = groups_.of_node[value.maker];
      const bool is_record = workload_.operators[value.maker].is_random && value.is_kept_only;
      it_.storages.push_back({.tensor = value.tensor,
                              .bytes = value.bytes,
                              .group = group,
                              .is_drawn = is_record || draws_without_record(group)});
      it_.groups[group].makes.push_back(of_value_[v]);
    }
    for (std::uint32_t v = 0; v < graph_.values.size(); ++v) {
      const OperatorGraph::Value& value = graph_.values[v];
      if (value.inside != OperatorGraph::kNone) of_value_[v] = of_value_[value.inside];
      note_uses(value, it_.storages[of_value_[v]]);
    }
  }

  /// Whether an operator of the group draws random numbers and leaves nothing to tell which.
  [[nodiscard]] bool draws_without_record(std::uint32_t group) const {
    const auto is_kept_only = [&](std::uint32_t value) {
      return graph_.values[value].is_kept_only;
    };
    return std::ranges::any_of(groups_.groups[group].nodes, [&](std::uint32_t node) {
      return workload_.operators[node].is_random &&
             std::ranges::none_of(graph_.nodes[node].makes, is_kept_only);
    });
  }

  /// Its last use, or the last node of its group, before which nothing of that runs again.
  void note_uses(const OperatorGraph::Value& value, StorageGraph::Storage& storage) const {
    std::uint32_t last = groups_.groups[storage.group].nodes.back();
    if (!value.readers.empty()) last = std::max(last, value.readers.back());
    if (value.held_until != OperatorGraph::kNone) {
      storage.held_until = value.held_until;
      last = std::max(last, value.held_until);
    }
    if (value.stays) last = StorageGraph::kNone;
    storage.released_after = std::max(storage.released_after, last);
  }

  void add_node(std::uint32_t number) {
    const OperatorGraph::Node& node = graph_.nodes[number];
    StorageGraph::Node& its = it_.nodes.emplace_back();
    its.time = node.time;
    its.workspace = node.workspace;
    its.generator = node.generator;
    its.group = groups_.of_node[number];
    its.is_costly = is_costly(workload_.operators[number].operator_class);
    for (const std::uint32_t value : node.reads) add_once(its.reads, of_value_[value]);
    for (const std::uint32_t value : node.makes)
      if (graph_.values[value].inside == OperatorGraph::kNone)
        its.makes.push_back(of_value_[value]);
    for (const std::uint32_t value : node.changes) it_.storages[of_value_[value]].is_changed = true;
  }

  void add_parents(StorageGraph::Group& group) const {
    const auto number = static_cast<std::uint32_t>(&group - it_.groups.data());
    for (const std::uint32_t node : group.nodes)
      for (const std::uint32_t read : it_.nodes[node].reads)
        if (it_.storages[read].group != number) add_once(group.parents, read);
  }

  void add_children() {
    for (std::uint32_t s = 0; s < it_.storages.size(); ++s)
      for (const std::uint32_t parent : it_.parents(s)) it_.storages[parent].children.push_back(s);
  }

  void add_resident() {
    std::vector<bool> is_known(workload_.tensors.size(), false);
    for (const OperatorGraph::Value& value : graph_.values) is_known[index(value.tensor)] = true;
    for (const Operator& op : workload_.operators)
      for (const TensorId read : workload_.list(op.reads)) {
        if (is_known[index(read)]) continue;
        is_known[index(read)] = true;
        it_.resident.push_back(workload_[read].bytes);
      }
  }

  const Workload& workload_;
  const OperatorGraph& graph_;
  const RerunGroups& groups_;
  std::vector<std::uint32_t> of_value_;  ///< storage
  StorageGraph it_;
};

}  // namespace

StorageGraph storage_graph(const Problem& problem, ProcessorId processor) {
  const OperatorGraph graph = operator_graph(problem, processor);
  const RerunGroups groups = rerun_groups(graph, ChangesByOnce::join);
  return StorageReader(problem.workload, graph, groups).read();
}

}  // namespace plimsoll
