#include "plan/build/rank_collectives.hpp"

#include "base/dense_id.hpp"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

namespace plimsoll {

namespace {

RankTurn turn_of(std::span<const std::uint32_t> ranks, const CollectiveSend& of_first) {
  const auto after_first = [&](std::uint32_t member) { return ranks[member] - ranks.front(); };
  return {after_first(of_first.to), after_first(of_first.from)};
}

}  // namespace

/// Of those that a step reads or writes, the ones that hold one of the tensors.
std::vector<BufferId> RankCollectives::that_hold(const Step& step, TensorList tensors) const {
  std::vector<BufferId> found;
  const auto wanted = plan_.workload.list(tensors);
  for (const Slice slice : {step.reads, step.writes})
    for (const BufferId id : plan_.of_one.list(slice))
      if (std::ranges::find(wanted, plan_.of_one[id].tensor) != wanted.end()) found.push_back(id);
  return found;
}

TensorList moved_by(const Operator& collective) {
  switch (collective.collective.kind) {
    case CollectiveKind::all_reduce:
      return collective.updates;
    case CollectiveKind::all_gather:
      return collective.kept;
    default:
      return collective.reads;
  }
}

void RankCollectives::add_of(StepId id) {
  const Step& step = plan_.of_one[id];
  if (step.kind != StepKind::compute) return;
  const Operator& op = plan_.workload[step.op];
  if (op.collective.kind == CollectiveKind::none || moves_state(op.collective.kind)) return;
  const CollectiveKind kind = op.collective.kind;
  const bool passes = is_pass(kind);
  const bool makes_others =
      passes || kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_to_all;
  std::vector<BufferId> moved = that_hold(step, moved_by(op)), made;
  const std::vector<StepId> before{id};
  const MemoryId where = plan_.platform[plan_.of_one[step.lane].processor].memory;
  // What it leaves, or adds to a sum, is there when it has ended.
  if (makes_others) {
    made = that_hold(step, op.kept);
    const auto is_sum = [&](BufferId held) {
      return plan_.is_summed_up(plan_.of_one[held].tensor);
    };
    std::ranges::copy_if(moved, std::back_inserter(made), is_sum);
    std::erase_if(moved, is_sum);
  }
  add_collective(op.collective, step.op, where, moved, made, before, {});
}

void RankCollectives::add_of(const GradientBucket& bucket) {
  add_collective(bucket.collective, kNoOperator, bucket.memory, bucket.buffers, {}, bucket.users,
                 {});
  if (bucket.collective.kind != CollectiveKind::reduce_scatter || !plan_.spreading.has_copies())
    return;
  const CollectiveForm& form =
      plan_.result.forms[form_of(bucket.collective, bucket.memory, bytes_of(bucket.buffers))];
  const Scatter scatter{levels_of(plan_.spreading.axes, bucket.collective, form), form.algorithm};
  add_collective({CollectiveKind::all_reduce, MeshAxis::replica}, kNoOperator, bucket.memory,
                 bucket.buffers, {}, bucket.users, scatter);
}

Bytes RankCollectives::bytes_of(std::span<const BufferId> buffers) const {
  Bytes bytes;
  for (const BufferId id : buffers) bytes += plan_.workload[plan_.of_one[id].tensor].bytes;
  return bytes;
}

/// Of all groups along its axes, or of that of the first rank: of the part that a scatter has left each,
/// or of all.
void RankCollectives::add_collective(const Collective& collective, OperatorId op, MemoryId where,
                                     const std::vector<BufferId>& moved,
                                     const std::vector<BufferId>& made,
                                     const std::vector<StepId>& before, const Scatter& scatter) {
  if (moved.empty()) return;
  const std::int64_t parts = part_left(0, scatter.levels, scatter.algorithm).of;
  const std::uint32_t form =
      form_of(collective, where, Bytes{(bytes_of(moved).count() + parts - 1) / parts});
  const std::vector<RankLevel> levels =
      levels_of(plan_.spreading.axes, collective, plan_.result.forms[form]);
  if (levels.empty()) return;
  note_form({collective.axis, plan_.result.forms[form]});
  const bool passes = is_pass(collective.kind);
  for (std::uint32_t played = 0; played < plan_.played; ++played) {
    const std::uint32_t rank = plan_.ranks.rank(played);
    if (!is_first(rank, levels)) continue;
    Group group{.ranks = members_of(rank, levels),
                .memory = where,
                .form = form,
                .share = part_left(rank, scatter.levels, scatter.algorithm),
                .op = op,
                .number = ++collectives_};
    for (const RankLevel& it : levels) group.levels.push_back(it.size);
    add_members(group, moved, made, before, passes);
    const Ends ends = add_rounds(group, collective.kind);
    for (std::uint32_t i = 0; i < ends.size(); ++i)
      for (const auto* held : {&moved, &made})
        if (!passes || held == &made)  // what is passed on can be read meanwhile
          for (const BufferId id :
               plan_.of_rank(*held, plan_.ranks.like(group.ranks[group.played[i]])))
            plan_.open[index(id)] = ends[i];
  }
}

/// Of those that are played: what they hold, and what they wait for.
void RankCollectives::add_members(Group& group, const std::vector<BufferId>& moved,
                                  const std::vector<BufferId>& made,
                                  const std::vector<StepId>& before, bool passes) const {
  const auto size = static_cast<std::uint32_t>(group.ranks.size());
  std::vector<std::uint32_t> place(
      plan_.played);  // among the members that are played, by rank of those
  for (std::uint32_t i = 0; i < size; ++i) {
    if (!plan_.ranks.is_played(group.ranks[i])) continue;
    const std::uint32_t member = plan_.ranks.like(group.ranks[i]);
    place[member] = static_cast<std::uint32_t>(group.played.size());
    group.played.push_back(i);
    group.buffers.push_back(plan_.of_rank(moved, member));
    if (passes) group.into.push_back(plan_.of_rank(made, member));
    auto& waits = group.before.emplace_back();
    for (const StepId on : before) waits.push_back(plan_.step(on, member));
    // What is added up changes where it is, so that copies of it must have ended.
    for (const auto& held : {group.buffers.back(), plan_.of_rank(made, member)})
      for (const BufferId id : held)
        for (const auto* others : {&plan_.open[index(id)], &plan_.copies[index(id)]})
          waits.insert(waits.end(), others->begin(), others->end());
  }
  for (const std::uint32_t rank : group.ranks) group.like.push_back(place[plan_.ranks.like(rank)]);
}

void RankCollectives::note_form(const TakenForm& form) {
  auto& taken = plan_.result.taken;
  if (std::ranges::find(taken, form) == taken.end()) taken.push_back(form);
}

/// In SpreadPlan::forms.
std::uint32_t RankCollectives::form_of(const Collective& collective, MemoryId where, Bytes bytes) {
  // What is passed on goes round, whatever reduces.
  const bool goes_round = is_pass(collective.kind) && plan_.spreading.algorithm == AllReduce::tree;
  if (plan_.spreading.chosen_on == nullptr && !goes_round) return 0;
  const CollectiveForm form =
      goes_round ? CollectiveForm{} : choice_.of(collective, plan_.memories(where), bytes);
  auto& forms = plan_.result.forms;
  const auto known = std::ranges::find(forms, form);
  const auto place = static_cast<std::uint32_t>(known - forms.begin());
  if (known == forms.end()) forms.push_back(form);
  return place;
}

std::vector<CollectiveSend> RankCollectives::sends_of_member(const Group& group,
                                                             CollectiveKind kind,
                                                             std::uint32_t member) const {
  auto sends = sends_of(kind, plan_.result.forms[group.form].algorithm, group.levels, member);
  for (CollectiveSend& send : sends) {
    send.part.first += group.share.number * send.part.of;
    send.part.of *= group.share.of;
    send.part.op = group.op;
    send.part.collective = group.number;
  }
  return plan_.played == 1 ? joined(std::move(sends)) : sends;
}

/// Rounds that differ in nothing but in which part they move are one.
std::vector<CollectiveSend> RankCollectives::joined(std::vector<CollectiveSend> sends) const {
  if (!plan_.spreading.joins_rounds) return sends;
  std::vector<CollectiveSend> joined;
  for (const CollectiveSend& send : sends) {
    const bool goes_on = !joined.empty() && joined.back().to == send.to &&
                         joined.back().from == send.from &&
                         joined.back().part.count == send.part.count && send.part.opens == 0;
    if (goes_on)
      ++joined.back().part.rounds;
    else
      joined.push_back(send);
  }
  return joined;
}

/// What members send, worked out for each when it is first asked for.
class RankCollectives::Sends {
 public:
  Sends(const RankCollectives& collectives, const Group& group, CollectiveKind kind)
      : collectives_(collectives), group_(group), kind_(kind) {}

  const std::vector<CollectiveSend>& of(std::uint32_t member) {
    const auto [found, is_new] = of_.try_emplace(member);
    if (is_new) found->second = collectives_.sends_of_member(group_, kind_, member);
    return found->second;
  }

 private:
  const RankCollectives& collectives_;
  const Group& group_;
  const CollectiveKind kind_;
  std::unordered_map<std::uint32_t, std::vector<CollectiveSend>> of_;  ///< looked up only
};

/// From a member, by place, to whom it sends in a round. What leaves the replica stands for what comes into it.
Lane RankCollectives::way_of(const Group& group, Sends& sends, std::uint32_t member,
                             std::uint32_t round) {
  const auto memory = [&](std::uint32_t of) {
    return plan_.memories(group.memory)[group.ranks[of]];
  };
  const std::uint32_t from = group.played[member], to = sends.of(from)[round].to;
  const std::uint32_t like = group.played[group.like[to]];
  Lane way{Lane::Kind::channel, {}, 0, memory(from), memory(to), {}};
  if (like != to) way.image = {memory(sends.of(like)[round].from), memory(like)};
  way.stream = plan_.stream_of(way, turn_of(group.ranks, sends.of(group.played.front())[round]));
  if (plan_.ranks.are_all()) return way;
  const auto played = [&](std::uint32_t of) {
    return plan_.memory(group.memory, plan_.ranks.like(group.ranks[of]));
  };
  plan_.note_way({played(from), played(to), plan_.ranks.replica(group.ranks[to]), group.form});
  return way;
}

StepId RankCollectives::add_round(const Group& group, Sends& sends, std::uint32_t member,
                                  std::uint32_t round, std::span<const StepId> waits) {
  const CollectiveSend& send = sends.of(group.played[member])[round];
  const std::uint32_t like = group.like[send.to];
  const Lane way = way_of(group, sends, member, round);
  const auto& changed = (group.into.empty() ? group.buffers : group.into)[like];
  if (way.comes_back()) {
    const StepId id = plan_.add_round(way, changed, send.part, waits);
    if (!group.into.empty())
      for (const BufferId sent : group.buffers[member]) plan_.rounds[index(sent)].push_back(id);
    return id;
  }
  Reduction part = send.part;
  if (way.image) part.brings = sends.of(sends.of(group.played[like])[round].from)[round].part.first;
  std::vector<BufferId> buffers = group.buffers[member];
  buffers.insert(buffers.end(), changed.begin(), changed.end());
  return plan_.add_round(way, buffers, part, waits);
}

RankCollectives::Ends RankCollectives::add_rounds(const Group& group, CollectiveKind kind) {
  const auto n = static_cast<std::uint32_t>(group.played.size());
  Sends sends(*this, group, kind);
  const auto sender = [&](std::uint32_t member, std::size_t round) {
    return group.like[sends.of(group.played[member])[round].from];
  };
  const std::size_t rounds = sends.of(group.played.front()).size();
  std::vector<StepId> before(n), now(n), waits;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::uint32_t to = group.like[sends.of(group.played[i])[round].to];
      if (round == 0) {
        waits = group.before[i];
        waits.insert(waits.end(), group.before[to].begin(), group.before[to].end());
      } else {
        waits = {before[i], before[sender(i, round - 1)], before[sender(to, round - 1)]};
      }
      now[i] = add_round(group, sends, i, round, waits);
    }
    before = now;
  }
  Ends ends;
  for (std::uint32_t i = 0; i < n; ++i) ends.push_back({before[i], before[sender(i, rounds - 1)]});
  return ends;
}

}  // namespace plimsoll
