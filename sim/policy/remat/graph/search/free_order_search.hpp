/// The search for reruns where first runs need not come in the order of the graph.
///
/// Where the plan in that order takes much longer than the graph, the order of least peak is looked
/// for, and then reruns within it. What follows takes turns: the runs that a plan has are put into
/// an order that needs less (run_order.hpp), so that some of its reruns are not needed, as long as
/// that pays. What has to be there at the end may be made again behind all first runs.
#pragma once

#include "policy/remat/graph/search/rerun_search.hpp"
#include "policy/remat/graph/search/run_order.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace plimsoll {

struct RerunSequence {
  std::vector<std::uint32_t> computations;
  std::int64_t time = 0;  ///< of reruns, in ps
};

class FreeOrderSearch {
 public:
  /// `work` must outlive the search. Precondition: `graph` is plain.
  FreeOrderSearch(const OperatorGraph& graph, const RerunSearchOptions& options, const Work& work);

  /// A plan within `room`; nothing where none is found. No plan in the order of the graph takes less
  /// than `least`, ps of reruns; nothing: there is none.
  [[nodiscard]] std::optional<RerunSequence> run(std::int64_t room,
                                                 std::optional<std::int64_t> least);

  /// A room above `too_little` within which run() finds a plan.
  [[nodiscard]] std::int64_t least_room(std::int64_t too_little);

 private:
  /// A graph and its numbering, in which reruns are searched for.
  struct Numbered {
    Numbered(const OperatorGraph& of, std::span<const std::uint32_t> computations);
    [[nodiscard]] RerunSequence sequence_of(const StagedSchedule& plan) const;

    RenumberedGraph numbered;
    RerunGroups groups;
  };

  [[nodiscard]] std::optional<RerunSequence> in_any_order(std::int64_t room,
                                                          std::optional<std::int64_t> least);
  [[nodiscard]] std::optional<RerunSequence> in_given_order(std::int64_t room,
                                                            std::int64_t least) const;
  [[nodiscard]] std::optional<RerunSequence> in_other_order(std::int64_t room) const;
  [[nodiscard]] std::optional<std::int64_t> first_time(const OperatorGraph& graph,
                                                       const RerunGroups& groups,
                                                       std::int64_t room) const;
  [[nodiscard]] RerunSearchOptions short_options() const;
  void look_for_order();
  [[nodiscard]] bool improve(RerunSequence& best, std::span<const std::uint32_t> computations,
                             std::int64_t room, RerunSearchOptions options) const;
  void take_turns(RerunSequence& best, std::int64_t room) const;

  const std::size_t nodes_;    ///< of the given graph
  const OperatorGraph graph_;  ///< with_final_reader()
  const RerunGroups groups_;
  const RerunSearchOptions options_;
  const Work& work_;
  const std::int64_t enough_;  ///< ps of reruns for which no other order is looked for
  bool has_looked_ = false;
  std::optional<Numbered> other_;  ///< in the order of less memory, if one is found
};

}  // namespace plimsoll
