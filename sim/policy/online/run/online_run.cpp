#include "policy/online/run/online_run.hpp"

#include "base/dense_id.hpp"
#include "engine/wide.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace plimsoll {

using Place = OnlineView::Place;

OnlineRun::OnlineRun(const Problem& problem, ProcessorId processor, const StorageGraph& graph,
                     OnlinePolicy& policy, const OnlineOptions& options, const std::string& name)
    : problem_(problem),
      graph_(graph),
      pool_(options.capacity, options.alignment, options.layout),
      policy_(policy),
      options_(options),
      remakes_(graph, policy, options.masks),
      view_(graph, pool_),
      builder_(problem.workload, problem.platform, name),
      stream_(builder_.stream(processor)),
      memory_(problem.platform[processor].memory),
      is_referenced_(graph.storages.size(), true),
      is_gone_(graph.storages.size(), false),
      wants_(graph.storages.size(), 1),
      taken_(graph.storages.size()),
      chain_uses_(graph.storages.size(), 0),
      is_chain_locked_(graph.storages.size(), false),
      released_after_(graph.nodes.size()),
      is_in_chain_(graph.groups.size(), false),
      states_(graph.nodes.size()),
      remade_(graph.groups.size(), 0) {
  for (std::uint32_t s = 0; s < graph.storages.size(); ++s) {
    const StorageGraph::Storage& it = graph.storages[s];
    if (it.held_until != kNone) held_.push_back(s);
    const bool ends_with_hold = it.held_until != kNone && it.released_after == it.held_until;
    if (it.released_after != kNone && !ends_with_hold)
      released_after_[it.released_after].push_back(s);
  }
  for (std::uint32_t s = 0; s < graph.storages.size(); ++s) {
    if (!remakes_.can_be_remade(s)) continue;
    ++remade_[graph.storages[s].group];
    remakes_.for_each_source(s, [&](std::uint32_t source) { ++wants_[source]; });
  }
  builder_.keep_each_generator();
  builder_.reserve(graph.nodes.size(), graph.storages.size(), problem.workload.tensor_lists.size());
}

OnlineRecord OnlineRun::run() {
  place_resident();
  for (std::uint32_t node = 0; node < graph_.nodes.size() && !thrashes_; ++node) run_program(node);
  if (!thrashes_) make_referenced_present();
  if (thrashes_) return {.thrashes = true};
  for (std::uint32_t s = 0; s < graph_.storages.size(); ++s)
    if (view_.is_present(s) && steps_ > 0) hold(s, steps_ - 1);
  for (std::uint32_t group = 0; group < graph_.groups.size(); ++group) drop_states(group);
  const bool is_out = is_lifted_;
  Plan plan = builder_.finish();
  if (options_.layout.has_offsets()) record_resident_places(plan);
  if (!is_out) counted_ = counters();
  plan.claims.eviction = counted_;
  return {.plan = std::move(plan), .is_out_of_memory = is_out};
}

void OnlineRun::place_resident() {
  for (const Bytes bytes : graph_.resident) {
    const auto taken = pool_.take(bytes, OnlinePool::kFixed);
    if (!taken) return run_out_of_memory();
    resident_.push_back(*taken);
  }
}

/// The builder has them in the same order, in which they are first read.
void OnlineRun::record_resident_places(Plan& plan) const {
  if (plan.initial.size() < resident_.size())
    throw std::logic_error("an online run has placed what it does not read");
  for (std::size_t i = 0; i < resident_.size(); ++i)
    plan.buffers[index(plan.initial[i])].offset = Bytes{resident_[i].offset};
}

void OnlineRun::run_program(std::uint32_t node) {
  play({&node, 1}, true);
  for (const std::uint32_t storage : released_after_[node]) end_reference(storage);
  drop_unwanted();
  banish_pending();
}

void OnlineRun::make_referenced_present() {
  for (std::uint32_t s = 0; s < graph_.storages.size(); ++s)
    if (is_referenced_[s]) view_.lock(s);
  for (std::uint32_t s = 0; s < graph_.storages.size() && !thrashes_; ++s)
    if (is_referenced_[s] && view_.is_absent(s))
      play(graph_.groups[graph_.storages[s].group].nodes, false);
}

// --- operators ---------------------------------------------------------------------------------

void OnlineRun::play(std::span<const std::uint32_t> nodes, bool is_first) {
  frames_.push_back({.nodes = nodes, .is_first = is_first});
  while (!frames_.empty() && !thrashes_) advance();
}

/// One operator, or the way to what it misses.
void OnlineRun::advance() {
  Frame& frame = frames_.back();
  if (!frame.is_entered) enter(frame);
  if (!is_complete(frame)) return;
  execute(frame);
  frame.is_entered = false;
  if (++frame.at == frame.nodes.size()) frames_.pop_back();
}

void OnlineRun::enter(Frame& frame) {
  const std::uint32_t node = frame.nodes[frame.at];
  policy_.on_request(view_, node);
  frame.is_entered = true;
  frame.missing_begin = frame.next_missing = missing_.size();
  for (const std::uint32_t read : graph_.nodes[node].reads) {
    view_.lock(read);
    if (!view_.is_present(read)) missing_.push_back(read);
  }
  const bool misses = missing_.size() > frame.missing_begin;
  if (misses && frames_.size() == 1 && options_.drops_intermediates && !is_lifted_)
    plan_chain(node);
}

/// Whether all that it reads is there; else what makes the next of it comes first.
bool OnlineRun::is_complete(Frame& frame) {
  while (frame.next_missing < missing_.size()) {
    const std::uint32_t storage = missing_[frame.next_missing];
    if (!view_.is_present(storage)) {
      if (!view_.is_absent(storage)) throw std::logic_error("an online run has lost a storage");
      const std::uint32_t group = graph_.storages[storage].group;
      frames_.push_back({.nodes = graph_.groups[group].nodes});
      return false;
    }
    ++frame.next_missing;
  }
  missing_.resize(frame.missing_begin);
  return true;
}

void OnlineRun::execute(Frame& frame) {
  const std::uint32_t node = frame.nodes[frame.at];
  if (frame.is_first) end_holds(node);
  make_room(node, frame.is_first);
  const std::int64_t began = view_.clock();
  record(node, frame.is_first);
  if (kept_state(node, frame.is_first) > Bytes{}) keep_state(node);
  take_over(node, frame.is_first);
  policy_.on_operator(view_,
                      {.node = node, .began = began, .is_first = frame.is_first, .made = made_});
  if (frame.at + 1 == frame.nodes.size()) finish_outputs(frame);
  unlock_reads(node);
  if (!frame.is_first && frame.at + 1 == frame.nodes.size())
    end_chain_use(graph_.nodes[node].group);
}

std::span<const std::uint32_t> OnlineRun::makes(std::uint32_t node, bool is_first) const {
  return is_first ? graph_.nodes[node].makes : remakes_.made_again(node);
}

/// The step, in the plan. What is there already stays until its end.
void OnlineRun::record(std::uint32_t node, bool is_first) {
  for (const std::uint32_t made : makes(node, is_first))
    if (view_.is_present(made)) {
      hold(made, steps_);
      builder_.release(graph_.storages[made].tensor, 0, memory_);
    }
  const Form form = is_first ? Form::keep : remakes_.form(node);
  const StepId step =
      builder_.compute(stream_, OperatorId{node}, 0, form, duration_with_decisions(node));
  if (options_.layout.has_offsets() && !is_lifted_) record_places(node, is_first, step);
  ++steps_;
  const std::int64_t time = graph_.nodes[node].time.count();
  view_.advance(time);
  problem_.work.add(graph_.nodes[node].reads.size() + graph_.nodes[node].makes.size() + 1);
  if (is_first || is_lifted_) return;
  ++reruns_;
  rerun_time_ += time;
  const Signed128 limit = options_.recompute_limit;
  thrashes_ = Signed128{rerun_time_} > limit * graph_.time.count() ||
              Signed128{reruns_} > limit * static_cast<std::int64_t>(graph_.nodes.size());
}

void OnlineRun::record_places(std::uint32_t node, bool is_first, StepId step) {
  const auto made = makes(node, is_first);
  for (std::size_t i = 0; i < made.size(); ++i)
    builder_.place(graph_.storages[made[i]].tensor, 0, memory_, Bytes{asked_[i].offset});
  if (asked_.back().bytes > 0) builder_.place_workspace(step, Bytes{asked_.back().offset});
}

/// Of an operator and the decisions before it, where these take time.
std::optional<Time> OnlineRun::duration_with_decisions(std::uint32_t node) {
  if (options_.overhead == DecisionOverhead()) return std::nullopt;
  const std::int64_t evaluations = policy_.score_evaluations() - evaluations_;
  evaluations_ += evaluations;
  return graph_.nodes[node].time + options_.overhead.per_operator +
         options_.overhead.per_candidate * evaluations;
}

/// What was placed becomes the operator's outputs.
void OnlineRun::take_over(std::uint32_t node, bool is_first) {
  const StorageGraph::Node& it = graph_.nodes[node];
  const auto outputs = makes(node, is_first);
  made_.clear();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::uint32_t storage = outputs[i];
    const bool was_present = view_.is_present(storage);
    if (!is_lifted_) {
      if (was_present) pool_.give_back(taken_[storage]);
      taken_[storage] = asked_[i];
    }
    if (!was_present) made_.push_back(storage);
    const bool is_alone = graph_.groups[it.group].nodes.size() == 1;
    if (is_first || !was_present || !is_alone) view_.lock(storage);
    if (is_first && graph_.storages[storage].held_until != kNone) view_.lock(storage);
    view_.set_place(storage, Place::present);
  }
  if (!is_lifted_) pool_.give_back(asked_.back());
}

/// Outputs become candidates: of a program's operator when its group is complete, which may then run
/// again; of a group that ran again at its end.
void OnlineRun::finish_outputs(const Frame& frame) {
  const StorageGraph::Group& group = graph_.groups[graph_.nodes[frame.nodes.back()].group];
  if (frame.is_first) {
    if (frame.nodes.back() != group.nodes.back()) return;
    for (const std::uint32_t storage : group.makes)
      if (remakes_.can_be_remade(storage)) view_.unlock(storage);
    return;
  }
  const bool is_alone = group.nodes.size() == 1;
  for (const std::uint32_t storage : is_alone ? made_ : group.makes) {
    if (remakes_.is_read_again(storage)) continue;
    view_.unlock(storage);
    if (is_gone_[storage])
      drop(storage, Place::gone);
    else
      drop_if_intermediate(storage);
  }
}

void OnlineRun::unlock_reads(std::uint32_t node) {
  for (const std::uint32_t read : graph_.nodes[node].reads) view_.unlock(read);
}

}  // namespace plimsoll
