/// Offload on a chain in numbers: what its planners compute with, and how long a sequence takes.
///
/// The model of offload_sequence.hpp with whole stages: forward i allocates what it leaves and its
/// workspace and needs saved_{i-1}; backward i allocates its gradient, its workspace and what it
/// leaves for good, needs saved_i and saved_{i-1}, and frees saved_i. On an abstract chain these
/// are the numbers of its file, and a play is what the engine measures; on a network they are those
/// of workload/chain/chain_costs.hpp, an upper bound of what it needs.
#pragma once

#include "policy/claims/grants.hpp"
#include "policy/offload/model/offload_sequence.hpp"

#include <optional>
#include <span>
#include <vector>

namespace plimsoll {

struct OffloadStage {
  Time forward, backward;
  Time out, in;    ///< copies of what the stage saves, one after the other
  Time moving;     ///< of `out`, the time in which bytes move, at its end
  Bytes moved;     ///< the saved tensors
  Bytes passing;   ///< what the forward leaves beyond them: until the next forward ends
  Bytes gradient;  ///< of the output
  Bytes forward_workspace, backward_workspace;
  Bytes lasting;  ///< left by the backward for good
};

struct OffloadModel {
  std::vector<OffloadStage> stages;
  std::size_t candidates = 0;  ///< the first so many stages may move
  Bytes resident;              ///< there throughout
  Bytes input_gradient;
  Bytes optimizer_workspace;
  Time optimizer;
  Bytes budget;
  /// What the storage holds at once; unlimited where it has room for all that may move.
  Bytes storage = Bytes::unlimited();
  ByteRate out_rate, in_rate;
  bool progressive = false;
  bool one_way = false;  ///< both channels share a link that serves one copy at a time
  Work work;             ///< where searches in this model count their steps

  [[nodiscard]] Time compute_time() const;
  [[nodiscard]] Bytes may_move() const;  ///< all that may move, in bytes
  /// What forward or backward `stage` needs beyond the saved tensors of stages 0..stage.
  [[nodiscard]] Bytes beside_forward(std::size_t stage) const;
  [[nodiscard]] Bytes beside_backward(std::size_t stage) const;  ///< O(stages - stage)
};

/// The model of a problem. O(operators + reads).
[[nodiscard]] OffloadModel offload_model(const Problem& problem, const OffloadMemories& memories,
                                         Bytes budget, SourceRelease release);

/// Whether every stage is one forward operator, one backward operator and at most one saved tensor:
/// an abstract chain whose backwards are not split.
[[nodiscard]] bool has_simple_stages(const Problem& problem);

/// By stage: whether it goes to storage.
using OffloadSet = std::vector<bool>;

/// All stages that may move and have something to move.
[[nodiscard]] OffloadSet everything(const OffloadModel& model);

/// The least budget under which some sequence of this set ends. O(stages).
[[nodiscard]] Bytes smallest_budget(const OffloadModel& model, const OffloadSet& set);

/// A sequence as it unfolds; a value that a search can branch on. Actions in issue order, as
/// plan_of() wants them; each returns false where it would wait for ever for room that no action
/// before it makes, a copy out for that in the storage. Bare forwards are none of this model's:
/// they return false.
class OffloadPlay {
 public:
  explicit OffloadPlay(const OffloadModel& model);

  bool forward();   ///< of the next stage
  bool backward();  ///< of the stage behind
  bool out(std::size_t stage);
  bool in(std::size_t stage);
  bool add(const OffloadAction& action);

  /// What backward() and in() change, so that one may try them and go back without a copy of every
  /// stage. A stage that came back in between must do so again before it is used.
  struct Mark {
    GrantLedger ledger, storage;
    std::size_t backwards;
    Moment stream_free, in_free;
  };
  [[nodiscard]] Mark mark() const {
    model_->work.add(ledger_.held() + storage_.held());
    return {ledger_, storage_, backwards_, stream_free_, in_free_};
  }
  void back_to(Mark mark);

  [[nodiscard]] Moment stream_free() const { return stream_free_; }
  [[nodiscard]] Moment out_free() const { return out_free_; }
  [[nodiscard]] Moment in_free() const { return in_free_; }
  [[nodiscard]] Moment last_grant() const { return ledger_.last_grant(); }
  /// When `stage` has left; the end of its copy while that is not sure.
  [[nodiscard]] Moment left(std::size_t stage) const;
  [[nodiscard]] Moment out_end(std::size_t stage) const { return stages_[stage].out_end; }
  [[nodiscard]] Moment back(std::size_t stage) const { return stages_[stage].in_end; }
  [[nodiscard]] std::size_t forwards() const { return forwards_; }
  /// The end of the step, the optimizer included; nothing where that has no room.
  [[nodiscard]] std::optional<Time> end();

 private:
  struct Stage {
    Moment forward_end, out_end, in_end;
    std::uint32_t release_id = 0;
    bool is_out = false;
  };

  bool compute(Bytes demand, Moment ready, Time duration);
  void free_source(std::size_t stage);
  [[nodiscard]] bool has_next_forward(std::size_t stage) const { return stage + 1 < forwards_; }

  const OffloadModel* model_;
  GrantLedger ledger_, storage_;
  std::vector<Stage> stages_;
  std::size_t forwards_ = 0, backwards_ = 0;
  Moment stream_free_, out_free_, in_free_;
};

/// How long the sequence takes; nothing where it cannot end. O(sequence log sequence), with
/// progressive release times the releases under way.
[[nodiscard]] std::optional<Time> play(const OffloadModel& model,
                                       std::span<const OffloadAction> sequence);

}  // namespace plimsoll
