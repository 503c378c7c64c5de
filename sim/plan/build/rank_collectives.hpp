/// The collectives of ranks beside their steps: of operators, and of gradients and parameters in buckets.
#pragma once

#include "plan/build/collective_choice.hpp"
#include "plan/build/gradient_buckets.hpp"
#include "plan/build/ranked_plan.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

/// What a collective of ranks moves: it reduces what it changes in place, gathers what it makes, and
/// scatters or hands out what it reads. Precondition: the operator is one.
[[nodiscard]] TensorList moved_by(const Operator& collective);

class RankCollectives {
 public:
  /// `plan` must outlive it.
  explicit RankCollectives(RankedPlan& plan)
      : plan_(plan),
        choice_(plan.spreading, plan.platform),
        collectives_(plan.own_collectives * plan.played) {}

  /// Where the step of the plan of one runs a collective of ranks, that of all groups. Precondition: its
  /// steps are the last that were added. O(rounds x members).
  void add_of(StepId of_one);
  /// Likewise.
  void add_of(const GradientBucket& bucket);

 private:
  /// A reduce-scatter that came before, or none.
  struct Scatter {
    std::vector<RankLevel> levels;
    AllReduce algorithm = AllReduce::ring;
  };

  /// A group of ranks for a collective. A member is one of them by its place; what they hold is by place among
  /// those that are played.
  struct Group {
    std::vector<std::uint32_t> ranks;   ///< of all members
    std::vector<std::uint32_t> played;  ///< members
    std::vector<std::uint32_t> like;  ///< by member: the place of the played one that does the same
    std::vector<std::vector<BufferId>> buffers;  ///< of those that are played
    /// Likewise, where they change others than they send; else none.
    std::vector<std::vector<BufferId>> into;
    std::vector<std::vector<StepId>> before;  ///< likewise: what they wait for
    MemoryId memory{};                        ///< of the first rank
    std::vector<std::uint32_t> levels;        ///< of collectives (sends_in_levels())
    std::uint32_t form = 0;                   ///< in SpreadPlan::forms
    RankPart share;                           ///< of the buffers: what is moved
    OperatorId op = kNoOperator;              ///< that is the collective, if one is
    std::uint32_t number = 0;                 ///< Reduction::collective
  };

  [[nodiscard]] std::vector<BufferId> that_hold(const Step& step, TensorList tensors) const;
  [[nodiscard]] Bytes bytes_of(std::span<const BufferId> buffers) const;
  void add_collective(const Collective& collective, OperatorId op, MemoryId where,
                      const std::vector<BufferId>& moved, const std::vector<BufferId>& made,
                      const std::vector<StepId>& before, const Scatter& scatter);
  void add_members(Group& group, const std::vector<BufferId>& moved,
                   const std::vector<BufferId>& made, const std::vector<StepId>& before,
                   bool passes) const;
  void note_form(const TakenForm& form);
  std::uint32_t form_of(const Collective& collective, MemoryId where, Bytes bytes);
  /// Joined, where one rank is played and rounds may be.
  [[nodiscard]] std::vector<CollectiveSend> sends_of_member(const Group& group, CollectiveKind kind,
                                                            std::uint32_t member) const;
  [[nodiscard]] std::vector<CollectiveSend> joined(std::vector<CollectiveSend> sends) const;
  /// By place among the members that are played: the steps that end a collective there.
  using Ends = std::vector<std::vector<StepId>>;
  class Sends;
  Ends add_rounds(const Group& group, CollectiveKind kind);
  StepId add_round(const Group& group, Sends& sends, std::uint32_t member, std::uint32_t round,
                   std::span<const StepId> waits);
  [[nodiscard]] Lane way_of(const Group& group, Sends& sends, std::uint32_t member,
                            std::uint32_t round);

  RankedPlan& plan_;
  CollectiveChoice choice_;
  std::uint32_t collectives_;  ///< so far
};

}  // namespace plimsoll
