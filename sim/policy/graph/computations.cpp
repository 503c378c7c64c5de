#include "policy/graph/computations.hpp"

#include <algorithm>
#include <numeric>

namespace plimsoll {

namespace {

/// A value as one run of its maker left it.
struct Copy {
  std::uint32_t value = 0;
  std::uint32_t made = 0, last = 0;  ///< positions in the sequence
  std::uint32_t changes = 0;         ///< in place, so far
  bool is_read = false;
};

/// Follows the copies of values through a sequence.
class CopyTracker {
 public:
  CopyTracker(const OperatorGraph& graph, std::span<const std::uint32_t> computations)
      : graph_(graph),
        computations_(computations),
        latest_(graph.values.size(), OperatorGraph::kNone),
        runs_(graph.nodes.size(), 0) {
    number_states();
  }

  /// Whether everything that is read is there.
  bool run() {
    for (std::uint32_t i = 0; i < computations_.size(); ++i)
      if (!add(i)) return false;
    if (std::ranges::find(runs_, 0u) != runs_.end()) return false;
    stay();
    return true;
  }

  [[nodiscard]] ComputationCost cost() const {
    ComputationCost cost;
    cost.forms = forms();
    std::vector<std::int64_t> change(computations_.size() + 1, 0);
    for (std::uint32_t i = 0; i < computations_.size(); ++i) {
      cost.time += graph_.nodes[computations_[i]].time;
      add_copies(i, cost.forms[i], change);
    }
    add_generators(change);
    std::int64_t there = 0;
    for (std::size_t i = 0; i < computations_.size(); ++i) {
      there += change[i];
      cost.bytes.push_back(Bytes{there} + graph_.nodes[computations_[i]].workspace);
      cost.peak = std::max(cost.peak, cost.bytes.back());
    }
    return cost;
  }

 private:
  /// In which state each node finds what it reads when all run once.
  void number_states() {
    std::vector<std::uint32_t> changes(graph_.values.size(), 0);
    states_begin_.push_back(0);
    for (const OperatorGraph::Node& node : graph_.nodes) {
      for (const std::uint32_t value : node.reads) states_.push_back(changes[value]);
      for (const std::uint32_t value : node.changes) ++changes[value];
      states_begin_.push_back(static_cast<std::uint32_t>(states_.size()));
    }
  }

  bool add(std::uint32_t position) {
    const std::uint32_t number = computations_[position];
    const OperatorGraph::Node& node = graph_.nodes[number];
    if (++runs_[number] > 1 && node.runs_once) return false;
    for (std::size_t i = 0; i < node.reads.size(); ++i) {
      const std::uint32_t latest = latest_[node.reads[i]];
      if (latest == OperatorGraph::kNone) return false;
      Copy& copy = copies_[latest];
      if (copy.changes != states_[states_begin_[number] + i]) return false;
      copy.last = position;
      copy.is_read = true;
    }
    for (const std::uint32_t value : node.changes) ++copies_[latest_[value]].changes;
    first_copy_.push_back(static_cast<std::uint32_t>(copies_.size()));
    for (const std::uint32_t value : node.makes) {
      latest_[value] = static_cast<std::uint32_t>(copies_.size());
      copies_.push_back({.value = value, .made = position, .last = position});
    }
    return true;
  }

  /// What has to be there at the end, or until a node has run.
  void stay() {
    const auto end = static_cast<std::uint32_t>(computations_.size() - 1);
    std::vector<std::uint32_t> first(graph_.nodes.size(), OperatorGraph::kNone);
    for (std::uint32_t i = 0; i <= end && !computations_.empty(); ++i)
      first[computations_[i]] = std::min(first[computations_[i]], i);
    for (std::uint32_t copy = 0; copy < copies_.size(); ++copy) {
      Copy& it = copies_[copy];
      const OperatorGraph::Value& value = graph_.values[it.value];
      if (value.stays && latest_[it.value] == copy) it.last = end;
      if (value.held_until == OperatorGraph::kNone) continue;
      // Whatever runs before the node that follows the one it is held for.
      const std::uint32_t until = value.held_until + 1 < graph_.nodes.size()
                                      ? first[value.held_until + 1] - 1
                                      : first[value.held_until];
      if (it.made < until) it.last = std::max(it.last, until);
    }
  }

  [[nodiscard]] std::span<const Copy> copies_of(std::uint32_t position) const {
    return std::span(copies_).subspan(first_copy_[position],
                                      graph_.nodes[computations_[position]].makes.size());
  }

  /// Bare where what only `keep` leaves is not read.
  [[nodiscard]] std::vector<Form> forms() const {
    std::vector<Form> forms;
    const auto is_kept_only = [&](const Copy& copy) {
      return graph_.values[copy.value].is_kept_only;
    };
    for (std::uint32_t i = 0; i < computations_.size(); ++i) {
      const auto copies = copies_of(i);
      const bool is_needed = std::ranges::any_of(
          copies, [&](const Copy& copy) { return copy.is_read && is_kept_only(copy); });
      const bool is_bare = !is_needed && std::ranges::any_of(copies, is_kept_only);
      forms.push_back(is_bare ? Form::bare : Form::keep);
    }
    return forms;
  }

  /// A part that is in its whole lengthens the life of that.
  void add_copies(std::uint32_t position, Form form, std::vector<std::int64_t>& change) const {
    const auto copies = copies_of(position);
    for (const Copy& copy : copies) {
      const OperatorGraph::Value& value = graph_.values[copy.value];
      if (form == Form::bare ? value.is_kept_only : value.inside != OperatorGraph::kNone) continue;
      std::uint32_t last = copy.last;
      for (const Copy& part : copies)
        if (form == Form::keep && graph_.values[part.value].inside == copy.value)
          last = std::max(last, part.last);
      change[copy.made] += value.bytes.count();
      change[last + 1] -= value.bytes.count();
    }
  }

  /// From the first run of a random node to the last, where there are several.
  void add_generators(std::vector<std::int64_t>& change) const {
    std::vector<std::uint32_t> first(graph_.nodes.size(), OperatorGraph::kNone), last = first;
    for (std::uint32_t i = 0; i < computations_.size(); ++i) {
      last[computations_[i]] = i;
      first[computations_[i]] = std::min(first[computations_[i]], i);
    }
    for (std::uint32_t node = 0; node < graph_.nodes.size(); ++node) {
      if (first[node] == last[node]) continue;
      change[first[node]] += graph_.nodes[node].generator.count();
      change[last[node] + 1] -= graph_.nodes[node].generator.count();
    }
  }

  const OperatorGraph& graph_;
  const std::span<const std::uint32_t> computations_;
  std::vector<std::uint32_t> states_, states_begin_;  ///< by read of each node, changes before it
  std::vector<std::uint32_t> latest_;                 ///< copy, by value
  std::vector<std::uint32_t> runs_;                   ///< by node
  std::vector<Copy> copies_;
  std::vector<std::uint32_t> first_copy_;  ///< by position
};

}  // namespace

std::optional<ComputationCost> judge_computations(const OperatorGraph& graph,
                                                  std::span<const std::uint32_t> computations) {
  CopyTracker tracker(graph, computations);
  if (!tracker.run()) return std::nullopt;
  return tracker.cost();
}

std::vector<std::uint32_t> all_once(const OperatorGraph& graph) {
  std::vector<std::uint32_t> nodes(graph.nodes.size());
  std::iota(nodes.begin(), nodes.end(), 0u);
  return nodes;
}

}  // namespace plimsoll
