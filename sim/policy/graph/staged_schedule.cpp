#include "policy/graph/staged_schedule.hpp"

#include "policy/graph/computations.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace plimsoll {

StagedSchedule::StagedSchedule(const OperatorGraph& graph, const RerunGroups& groups,
                               std::int64_t room)
    : graph_(&graph), groups_(&groups), room_(room), reruns_(groups.groups.size()) {
  for (const OperatorGraph::Value& value : graph.values)
    if (value.held_until != OperatorGraph::kNone) closed_stage_ = value.held_until + 1;
  nodes_ = all_once(graph);
  over_.assign(nodes_.size(), -room);
  carried_.assign(nodes_.size(), 0);
  for (std::uint32_t node = 0; node <= nodes_.size(); ++node) stage_begin_.push_back(node);
  for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
    over_[node] += graph.nodes[node].workspace.count();
    add_stays(node, node, stays_);
  }
  apply_stays();
  summarize();
}

std::int64_t StagedSchedule::peak() const {
  return nodes_.empty() ? 0 : over_[highest_step()] + room_;
}

std::uint32_t StagedSchedule::highest_step() const {
  return static_cast<std::uint32_t>(std::ranges::max_element(over_) - over_.begin());
}

std::vector<std::uint32_t> StagedSchedule::steps_above_room() const {
  std::vector<std::uint32_t> above;
  for (std::uint32_t block = 0; block < block_most_.size(); ++block) {
    if (block_most_[block] <= 0) continue;
    const auto end = std::min<std::size_t>(over_.size(), std::size_t{block + 1} * kBlock);
    for (std::uint32_t i = block * kBlock; i < end; ++i)
      if (over_[i] > 0) above.push_back(i);
  }
  return above;
}

std::uint32_t StagedSchedule::step_above_room(std::uint64_t number) const {
  std::uint64_t blocks = 0;
  for (const std::int64_t most : block_most_) blocks += most > 0 ? 1 : 0;
  std::uint64_t skipped = number % blocks;
  std::uint32_t begin = 0;
  for (; block_most_[begin / kBlock] <= 0 || skipped > 0; begin += kBlock)
    if (block_most_[begin / kBlock] > 0) --skipped;
  const auto end = std::min<std::size_t>(over_.size(), std::size_t{begin} + kBlock);
  const auto from = begin + static_cast<std::uint32_t>(number / blocks % (end - begin));
  const auto is_above = [](std::int64_t over) { return over > 0; };
  const auto last = over_.begin() + static_cast<std::ptrdiff_t>(end);
  auto found = std::find_if(over_.begin() + from, last, is_above);
  if (found == last) found = std::find_if(over_.begin() + begin, last, is_above);
  return static_cast<std::uint32_t>(found - over_.begin());
}

StagedSchedule::Key StagedSchedule::key_at(std::uint32_t position) const {
  const auto stage = std::ranges::upper_bound(stage_begin_, position) - stage_begin_.begin() - 1;
  return key(static_cast<std::uint32_t>(stage), nodes_[position]);
}

/// The first step at `key` or after it. The nodes of a stage ascend.
std::uint32_t StagedSchedule::first_from(Key at) const {
  const std::uint32_t stage = stage_of(at);
  if (stage + 1 >= stage_begin_.size()) return static_cast<std::uint32_t>(nodes_.size());
  const auto begin = nodes_.begin() + stage_begin_[stage],
             end = nodes_.begin() + stage_begin_[stage + 1];
  return static_cast<std::uint32_t>(std::lower_bound(begin, end, node_of(at)) - nodes_.begin());
}

bool StagedSchedule::has(const Rerun& rerun) const {
  return std::ranges::binary_search(reruns_[rerun.group], rerun.stage);
}

std::vector<Rerun> StagedSchedule::all() const {
  std::vector<Rerun> all;
  for (std::uint32_t group = 0; group < reruns_.size(); ++group)
    for (const std::uint32_t stage : reruns_[group]) all.push_back({stage, group});
  return all;
}

bool StagedSchedule::comes_back(std::uint32_t value) const {
  const std::uint32_t group = groups_->return_of(value);
  return group != OperatorGraph::kNone && !reruns_[group].empty();
}

bool StagedSchedule::returns_in(std::uint32_t value, std::uint32_t stage) const {
  const std::uint32_t group = groups_->return_of(value);
  return group != OperatorGraph::kNone && has({stage, group});
}

bool StagedSchedule::may_run(const Rerun& rerun) const {
  const RerunGroups::Group& group = groups_->groups[rerun.group];
  if (rerun.stage >= graph_->nodes.size() || rerun.stage == closed_stage_) return false;
  if (group.until != OperatorGraph::kNone && rerun.stage > group.until) return false;
  if (group.returns != OperatorGraph::kNone) {
    const std::uint32_t maker = graph_->values[group.returns].maker;
    return group.after < rerun.stage && !has({rerun.stage, groups_->of_node[maker]});
  }
  return !group.runs_once && group.nodes.back() < rerun.stage &&
         std::ranges::none_of(group.nodes, [&](std::uint32_t node) {
           return std::ranges::any_of(graph_->nodes[node].makes, [&](std::uint32_t value) {
             return returns_in(value, rerun.stage);
           });
         });
}

/// The stage in which the group runs next after `after`, or OperatorGraph::kNone.
std::uint32_t StagedSchedule::next_run(std::uint32_t group, std::uint32_t after) const {
  const std::vector<std::uint32_t>& stages = reruns_[group];
  const auto next = std::ranges::upper_bound(stages, after);
  return next == stages.end() ? OperatorGraph::kNone : *next;
}

/// The stage in which the next copy of the value is made, or OperatorGraph::kNone.
std::uint32_t StagedSchedule::next_copy(std::uint32_t value, std::uint32_t after) const {
  const std::uint32_t run = next_run(groups_->of_node[graph_->values[value].maker], after);
  const std::uint32_t group = groups_->return_of(value);
  return group == OperatorGraph::kNone ? run : std::min(run, next_run(group, after));
}

/// The stage of the run of `node` before a step. Precondition: it has run before.
std::uint32_t StagedSchedule::latest_run(std::uint32_t node, Key before) const {
  const std::vector<std::uint32_t>& stages = reruns_[groups_->of_node[node]];
  const std::uint32_t end = stage_of(before) + (node < node_of(before) ? 1 : 0);
  const auto later = std::ranges::lower_bound(stages, end);
  return later == stages.begin() ? node : *(later - 1);
}

StagedSchedule::Source StagedSchedule::latest_source(std::uint32_t value, Key before) const {
  const Source run{.stage = latest_run(graph_->values[value].maker, before)};
  const std::uint32_t group = groups_->return_of(value);
  if (group == OperatorGraph::kNone) return run;
  const std::vector<std::uint32_t>& stages = reruns_[group];
  const auto later = std::ranges::upper_bound(stages, stage_of(before));
  if (later == stages.begin() || *(later - 1) <= run.stage) return run;
  return {.stage = *(later - 1), .is_return = true};
}

StagedSchedule::Key StagedSchedule::last_use(std::uint32_t value, const Source& source) const {
  const OperatorGraph::Value& it = graph_->values[value];
  const std::uint32_t stage = source.stage, next = next_copy(value, stage);
  Key last = made_at(value, source);
  for (const std::uint32_t reader : it.readers) {
    const std::vector<std::uint32_t>& stages = reruns_[groups_->of_node[reader]];
    const auto later = std::ranges::lower_bound(stages, next);
    const std::uint32_t run = later == stages.begin() ? reader : *(later - 1);
    if (run >= stage && run < next) last = std::max(last, key(run, reader));
  }
  const auto nodes = static_cast<std::uint32_t>(graph_->nodes.size());
  if (it.stays && next == OperatorGraph::kNone) last = key(nodes - 1, nodes - 1);
  // Nothing runs again between that node and the next.
  if (it.held_until != OperatorGraph::kNone && stage <= it.held_until)
    last = std::max(last, key(it.held_until, it.held_until));
  return last;
}

std::optional<StagedSchedule::Key> StagedSchedule::next_use(std::uint32_t value, Key after) const {
  const OperatorGraph::Value& it = graph_->values[value];
  if (it.bytes == Bytes{} || key(it.maker, it.maker) >= after) return std::nullopt;
  if (groups_->groups[groups_->of_node[it.maker]].runs_once &&
      groups_->return_of(value) == OperatorGraph::kNone)
    return std::nullopt;
  const std::uint32_t next = next_copy(value, latest_source(value, after).stage);
  std::optional<Key> use;
  for (const std::uint32_t reader : it.readers) {
    std::uint32_t stage = reader;
    if (key(reader, reader) <= after) {
      const std::vector<std::uint32_t>& stages = reruns_[groups_->of_node[reader]];
      const std::uint32_t begin = stage_of(after) + (reader <= node_of(after) ? 1 : 0);
      const auto run = std::ranges::lower_bound(stages, begin);
      if (run == stages.end()) continue;
      stage = *run;
    }
    if (stage < next && (!use || key(stage, reader) < *use)) use = key(stage, reader);
  }
  const auto last = static_cast<std::uint32_t>(graph_->nodes.size() - 1);
  if (it.stays && !use && next == OperatorGraph::kNone && after < key(last, last))
    use = key(last, last);
  return use;
}

std::vector<StagedSchedule::Carried> StagedSchedule::carried_across(Key step) const {
  std::vector<Carried> carried;
  for (std::uint32_t value = 0; value < graph_->values.size(); ++value)
    if (const auto use = next_use(value, step)) carried.push_back({value, *use});
  return carried;
}

/// Notes a run or return whose copies a change gives other lives.
void StagedSchedule::note(std::uint32_t maker, std::uint32_t stage) {
  const std::pair run(maker, stage);
  if (std::ranges::find(touched_, run) == touched_.end()) touched_.push_back(run);
}

void StagedSchedule::note_source(std::uint32_t value, Key before) {
  const Source source = latest_source(value, before);
  const auto nodes = static_cast<std::uint32_t>(graph_->nodes.size());
  note(source.is_return ? nodes + value : graph_->values[value].maker, source.stage);
}

/// What keeps the state of a node's generator: behind the nodes and the returns.
std::uint32_t StagedSchedule::generator_of(std::uint32_t node) const {
  return static_cast<std::uint32_t>(graph_->nodes.size() + graph_->values.size()) + node;
}

/// Where the copies that `rerun` makes were read from before, and those that it reads.
void StagedSchedule::note_neighbours(const Rerun& rerun) {
  const RerunGroups::Group& group = groups_->groups[rerun.group];
  const auto nodes = static_cast<std::uint32_t>(graph_->nodes.size());
  if (group.returns != OperatorGraph::kNone) {
    const std::uint32_t maker = graph_->values[group.returns].maker;
    note(maker, maker);  // what leaves is what its first run made
    note_source(group.returns, key(rerun.stage - 1, nodes));
  }
  for (const std::uint32_t node : group.nodes) {
    const Key at = key(rerun.stage, node);
    if (graph_->nodes[node].generator > Bytes{}) note(generator_of(node), node);
    note(node, latest_run(node, at));
    for (const std::uint32_t value : graph_->nodes[node].makes) note_source(value, at);
    for (const std::uint32_t value : graph_->nodes[node].reads) note_source(value, at);
  }
}

void StagedSchedule::note_own(const Rerun& rerun) {
  const RerunGroups::Group& group = groups_->groups[rerun.group];
  if (group.returns != OperatorGraph::kNone)
    note(static_cast<std::uint32_t>(graph_->nodes.size()) + group.returns, rerun.stage);
  for (const std::uint32_t node : group.nodes) note(node, rerun.stage);
}

bool StagedSchedule::is_there(std::uint32_t maker, std::uint32_t stage) const {
  const auto nodes = static_cast<std::uint32_t>(graph_->nodes.size());
  if (maker >= generator_of(0)) return true;
  if (maker >= nodes) return returns_in(maker - nodes, stage);
  return stage == maker || has({stage, groups_->of_node[maker]});
}

/// What a run or return leaves.
void StagedSchedule::add_stays(std::uint32_t maker, std::uint32_t stage,
                               std::vector<Stay>& stays) const {
  const auto nodes = static_cast<std::uint32_t>(graph_->nodes.size());
  if (maker < nodes) return add_stays_of_run(maker, stage, stays);
  if (maker >= generator_of(0)) return add_stay_of_generator(maker - generator_of(0), stays);
  const std::uint32_t value = maker - nodes;
  const Source source{.stage = stage, .is_return = true};
  // What returns is carried into its stage.
  stays.push_back(
      {made_at(value, source), last_use(value, source), graph_->values[value].bytes.count(), true});
}

/// Until the last run, and of no bytes where the first is the last.
void StagedSchedule::add_stay_of_generator(std::uint32_t node, std::vector<Stay>& stays) const {
  const std::vector<std::uint32_t>& stages = reruns_[groups_->of_node[node]];
  const Key first = key(node, node);
  if (stages.empty())
    stays.push_back({first, first, 0, false});
  else
    stays.push_back(
        {first, key(stages.back(), node), graph_->nodes[node].generator.count(), false});
}

/// In the form that its readers need.
void StagedSchedule::add_stays_of_run(std::uint32_t node, std::uint32_t stage,
                                      std::vector<Stay>& stays) const {
  const Key made = key(stage, node);
  const std::size_t begin = stays.size();
  const std::vector<std::uint32_t>& makes = graph_->nodes[node].makes;
  bool is_kept = false;
  for (const std::uint32_t value : makes) {
    const Key last = last_use(value, {stage, false});
    stays.push_back({made, last, graph_->values[value].bytes.count(), false});
    const bool is_needed = last != made || (stage == node && comes_back(value));
    is_kept = is_kept || (graph_->values[value].is_kept_only && is_needed);
  }
  for (std::size_t i = 0; i < makes.size(); ++i) {
    const OperatorGraph::Value& value = graph_->values[makes[i]];
    if (!is_kept && value.is_kept_only) stays[begin + i].bytes = 0;
    if (!is_kept || value.inside == OperatorGraph::kNone) continue;
    const auto whole = std::ranges::find(makes, value.inside) - makes.begin();
    Stay& around = stays[begin + static_cast<std::size_t>(whole)];
    around.last = std::max(around.last, stays[begin + i].last);
    stays[begin + i].bytes = 0;
  }
}

void StagedSchedule::insert_runs(std::span<const Rerun> added) {
  for (const Rerun& it : added) {
    std::vector<std::uint32_t>& stages = reruns_[it.group];
    stages.insert(std::ranges::lower_bound(stages, it.stage), it.stage);
  }
}

void StagedSchedule::erase_runs(std::span<const Rerun> removed) {
  for (const Rerun& it : removed) {
    std::vector<std::uint32_t>& stages = reruns_[it.group];
    stages.erase(std::ranges::lower_bound(stages, it.stage));
  }
}

/// Gathers in stays_ what comes and goes where a value stays so instead.
void StagedSchedule::add_difference(const Stay& before, const Stay& after) {
  if (before.bytes != after.bytes || before.first != after.first) {
    if (before.bytes != 0)
      stays_.push_back({before.first, before.last, -before.bytes, before.is_carried_in});
    if (after.bytes != 0) stays_.push_back(after);
  } else if (before.last < after.last && after.bytes != 0) {
    stays_.push_back({before.last + 1, after.last, after.bytes, true});
  } else if (after.last < before.last && after.bytes != 0) {
    stays_.push_back({after.last + 1, before.last, -after.bytes, true});
  }
}

/// Changes the runs, and gathers in stays_ what comes and goes by that.
void StagedSchedule::difference(std::span<const Rerun> removed, std::span<const Rerun> added) {
  touched_.clear();
  before_.clear();
  stays_.clear();
  for (const Rerun& it : added) note_neighbours(it);
  for (const Rerun& it : removed) {
    note_neighbours(it);
    note_own(it);
  }
  for (const auto& [maker, stage] : touched_) add_stays(maker, stage, before_);
  const std::size_t known = touched_.size();
  erase_runs(removed);
  insert_runs(added);
  for (const Rerun& it : added) note_own(it);
  std::size_t next = 0;
  for (std::size_t i = 0; i < touched_.size(); ++i) {
    const auto [maker, stage] = touched_[i];
    after_.clear();
    const bool is_left = is_there(maker, stage);
    if (is_left) add_stays(maker, stage, after_);
    const std::size_t made = maker < graph_->nodes.size() ? graph_->nodes[maker].makes.size() : 1;
    for (std::size_t k = 0; k < made; ++k)
      add_difference(i < known ? before_[next++] : Stay{}, is_left ? after_[k] : Stay{});
  }
}

/// What the gathered stays add at a step that is not in the plan.
std::int64_t StagedSchedule::stays_at(Key at) const {
  std::int64_t bytes = 0;
  for (const Stay& it : stays_)
    if (it.first <= at && at <= it.last) bytes += it.bytes;
  return bytes;
}

std::int64_t StagedSchedule::excess_between(std::uint32_t begin, std::uint32_t end,
                                            std::int64_t change) const {
  const std::int64_t more = std::max<std::int64_t>(change, 0);
  std::int64_t sum = 0;
  for (std::uint32_t i = begin; i < end;) {
    if (i % kBlock == 0 && i + kBlock <= end && block_most_[i / kBlock] + more <= 0) {
      i += kBlock;
      continue;
    }
    const std::uint32_t until = std::min(end, (i / kBlock + 1) * kBlock);
    for (; i < until; ++i)
      sum += std::max<std::int64_t>(over_[i] + change, 0) - std::max<std::int64_t>(over_[i], 0);
  }
  return sum;
}

/// Of the steps that are in the plan.
std::int64_t StagedSchedule::excess_change() {
  changes_.clear();
  for (const Stay& it : stays_) {
    const std::uint32_t begin = first_from(it.first), end = first_from(it.last + 1);
    if (begin == end) continue;
    changes_.emplace_back(begin, it.bytes);
    changes_.emplace_back(end, -it.bytes);
  }
  std::ranges::sort(changes_);
  std::int64_t sum = 0, change = 0;
  std::uint32_t at = 0;
  for (const auto& [position, bytes] : changes_) {
    if (change != 0 && position > at) sum += excess_between(at, position, change);
    at = position;
    change += bytes;
  }
  return sum;
}

RerunEffect StagedSchedule::effect_of(std::span<const Rerun> removed,
                                      std::span<const Rerun> added) {
  difference(removed, added);
  RerunEffect effect{.excess = excess_change()};
  for (const Rerun& it : added) {
    effect.time += groups_->groups[it.group].time;
    for (const std::uint32_t node : groups_->groups[it.group].nodes) {
      const Key at = key(it.stage, node);
      const std::uint32_t after = first_from(at);
      const std::int64_t through = after == 0 ? 0 : carried_[after - 1];
      const std::int64_t needs =
          through + stays_at(at) + graph_->nodes[node].workspace.count() - room_;
      effect.excess += std::max<std::int64_t>(needs, 0);
    }
  }
  for (const Rerun& it : removed) {
    effect.time -= groups_->groups[it.group].time;
    for (const std::uint32_t node : groups_->groups[it.group].nodes) {
      const Key at = key(it.stage, node);
      effect.excess -= std::max<std::int64_t>(over_[first_from(at)] + stays_at(at), 0);
    }
  }
  erase_runs(added);
  insert_runs(removed);
  return effect;
}

void StagedSchedule::apply_stays() {
  for (const Stay& it : stays_) {
    const std::uint32_t begin = first_from(it.first), end = first_from(it.last + 1);
    changed_from_ = std::min(changed_from_, begin);
    for (std::uint32_t i = begin; i < end; ++i) over_[i] += it.bytes;
    for (std::uint32_t i = begin - (it.is_carried_in ? 1 : 0); i + 1 < end; ++i)
      carried_[i] += it.bytes;
  }
}

/// Adds the steps with what passes through them.
void StagedSchedule::insert_steps(std::span<const Rerun> added) {
  std::vector<Key> keys;
  for (const Rerun& it : added)
    for (const std::uint32_t node : groups_->groups[it.group].nodes)
      keys.push_back(key(it.stage, node));
  std::ranges::sort(keys);
  std::vector<std::uint32_t> before;
  for (const Key at : keys) before.push_back(first_from(at));
  const std::size_t old = nodes_.size();
  nodes_.resize(old + keys.size());
  over_.resize(old + keys.size());
  carried_.resize(old + keys.size());
  std::size_t end = old;
  for (std::size_t k = keys.size(); k-- > 0;) {
    const auto move_up = [&](auto& list) {
      std::move_backward(list.begin() + before[k], list.begin() + static_cast<std::ptrdiff_t>(end),
                         list.begin() + static_cast<std::ptrdiff_t>(end + k + 1));
    };
    move_up(nodes_);
    move_up(over_);
    move_up(carried_);
    end = before[k];
    changed_from_ = std::min(changed_from_, before[k]);
    const std::int64_t through = end == 0 ? 0 : carried_[end - 1];
    nodes_[end + k] = node_of(keys[k]);
    over_[end + k] = through + graph_->nodes[node_of(keys[k])].workspace.count() - room_;
    carried_[end + k] = through;
  }
  std::size_t k = 0;
  for (std::uint32_t stage = 0; stage < stage_begin_.size(); ++stage) {
    while (k < keys.size() && stage_of(keys[k]) < stage) ++k;
    stage_begin_[stage] += static_cast<std::uint32_t>(k);
  }
}

void StagedSchedule::erase_steps(const Rerun& removed) {
  for (const std::uint32_t node : groups_->groups[removed.group].nodes) {
    const auto position = static_cast<std::ptrdiff_t>(first_from(key(removed.stage, node)));
    changed_from_ = std::min(changed_from_, static_cast<std::uint32_t>(position));
    nodes_.erase(nodes_.begin() + position);
    over_.erase(over_.begin() + position);
    carried_.erase(carried_.begin() + position);
    for (std::uint32_t stage = removed.stage + 1; stage < stage_begin_.size(); ++stage)
      --stage_begin_[stage];
  }
}

/// Of the blocks that changed, and of all.
void StagedSchedule::summarize() {
  const std::size_t blocks = (over_.size() + kBlock - 1) / kBlock;
  block_most_.resize(blocks);
  block_excess_.resize(blocks);
  for (std::size_t block = changed_from_ / kBlock; block < blocks; ++block) {
    std::int64_t most = std::numeric_limits<std::int64_t>::min(), excess = 0;
    const std::size_t end = std::min(over_.size(), (block + 1) * kBlock);
    for (std::size_t i = block * kBlock; i < end; ++i) {
      most = std::max(most, over_[i]);
      excess += std::max<std::int64_t>(over_[i], 0);
    }
    block_most_[block] = most;
    block_excess_[block] = excess;
  }
  excess_ = std::accumulate(block_excess_.begin(), block_excess_.end(), std::int64_t{0});
  changed_from_ = std::numeric_limits<std::uint32_t>::max();
}

/// Of the plan, by the stays that are gathered; the runs are changed already.
void StagedSchedule::make_change(std::span<const Rerun> removed, std::span<const Rerun> added) {
  insert_steps(added);
  apply_stays();
  for (const Rerun& it : added) time_ += groups_->groups[it.group].time;
  for (const Rerun& it : removed) {
    erase_steps(it);
    time_ -= groups_->groups[it.group].time;
  }
  summarize();
}

void StagedSchedule::change(std::span<const Rerun> removed, std::span<const Rerun> added) {
  difference(removed, added);
  make_change(removed, added);
}

void StagedSchedule::take(std::span<const Rerun> removed, std::span<const Rerun> added) {
  erase_runs(removed);
  insert_runs(added);
  make_change(removed, added);
}

}  // namespace plimsoll
