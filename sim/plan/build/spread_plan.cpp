#include "plan/build/spread_plan.hpp"

#include "base/dense_id.hpp"
#include "plan/build/gradient_buckets.hpp"
#include "plan/build/rank_collectives.hpp"
#include "plan/build/state_moves.hpp"

#include <map>
#include <optional>
#include <utility>

namespace plimsoll {
namespace {

class Spreader {
 public:
  Spreader(const Plan& plan, const Workload& workload, const Platform& platform,
           const Topology& topology, const Spreading& spreading, const PlayedRanks& ranks)
      : buckets_(buckets_of(plan, workload, spreading)),
        plan_(plan, workload, platform, topology, spreading, ranks),
        collectives_(plan_) {
    if (!spreading.homes.empty()) state_.emplace(plan_);
  }

  SpreadPlan run() {
    std::size_t next = 0;
    for (std::uint32_t s = 0; s < plan_.of_one.steps.size(); ++s) {
      for (std::uint32_t rank = 0; rank < plan_.played; ++rank) {
        add_step(s, rank);
        if (state_ && moves_state(plan_.collective_kind(plan_.of_one.steps[s])))
          state_->add_moves(StepId{s}, rank);
      }
      collectives_.add_of(StepId{s});
      for (; next < buckets_.size() && index(buckets_[next].after_step) == s; ++next)
        collectives_.add_of(buckets_[next]);
    }
    add_releases();
    return std::move(plan_.result);
  }

 private:
  void wait_for_ends(BufferId id, std::vector<Dependency>& after) const {
    for (const StepId on : plan_.open[index(id)])
      after.push_back({on, Dependency::Edge::after_end});
  }

  /// But that of a scatter whose sum the one before has not changed yet: their moves follow each
  /// other, and the processor goes on.
  void wait_for_rounds(const Step& of_one, std::span<const BufferId> buffers,
                       std::vector<Dependency>& after) const {
    const bool scatters =
        of_one.kind == StepKind::compute &&
        plan_.workload[of_one.op].collective.kind == CollectiveKind::reduce_scatter;
    for (const BufferId id : buffers)
      if (!scatters || !plan_.is_summed_up(plan_.result.plan[id].tensor)) wait_for_ends(id, after);
  }

  /// Until the gradients have left that left with a step.
  void wait_for_take(StepId of_one, std::uint32_t rank, std::vector<Dependency>& after) const {
    for (const BufferId id : plan_.of_rank(plan_.of_one.list(plan_.of_one[of_one].reads), rank))
      if (!plan_.is_summed_up(plan_.result.plan[id].tensor)) wait_for_ends(id, after);
  }

  /// Gradients of a unit leave once those of the one before have left, and the processor waits for that:
  /// so those of two units are whole at most, as with FSDP2, or in the two buckets of DeepSpeed. Where
  /// nothing overlaps, what follows the last scatter of a microbatch waits for that as well.
  void wait_for_takes(std::uint32_t s, std::uint32_t rank, std::vector<Dependency>& after) {
    const Step& of_one = plan_.of_one.steps[s];
    if (of_one.kind != StepKind::compute) return;
    const bool takes = takes_gradients(plan_.workload[of_one.op]);
    if (!takes && plan_.spreading.overlap) return;
    const std::pair key(of_one.lane,
                        takes ? plan_.collective_kind(of_one) : CollectiveKind::reduce_scatter);
    const auto last = last_take_.find(key);
    if (last != last_take_.end()) wait_for_take(last->second, rank, after);
    if (rank + 1 < plan_.played) return;
    if (takes)
      last_take_[key] = StepId{s};
    else
      last_take_.erase(key);
  }

  void add_step(std::uint32_t s, std::uint32_t rank) {
    const Step& of_one = plan_.of_one.steps[s];
    Step it = of_one;
    it.lane = plan_.lane(it.lane, rank);
    it.microbatch = it.microbatch * plan_.played + rank;
    it.second_microbatch = it.second_microbatch * plan_.played + rank;
    plan_.set_of_rank(plan_.of_one.list(of_one.reads), rank, used_.reads);
    plan_.set_of_rank(plan_.of_one.list(of_one.writes), rank, used_.writes);
    after_.clear();
    for (const Dependency& dependency : plan_.of_one.after(of_one))
      after_.push_back({plan_.step(dependency.on, rank), dependency.edge});
    if (state_) state_->begin(s, rank, it, used_, after_);
    it.reads = plan_.add_list(used_.reads);
    it.writes = plan_.add_list(used_.writes);
    wait_for_rounds(of_one, used_.reads, after_);
    wait_for_takes(s, rank, after_);
    if (it.kind == StepKind::reduce) it.reduction = add_reduction(of_one.reduction, rank);
    const StepId added = plan_.push(it, after_);
    plan_.steps.push_back(added);
    if (it.kind == StepKind::copy)
      for (const BufferId id : used_.reads) plan_.copies[index(id)].push_back(added);
    if (state_)
      for (const auto* buffers : {&used_.reads, &used_.writes}) state_->note_users(added, *buffers);
  }

  std::uint32_t add_reduction(std::uint32_t of_one, std::uint32_t rank) {
    auto& reductions = plan_.result.plan.reductions;
    Reduction& it = reductions.emplace_back(plan_.of_one.reductions[of_one]);
    if (it.collective > 0) it.collective += rank * plan_.own_collectives;
    return static_cast<std::uint32_t>(reductions.size() - 1);
  }

  void add_releases() {
    Plan& plan = plan_.result.plan;
    for (std::uint32_t rank = 0; rank < plan_.played; ++rank)
      for (const Release& release : plan_.of_one.releases) {
        const BufferId id = plan_.buffer(release.buffer, rank);
        if (state_ && state_->is_room_for_gradient(id)) continue;
        const auto from = static_cast<std::uint32_t>(plan.release_steps.size());
        for (const StepId on : plan_.of_one.after(release))
          plan.release_steps.push_back(plan_.step(on, rank));
        plan.release_steps.insert(plan.release_steps.end(), plan_.rounds[index(id)].begin(),
                                  plan_.rounds[index(id)].end());
        if (state_) state_->add_users_since(from, id);
        plan.releases.push_back(
            {id, {from, static_cast<std::uint32_t>(plan.release_steps.size())}});
      }
  }

  const std::vector<GradientBucket> buckets_;
  RankedPlan plan_;
  RankCollectives collectives_;
  /// By lane of the plan of one: its last step that lets gradients leave for ranks, or elsewhere.
  std::map<std::pair<LaneId, CollectiveKind>, StepId> last_take_;
  std::optional<StateMoves> state_;  ///< where state lives elsewhere
  StepBuffers used_;                 ///< by the step that is added
  std::vector<Dependency> after_;    ///< likewise: what it waits for
};

}  // namespace

SpreadPlan spread(const Plan& plan, const Workload& workload, const Platform& platform,
                  const Topology& topology, const Spreading& spreading, const PlayedRanks& ranks) {
  return Spreader(plan, workload, platform, topology, spreading, ranks).run();
}

std::uint64_t steps_of_all(const Plan& once, std::uint32_t ranks) {
  std::uint64_t steps = 0;
  for (const Step& step : once.steps)
    steps += step.kind == StepKind::reduce ? once.reductions[step.reduction].rounds : 1;
  return steps * ranks;
}

}  // namespace plimsoll
