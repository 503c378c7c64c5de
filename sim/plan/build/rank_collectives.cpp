#include "plan/build/rank_collectives.hpp"

#include "base/dense_id.hpp"

#include <algorithm>
#include <iterator>

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
  for (std::uint32_t rank = 0; rank < plan_.played; ++rank) {
    if (!is_first(rank, levels)) continue;
    Group group{.ranks = members_of(rank, levels),
                .memory = where,
                .form = form,
                .share = part_left(rank, scatter.levels, scatter.algorithm),
                .op = op,
                .number = ++collectives_};
    for (const RankLevel& it : levels) group.levels.push_back(it.size);
    add_members(group, moved, made, before, passes);
    const auto ends = plan_.plays_one ? add_rounds_of_one(group, collective.kind)
                                      : add_rounds_of_all(group, collective.kind);
    for (std::uint32_t i = 0; i < ends.size(); ++i)
      for (const auto* held : {&moved, &made})
        if (!passes || held == &made)  // what is passed on can be read meanwhile
          for (const BufferId id : plan_.of_rank(*held, group.ranks[i]))
            plan_.open[index(id)] = ends[i];
  }
}

/// Of those that are played: what they hold, and what they wait for.
void RankCollectives::add_members(Group& group, const std::vector<BufferId>& moved,
                                  const std::vector<BufferId>& made,
                                  const std::vector<StepId>& before, bool passes) const {
  const auto size = static_cast<std::uint32_t>(group.ranks.size());
  for (std::uint32_t i = 0; i < (plan_.plays_one ? 1 : size); ++i) {
    const std::uint32_t member = group.ranks[i];
    group.buffers.push_back(plan_.of_rank(moved, member));
    if (passes) group.into.push_back(plan_.of_rank(made, member));
    auto& waits = group.before.emplace_back();
    for (const StepId on : before) waits.push_back(plan_.step(on, member));
    for (const auto& held : {group.buffers.back(), plan_.of_rank(made, member)})
      for (const BufferId id : held)
        waits.insert(waits.end(), plan_.open[index(id)].begin(), plan_.open[index(id)].end());
  }
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
  return sends;
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

std::vector<std::vector<StepId>> RankCollectives::add_rounds_of_one(const Group& group,
                                                                    CollectiveKind kind) {
  std::vector<StepId> waits = group.before.front();
  for (const CollectiveSend& send : joined(sends_of_member(group, kind, 0))) {
    const Lane way{Lane::Kind::channel,
                   {},
                   0,
                   group.memory,
                   plan_.memory(group.memory, group.ranks[send.to]),
                   plan_.memory(group.memory, group.ranks[send.from])};
    plan_.note_way(group.memory, group.memory, group.ranks[send.to], group.form);
    const auto& changed = group.into.empty() ? group.buffers : group.into;
    waits = {plan_.add_round(way, changed.front(), send.part, waits)};
    if (!group.into.empty())
      for (const BufferId sent : group.buffers.front())
        plan_.rounds[index(sent)].push_back(waits.front());
  }
  return {waits};
}

std::vector<std::vector<StepId>> RankCollectives::add_rounds_of_all(const Group& group,
                                                                    CollectiveKind kind) {
  const auto n = static_cast<std::uint32_t>(group.ranks.size());
  std::vector<std::vector<CollectiveSend>> sends;
  for (std::uint32_t i = 0; i < n; ++i) sends.push_back(sends_of_member(group, kind, i));
  std::vector<StepId> before(n), now(n), waits;
  for (std::size_t round = 0; round < sends.front().size(); ++round) {
    const RankTurn turn = turn_of(group.ranks, sends.front()[round]);
    for (std::uint32_t i = 0; i < n; ++i) {
      const CollectiveSend& send = sends[i][round];
      if (round == 0) {
        waits = group.before[i];
        waits.insert(waits.end(), group.before[send.to].begin(), group.before[send.to].end());
      } else {
        waits = {before[i], before[sends[i][round - 1].from],
                 before[sends[send.to][round - 1].from]};
      }
      const MemoryId from = plan_.memory(group.memory, group.ranks[i]);
      const MemoryId to = plan_.memory(group.memory, group.ranks[send.to]);
      const Lane way{Lane::Kind::channel, {}, plan_.stream_of({from, to}, turn), from, to, {}};
      std::vector<BufferId> buffers = group.buffers[i];
      const auto& changed = (group.into.empty() ? group.buffers : group.into)[send.to];
      buffers.insert(buffers.end(), changed.begin(), changed.end());
      now[i] = plan_.add_round(way, buffers, send.part, waits);
    }
    before = now;
  }
  std::vector<std::vector<StepId>> ends;
  for (std::uint32_t i = 0; i < n; ++i) ends.push_back({before[i], before[sends[i].back().from]});
  return ends;
}

}  // namespace plimsoll
