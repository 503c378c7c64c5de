#include "policy/pipeline/reruns/slot_graph.hpp"

#include "base/dense_id.hpp"
#include "policy/graph/computations.hpp"
#include "policy/pipeline/schedule/task_runs.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

using RunPart = SlotGraph::Part;

/// What the tasks of a slot run for one microbatch, without reruns.
struct SlotParts {
  std::vector<RunPart> forwards, backwards;
  std::vector<RunPart> weights;  ///< the halves for weights, where they are tasks of their own

  void for_operators(auto visit) const {
    for (const auto* parts : {&forwards, &backwards, &weights})
      for (const RunPart& part : *parts)
        for (const OperatorId op : {part.first, part.second})
          if (op != kNoOperator) visit(index(op));
  }
};

class SlotGraphBuilder {
 public:
  SlotGraphBuilder(const Workload& workload, const OperatorGraph& whole, const SlotParts& parts)
      : workload_(workload),
        whole_(whole),
        parts_(parts),
        is_own_(whole.nodes.size(), false),
        number_(whole.values.size(), OperatorGraph::kNone) {
    parts_.for_operators([&](std::uint32_t op) { is_own_[op] = true; });
  }

  SlotGraph build() {
    receive(true);
    for (const RunPart& part : parts_.forwards) add(part);
    slot_.pause = add_empty();
    receive(false);
    for (const RunPart& part : parts_.backwards) add(part);
    slot_.weights = static_cast<std::uint32_t>(slot_.graph.nodes.size());
    for (const RunPart& part : parts_.weights) add(part);
    for (OperatorGraph::Value& value : slot_.graph.values) finish(value);
    measure();
    return std::move(slot_);
  }

 private:
  std::uint32_t add_empty() {
    slot_.parts.emplace_back();
    OperatorGraph::Node& node = slot_.graph.nodes.emplace_back();
    node.runs_once = true;
    return static_cast<std::uint32_t>(slot_.graph.nodes.size() - 1);
  }

  /// Gradients of parameters, and what else is there for all microbatches or to the end.
  [[nodiscard]] bool is_left_out(std::uint32_t value) const {
    return workload_[whole_.values[value].tensor].lifetime != Lifetime::step;
  }

  /// A node that makes what is read here and made elsewhere, by a forward or by a backward.
  void receive(bool of_forwards) {
    const std::uint32_t node = add_empty();
    parts_.for_operators([&](std::uint32_t op) {
      for (const std::uint32_t read : whole_.nodes[op].reads) {
        const std::uint32_t maker = whole_.values[read].maker;
        if (!is_own_[maker] && (maker < workload_.forwards) == of_forwards) make(node, read, false);
      }
    });
  }

  void make(std::uint32_t node, std::uint32_t value, bool is_own) {
    if (is_left_out(value) || number_[value] != OperatorGraph::kNone) return;
    const OperatorGraph::Value& it = whole_.values[value];
    number_[value] = static_cast<std::uint32_t>(slot_.graph.values.size());
    slot_.graph.nodes[node].makes.push_back(number_[value]);
    slot_.graph.values.push_back({.tensor = it.tensor,
                                  .bytes = it.bytes,
                                  .maker = node,
                                  .is_kept_only = is_own && it.is_kept_only,
                                  .inside = is_own ? it.inside : OperatorGraph::kNone,
                                  .held_until = is_own ? it.held_until : OperatorGraph::kNone});
  }

  void add(const RunPart& part) {
    const auto node = static_cast<std::uint32_t>(slot_.graph.nodes.size());
    slot_.graph.nodes.emplace_back();
    slot_.parts.push_back(part);
    for (const OperatorId op : {part.first, part.second}) {
      if (op == kNoOperator) continue;
      const OperatorGraph::Node& it = whole_.nodes[index(op)];
      OperatorGraph::Node& own = slot_.graph.nodes[node];
      own.time += it.time;
      own.workspace += it.workspace;
      own.generator += it.generator;
      own.runs_once = own.runs_once || it.runs_once;
      for (const std::uint32_t value : it.reads) read(node, value);
      for (const std::uint32_t value : it.changes)
        if (const std::uint32_t changed = number_[value]; changed != OperatorGraph::kNone)
          own.changes.push_back(changed);
      for (const std::uint32_t value : it.makes) make(node, value, true);
    }
  }

  void read(std::uint32_t node, std::uint32_t value) {
    const std::uint32_t number = number_[value];
    if (number == OperatorGraph::kNone) return;
    std::vector<std::uint32_t>& readers = slot_.graph.values[number].readers;
    if (!readers.empty() && readers.back() == node) return;
    readers.push_back(node);
    slot_.graph.nodes[node].reads.push_back(number);
  }

  /// From numbers of the whole graph to those of the slot. What is held until the end of the
  /// forwards is held until the pause.
  void finish(OperatorGraph::Value& value) const {
    if (value.inside != OperatorGraph::kNone) value.inside = number_[value.inside];
    if (value.held_until != OperatorGraph::kNone) value.held_until = slot_.pause - 1;
  }

  void measure() {
    const ComputationCost cost = *judge_computations(slot_.graph, all_once(slot_.graph));
    slot_.kept = cost.bytes[slot_.pause];
    slot_.peak = cost.peak;
    if (!slot_.has_halves()) return;
    for (const OperatorGraph::Value& value : slot_.graph.values)
      if (value.maker < slot_.weights && !value.readers.empty() &&
          value.readers.back() >= slot_.weights)
        slot_.held += value.bytes;
  }

  const Workload& workload_;
  const OperatorGraph& whole_;
  const SlotParts& parts_;
  std::vector<bool> is_own_;           ///< by operator
  std::vector<std::uint32_t> number_;  ///< by value of the whole graph
  SlotGraph slot_;
};

std::vector<RunPart> parts_of(const TaskRuns& runs, Task::Kind kind, std::size_t slot) {
  std::vector<RunPart> parts;
  for (const TaskRuns::Run& run : runs.of({kind, static_cast<std::uint32_t>(slot), 0}))
    parts.push_back({run.first.op, run.second.op, Form::keep});
  return parts;
}

}  // namespace

SlotGraph slot_graph(const Workload& workload, const OperatorGraph& whole, const Slots& slots,
                     std::size_t slot, bool has_halves) {
  const std::vector<bool> none_recomputed;
  const TaskRuns runs(workload, slots, none_recomputed);
  SlotParts parts{.forwards = parts_of(runs, Task::Kind::forward, slot)};
  if (has_halves) {
    parts.backwards = parts_of(runs, Task::Kind::backward_input, slot);
    parts.weights = parts_of(runs, Task::Kind::backward_weight, slot);
  } else {
    parts.backwards = parts_of(runs, Task::Kind::backward, slot);
  }
  return SlotGraphBuilder(workload, whole, parts).build();
}

SlotRuns runs_of(const SlotGraph& slot, std::span<const std::uint32_t> computations) {
  const std::vector<Form> forms = judge_computations(slot.graph, computations)->forms;
  SlotRuns runs;
  std::vector<RunPart>* task = &runs.forward;
  for (std::size_t i = 0; i < computations.size(); ++i) {
    const std::uint32_t node = computations[i];
    if (slot.parts[node].first != kNoOperator) {
      task->push_back(slot.parts[node]);
      task->back().form = forms[i];
    }
    // What runs again for the first half for weights does so in front of it.
    if (node == slot.pause) task = &runs.backward;
    if (node + 1 == slot.weights && task == &runs.backward) task = &runs.backward_weight;
  }
  return runs;
}

}  // namespace plimsoll
