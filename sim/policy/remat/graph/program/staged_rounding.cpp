#include "policy/remat/graph/program/staged_rounding.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

class StagedRounding {
 public:
  StagedRounding(const OperatorGraph& graph, const RerunGroups& groups,
                 const StagedProgram& program, std::span<const double> columns, double threshold)
      : graph_(graph),
        once_(graph, groups, 0),
        groups_(groups),
        carried_(graph.nodes.size() + 1, std::vector<bool>(graph.values.size(), false)) {
    for (const auto& [stage, value, column] : program.carried_columns())
      carried_[stage][value] = column == StagedProgram::kAlways ||
                               columns[static_cast<std::size_t>(column)] >= threshold;
  }

  std::vector<Rerun> run() {
    for (std::uint32_t stage = 0; stage < graph_.nodes.size(); ++stage) {
      again_.assign(groups_.groups.size(), false);
      for (std::uint32_t v = 0; v < graph_.values.size(); ++v)
        if (carried_[stage + 1][v] && !carried_[stage][v]) run_again(stage, v);
      // A group that runs again may have nodes behind the reader that asked for it.
      while (add_missing(stage)) {
      }
      for (std::uint32_t group = 0; group < again_.size(); ++group)
        if (again_[group]) reruns_.push_back({stage, group});
    }
    return std::move(reruns_);
  }

 private:
  /// Whether that is new.
  bool run_again(std::uint32_t stage, std::uint32_t v) {
    const std::uint32_t group = groups_.of_node[graph_.values[v].maker];
    if (again_[group] || !once_.may_run({stage, group})) return false;
    again_[group] = true;
    return true;
  }

  bool add_missing(std::uint32_t stage) {
    bool is_new = false;
    for (std::uint32_t node = stage + 1; node-- > 0;) {
      if (node != stage && !again_[groups_.of_node[node]]) continue;
      for (const std::uint32_t v : graph_.nodes[node].reads)
        if (!is_carried(stage, v)) is_new = run_again(stage, v) || is_new;
    }
    return is_new;
  }

  /// Or what it is a part of.
  [[nodiscard]] bool is_carried(std::uint32_t stage, std::uint32_t v) const {
    const std::uint32_t whole = graph_.values[v].inside;
    return graph_.values[v].bytes == Bytes{} || carried_[stage][v] ||
           (whole != OperatorGraph::kNone && carried_[stage][whole]);
  }

  const OperatorGraph& graph_;
  const StagedSchedule once_;
  const RerunGroups& groups_;
  std::vector<std::vector<bool>> carried_;  ///< by stage, by value
  std::vector<bool> again_;                 ///< by group, in the stage
  std::vector<Rerun> reruns_;
};

}  // namespace

std::vector<Rerun> rounded_reruns(const OperatorGraph& graph, const RerunGroups& groups,
                                  const StagedProgram& program, std::span<const double> columns,
                                  double threshold) {
  return StagedRounding(graph, groups, program, columns, threshold).run();
}

}  // namespace plimsoll
