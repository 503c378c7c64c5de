/// A staged plan of a graph that changes step by step, and what it needs.
///
/// Stage t is the stretch that ends with the first run of node t; the nodes of a stage run in the
/// order of the graph. So a plan is a set of reruns, pairs of a stage and a group, and every set is
/// a plan: what is not run again is read from the run before, which lives longer (Jain et al. 2020,
/// "Checkmate: Breaking the Memory Wall with Optimal Tensor Rematerialization", MLSys,
/// arXiv:1910.02653, section 3). A value may also come back from another memory at the start of a
/// stage, in the place of a rerun of its maker; it needs nothing but room then. A change is
/// evaluated from the copies whose lives it changes, and the steps that they span.
#pragma once

#include "policy/graph/rerun_groups.hpp"

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace plimsoll {

struct Rerun {
  std::uint32_t stage = 0, group = 0;
  auto operator<=>(const Rerun&) const = default;
};

/// What a change of a plan changes.
struct RerunEffect {
  std::int64_t excess = 0;  ///< bytes above the room, summed over all steps
  std::int64_t time = 0;    ///< ps
};

class StagedSchedule {
 public:
  /// Of a step: its stage, then its node.
  using Key = std::uint64_t;
  static constexpr Key key(std::uint32_t stage, std::uint32_t node) {
    return Key{stage} << 32 | node;
  }
  static constexpr std::uint32_t stage_of(Key key) { return static_cast<std::uint32_t>(key >> 32); }
  static constexpr std::uint32_t node_of(Key key) { return static_cast<std::uint32_t>(key); }

  /// What made a copy of a value: the run of its maker in a stage, or its return at the start.
  struct Source {
    std::uint32_t stage = 0;
    bool is_return = false;
  };

  /// A value that is there before a step and read after it, or stays.
  struct Carried {
    std::uint32_t value = 0;
    Key next_use = 0;
  };

  /// Runs every node once. `room` is what steps may need, in bytes, beside what is resident. Both
  /// arguments must outlive the schedule. O(nodes + reads).
  StagedSchedule(const OperatorGraph& graph, const RerunGroups& groups, std::int64_t room);

  [[nodiscard]] std::int64_t excess() const { return excess_; }
  [[nodiscard]] std::int64_t time() const { return time_; }  ///< of reruns
  [[nodiscard]] std::int64_t peak() const;                   ///< bytes
  [[nodiscard]] std::int64_t room() const { return room_; }
  /// Positions of steps, ascending in time. O(steps).
  [[nodiscard]] std::uint32_t highest_step() const;
  [[nodiscard]] std::vector<std::uint32_t> steps_above_room() const;
  /// One of them, chosen by a number. Precondition: there is one.
  [[nodiscard]] std::uint32_t step_above_room(std::uint64_t number) const;
  [[nodiscard]] std::int64_t above_room(std::uint32_t position) const { return over_[position]; }
  [[nodiscard]] Key key_at(std::uint32_t position) const;
  /// Of a step that is there. O(log steps).
  [[nodiscard]] std::uint32_t position_of(Key key) const { return first_from(key); }
  [[nodiscard]] std::size_t steps() const { return nodes_.size(); }

  [[nodiscard]] bool has(const Rerun& rerun) const;
  /// Stages in which the group runs again, ascending.
  [[nodiscard]] std::span<const std::uint32_t> stages_of(std::uint32_t group) const {
    return reruns_[group];
  }
  [[nodiscard]] std::vector<Rerun> all() const;  ///< by group, then by stage
  /// Whether the group may run again there: all of it has run, and none of it only once. Not in the
  /// stage after values are let go together (OperatorGraph::Value::held_until), nor where one of its
  /// values returns. A value may return where its maker does not run.
  [[nodiscard]] bool may_run(const Rerun& rerun) const;

  /// The next use of the copy of a value that is there before a step, if it is read after it and
  /// can come back; of what stays and is not read any more, the last step. O(readers log reruns).
  [[nodiscard]] std::optional<Key> next_use(std::uint32_t value, Key after) const;
  /// Who is carried across the step. O(values + reads).
  [[nodiscard]] std::vector<Carried> carried_across(Key step) const;
  /// What made the copy of a value that a step reads. Precondition: its maker has run before.
  [[nodiscard]] Source latest_source(std::uint32_t value, Key before) const;
  /// When that was: the step, or between the stage and the one before.
  [[nodiscard]] Key made_at(std::uint32_t value, const Source& source) const {
    if (source.is_return)
      return key(source.stage - 1, static_cast<std::uint32_t>(graph_->nodes.size()));
    return key(source.stage, graph_->values[value].maker);
  }
  /// The last use of that copy; made_at() where there is none.
  [[nodiscard]] Key last_use(std::uint32_t value, const Source& source) const;

  /// What a change of reruns would change. O(d (reads of the nodes + steps that they span)) for d
  /// reruns. Preconditions: may_run(), none of the added is there, all of the removed are.
  [[nodiscard]] RerunEffect effect_of(std::span<const Rerun> removed, std::span<const Rerun> added);
  [[nodiscard]] RerunEffect effect_of_adding(std::span<const Rerun> added) {
    return effect_of({}, added);
  }
  [[nodiscard]] RerunEffect effect_of_removing(const Rerun& removed) {
    return effect_of({&removed, 1}, {});
  }
  /// O(steps). Preconditions as above.
  void change(std::span<const Rerun> removed, std::span<const Rerun> added);
  /// The same, in less time. Precondition: effect_of() was the last call, for the same change.
  void take(std::span<const Rerun> removed, std::span<const Rerun> added);
  void add(std::span<const Rerun> added) { change({}, added); }
  void remove(const Rerun& removed) { change({&removed, 1}, {}); }

  [[nodiscard]] std::vector<std::uint32_t> computations() const { return nodes_; }

 private:
  /// Bytes that are there from the start of one step to the end of another.
  struct Stay {
    Key first = 0, last = 0;
    std::int64_t bytes = 0;
    bool is_carried_in = false;  ///< there before the first step already
  };
  static constexpr std::uint32_t kBlock = 64;

  [[nodiscard]] std::uint32_t first_from(Key key) const;
  [[nodiscard]] std::uint32_t next_run(std::uint32_t group, std::uint32_t after) const;
  [[nodiscard]] std::uint32_t next_copy(std::uint32_t value, std::uint32_t after) const;
  [[nodiscard]] std::uint32_t latest_run(std::uint32_t node, Key before) const;
  [[nodiscard]] bool comes_back(std::uint32_t value) const;
  [[nodiscard]] bool returns_in(std::uint32_t value, std::uint32_t stage) const;
  [[nodiscard]] std::uint32_t generator_of(std::uint32_t node) const;
  void note(std::uint32_t maker, std::uint32_t stage);
  void note_source(std::uint32_t value, Key before);
  void note_neighbours(const Rerun& rerun);
  void note_own(const Rerun& rerun);
  [[nodiscard]] bool is_there(std::uint32_t maker, std::uint32_t stage) const;
  void add_stays(std::uint32_t maker, std::uint32_t stage, std::vector<Stay>& stays) const;
  void add_stay_of_generator(std::uint32_t node, std::vector<Stay>& stays) const;
  void add_stays_of_run(std::uint32_t node, std::uint32_t stage, std::vector<Stay>& stays) const;
  void insert_runs(std::span<const Rerun> added);
  void erase_runs(std::span<const Rerun> removed);
  void add_difference(const Stay& before, const Stay& after);
  void difference(std::span<const Rerun> removed, std::span<const Rerun> added);
  [[nodiscard]] std::int64_t stays_at(Key key) const;
  [[nodiscard]] std::int64_t excess_change();
  [[nodiscard]] std::int64_t excess_between(std::uint32_t begin, std::uint32_t end,
                                            std::int64_t change) const;
  void make_change(std::span<const Rerun> removed, std::span<const Rerun> added);
  void apply_stays();
  void insert_steps(std::span<const Rerun> added);
  void erase_steps(const Rerun& removed);
  void summarize();

  const OperatorGraph* graph_;
  const RerunGroups* groups_;
  std::int64_t room_ = 0, excess_ = 0, time_ = 0;
  std::uint32_t closed_stage_ = OperatorGraph::kNone;
  std::vector<std::vector<std::uint32_t>> reruns_;  ///< stages, by group
  // By step, in the order of the plan:
  std::vector<std::uint32_t> nodes_;
  std::vector<std::int64_t> over_;          ///< bytes above the room; below it where negative
  std::vector<std::int64_t> carried_;       ///< bytes after the step
  std::vector<std::uint32_t> stage_begin_;  ///< step, by stage, and the end
  // By kBlock steps:
  std::vector<std::int64_t> block_most_;    ///< of over_
  std::vector<std::int64_t> block_excess_;  ///< the sum of what is above the room
  // Of the change that is looked at:
  /// Runs and returns: node, or the number of nodes and value; stage. Or what keeps the state of a
  /// generator, and its node.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> touched_;
  std::vector<Stay> before_, after_;                             ///< what the touched leave
  std::vector<Stay> stays_;                                      ///< what comes, and goes
  std::vector<std::pair<std::uint32_t, std::int64_t>> changes_;  ///< of bytes, from a step on
  std::uint32_t changed_from_ = 0;  ///< steps before it have the bytes that they had
};

}  // namespace plimsoll
