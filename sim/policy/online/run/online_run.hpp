/// Runs a program under an online policy, and writes down what happens as a plan.
///
/// To run an operator, first or again: what it reads is wanted and locked; what is missing of that is
/// made again, by the same rule; room is made for its outputs and workspace; it runs; what was there
/// already is there twice until its end; its outputs become candidates, and then what it read. An operator whose group has several runs again among them,
/// and what they make stays locked until the last has run.
///
/// What the program no longer reads is released as OnRelease says. What cannot be made again goes
/// for good as soon as nothing can need it: neither the program nor an operator that may have to
/// run again.
///
/// A random operator whose group may run again cannot know whether it will: it keeps the state of its
/// generator from its first run on, until nothing can need what the group makes.
///
/// Where an operator finds no room, and the policy names no steps, the run is out of memory. The
/// plan then goes on as if there were room, so that the engine ends at that operator.
#pragma once

#include "plan/build/plan_builder.hpp"
#include "policy/online/run/online_policy.hpp"
#include "policy/online/run/remakes.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

/// What becomes of a storage that the program no longer reads.
enum class OnRelease : std::uint8_t {
  evict,   ///< released at once; it can be made again
  ignore,  ///< nothing: it is a candidate like others
  banish  ///< gone for good once no absent storage depends on it; what depends on it is locked then
};

struct OnlineOptions {
  OnRelease on_release = OnRelease::evict;
  /// Before something is made again, all that this takes is locked; what only that needs goes right
  /// after its last use in it.
  bool drops_intermediates = false;
  Masks masks = Masks::remake;
  DecisionOverhead overhead;  ///< lengthens the operators that are issued
  Bytes capacity;             ///< of the pool
  Bytes alignment;            ///< of its arena; 0 B: bytes are counted
  PoolLayout layout;          ///< of its arena; where it is divided, the plan says what lies where
  /// The run ends when reruns have taken more than so often the time of all operators, or are more
  /// than so often their number.
  std::int64_t recompute_limit = 10;
};

/// A program that has run.
struct OnlineRecord {
  Plan plan;  ///< with what was evicted, without other claims
  bool is_out_of_memory = false;
  bool thrashes = false;  ///< the limit was reached; there is no plan
};

class OnlineRun {
 public:
  /// `graph` is that of `problem` on `processor`. All must outlive it.
  OnlineRun(const Problem& problem, ProcessorId processor, const StorageGraph& graph,
            OnlinePolicy& policy, const OnlineOptions& options, const std::string& name);

  /// Once. O(runs of operators (reads + what the policy does)).
  [[nodiscard]] OnlineRecord run();

 private:
  static constexpr std::uint32_t kNone = StorageGraph::kNone;

  /// Operators that run one after the other: one of the program, or a group that runs again.
  struct Frame {
    std::span<const std::uint32_t> nodes;
    bool is_first = false;
    bool is_entered = false;        ///< what its operator reads is locked
    std::size_t at = 0;             ///< in `nodes`
    std::size_t missing_begin = 0;  ///< in missing_
    std::size_t next_missing = 0;
  };

  void place_resident();
  void run_program(std::uint32_t node);
  void make_referenced_present();
  void play(std::span<const std::uint32_t> nodes, bool is_first);
  void advance();
  void enter(Frame& frame);
  [[nodiscard]] bool is_complete(Frame& frame);
  void execute(Frame& frame);
  void record(std::uint32_t node, bool is_first);
  void record_places(std::uint32_t node, bool is_first, StepId step);
  void record_resident_places(Plan& plan) const;
  [[nodiscard]] std::optional<Time> duration_with_decisions(std::uint32_t node);
  void take_over(std::uint32_t node, bool is_first);
  void finish_outputs(const Frame& frame);
  void unlock_reads(std::uint32_t node);

  [[nodiscard]] std::span<const std::uint32_t> makes(std::uint32_t node, bool is_first) const;
  void make_room(std::uint32_t node, bool is_first);
  [[nodiscard]] bool try_to_place(std::uint32_t node, bool is_first);
  [[nodiscard]] Bytes kept_state(std::uint32_t node, bool is_first) const;
  void keep_state(std::uint32_t node);
  void drop_states(std::uint32_t group);
  void take_back();
  void evict(std::uint32_t storage);
  void run_out_of_memory();

  void drop(std::uint32_t storage, OnlineView::Place into);
  void end_reference(std::uint32_t storage);
  void end_holds(std::uint32_t node);
  void want_less(std::uint32_t storage);
  void drop_unwanted();
  void banish_pending();

  void plan_chain(std::uint32_t node);
  void end_chain_use(std::uint32_t group);
  void drop_if_intermediate(std::uint32_t storage);

  void hold(std::uint32_t storage, std::uint32_t step);
  [[nodiscard]] EvictionClaims counters() const;

  const Problem& problem_;
  const StorageGraph& graph_;
  OnlinePool pool_;
  OnlinePolicy& policy_;
  const OnlineOptions options_;
  const Remakes remakes_;
  OnlineView view_;
  PlanBuilder builder_;
  const LaneId stream_;
  const MemoryId memory_;

  std::vector<Frame> frames_;
  std::vector<std::uint32_t> missing_;  ///< storages, of all frames
  std::uint32_t steps_ = 0;
  std::int64_t reruns_ = 0, rerun_time_ = 0;  ///< ps
  std::int64_t evaluations_ = 0;              ///< that an operator has been lengthened by
  bool is_lifted_ = false;                    ///< out of memory: nothing limits any more
  bool thrashes_ = false;

  // By storage:
  std::vector<bool> is_referenced_;   ///< by the program
  std::vector<bool> is_gone_;         ///< for good, even if a group makes it once more
  std::vector<std::uint32_t> wants_;  ///< the program, and storages that may be made from it
  std::vector<OnlinePool::Taken> taken_;
  std::vector<OnlinePool::Taken> resident_;  ///< as many of StorageGraph::resident as found place
  std::vector<std::uint32_t> chain_uses_;    ///< by groups that are about to run again
  std::vector<bool> is_chain_locked_;

  std::vector<std::vector<std::uint32_t>> released_after_;  ///< storages, by node
  std::vector<std::uint32_t> held_;                         ///< storages
  std::vector<std::uint32_t> unwanted_, banishing_;         ///< to be looked at
  std::vector<bool> is_in_chain_;                           ///< by group
  /// Of a random operator that has run, while it keeps the state of its generator.
  struct State {
    StepId first{};
    OnlinePool::Taken taken;
    std::optional<Bytes> offset;
  };
  std::vector<std::optional<State>> states_;  ///< by node
  std::vector<std::uint32_t> remade_;  ///< by group: what it may have to make again, until unwanted
  // Of the operator that runs:
  std::vector<OnlinePool::Taken> asked_;  ///< outputs, a state that it keeps, then the workspace
  std::vector<std::uint32_t> made_;

  EvictionClaims counted_;
  std::int64_t allocations_that_evicted_ = 0;
  std::int64_t free_share_ = 0;  ///< parts of kWhole, summed over these
};

}  // namespace plimsoll
