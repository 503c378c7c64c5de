/// How an online run finds room, and what it gives back.
#include "engine/wide.hpp"
#include "policy/online/run/online_run.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace plimsoll {

using Place = OnlineView::Place;

// --- room --------------------------------------------------------------------------------------

void OnlineRun::make_room(std::uint32_t node, bool is_first) {
  if (is_lifted_) return;
  bool has_evicted = false;
  while (!try_to_place(node, is_first)) {
    ++counted_.searches;
    const std::vector<OnlineStep> steps = policy_.on_pressure(view_);
    take_back();
    if (steps.empty()) return run_out_of_memory();
    for (const OnlineStep& step : steps) evict(step.release);
    has_evicted = true;
  }
  if (!has_evicted || pool_.capacity() == Bytes{}) return;
  // As it was just before the placement.
  std::int64_t free = pool_.free_bytes().count();
  for (const OnlinePool::Taken& taken : asked_) free += taken.bytes;
  ++allocations_that_evicted_;
  free_share_ +=
      static_cast<std::int64_t>(Signed128{free} * kWhole.count() / pool_.capacity().count());
}

/// What the run keeps of its generator. Plans do not say that a run reads a mask, so that the state
/// is kept beside it.
Bytes OnlineRun::kept_state(std::uint32_t node, bool is_first) const {
  const StorageGraph::Node& it = graph_.nodes[node];
  return is_first && remade_[it.group] > 0 ? it.generator : Bytes{};
}

/// Of the node whose first run has just been recorded.
void OnlineRun::keep_state(std::uint32_t node) {
  State& state = states_[node].emplace(State{.first = StepId{steps_ - 1}});
  if (is_lifted_) return;
  state.taken = asked_[graph_.nodes[node].makes.size()];
  if (options_.layout.has_offsets()) state.offset = Bytes{state.taken.offset};
}

/// At the end of the last step.
void OnlineRun::drop_states(std::uint32_t group) {
  for (const std::uint32_t node : graph_.groups[group].nodes) {
    if (!states_[node]) continue;
    builder_.hold_generator(states_[node]->first, StepId{steps_ - 1}, states_[node]->offset);
    if (!is_lifted_) pool_.give_back(states_[node]->taken);
    states_[node].reset();
  }
}

/// Outputs, a state that is kept, then the workspace. Where they do not fit, the first ones stay
/// placed, and the view tells what the next one needs; where bytes are counted, all of them need it
/// together.
bool OnlineRun::try_to_place(std::uint32_t node, bool is_first) {
  const StorageGraph::Node& it = graph_.nodes[node];
  const auto outputs = makes(node, is_first);
  const Bytes state = kept_state(node, is_first);
  const TensorCost cost = it.is_costly ? TensorCost::costly : TensorCost::cheap;
  asked_.clear();
  if (!pool_.has_addresses()) {
    Bytes all = it.workspace + state;
    for (const std::uint32_t made : outputs) all += graph_.storages[made].bytes;
    view_.set_need(all);
    if (all > pool_.free_bytes()) return false;
  }
  const auto place = [&](Bytes bytes) {
    const auto taken = pool_.take(bytes, OnlinePool::kFixed, cost);
    if (taken)
      asked_.push_back(*taken);
    else
      view_.set_need(bytes);
    return taken.has_value();
  };
  for (const std::uint32_t made : outputs)
    if (!place(graph_.storages[made].bytes)) return false;
  if (state > Bytes{} && !place(state)) return false;
  if (!place(it.workspace)) return false;
  for (std::size_t i = 0; i < outputs.size(); ++i) pool_.set_owner(asked_[i], outputs[i]);
  return true;
}

void OnlineRun::take_back() {
  while (!asked_.empty()) {
    pool_.give_back(asked_.back());
    asked_.pop_back();
  }
}

void OnlineRun::evict(std::uint32_t storage) {
  if (storage >= graph_.storages.size() || !view_.is_candidate(storage))
    throw std::logic_error("an online policy releases what is no candidate");
  ++counted_.evictions;
  counted_.evicted_bytes += graph_.storages[storage].bytes;
  drop(storage, Place::absent);
}

/// From here on nothing is limited, and nothing that is there goes before the next step has ended.
void OnlineRun::run_out_of_memory() {
  counted_ = counters();
  is_lifted_ = true;
  for (std::uint32_t s = 0; s < graph_.storages.size(); ++s)
    if (view_.is_present(s)) hold(s, steps_);
}

EvictionClaims OnlineRun::counters() const {
  EvictionClaims counted = counted_;
  counted.score_evaluations = policy_.score_evaluations();
  if (allocations_that_evicted_ > 0)
    counted.mean_fragmentation = Ratio{free_share_ / allocations_that_evicted_};
  return counted;
}

// --- releases ----------------------------------------------------------------------------------

void OnlineRun::hold(std::uint32_t storage, std::uint32_t step) {
  builder_.hold_until(graph_.storages[storage].tensor, 0, memory_, StepId{step});
}

/// At the end of the last step.
void OnlineRun::drop(std::uint32_t storage, Place into) {
  hold(storage, steps_ - 1);
  builder_.release(graph_.storages[storage].tensor, 0, memory_);
  if (!is_lifted_) pool_.give_back(taken_[storage]);
  view_.set_place(storage, into);
  policy_.on_release(view_, storage);
}

/// The program has no use for it any more.
void OnlineRun::end_reference(std::uint32_t storage) {
  is_referenced_[storage] = false;
  want_less(storage);
  if (!remakes_.can_be_remade(storage)) return;
  if (options_.on_release == OnRelease::banish) banishing_.push_back(storage);
  if (options_.on_release == OnRelease::evict && view_.is_present(storage))
    drop(storage, Place::absent);
}

/// Before the first node behind those for which storages are held.
void OnlineRun::end_holds(std::uint32_t node) {
  if (held_.empty() || node <= graph_.storages[held_.front()].held_until) return;
  for (const std::uint32_t storage : std::exchange(held_, {})) {
    view_.unlock(storage);
    if (graph_.storages[storage].released_after == graph_.storages[storage].held_until)
      end_reference(storage);
  }
  drop_unwanted();
}

void OnlineRun::want_less(std::uint32_t storage) {
  if (--wants_[storage] == 0) unwanted_.push_back(storage);
}

/// What cannot be made again goes when nothing wants it.
void OnlineRun::drop_unwanted() {
  while (!unwanted_.empty()) {
    const std::uint32_t storage = unwanted_.back();
    unwanted_.pop_back();
    if (remakes_.can_be_remade(storage)) {
      remakes_.for_each_source(storage, [&](std::uint32_t source) { want_less(source); });
      const std::uint32_t group = graph_.storages[storage].group;
      if (--remade_[group] == 0) drop_states(group);
    } else if (view_.is_present(storage))
      is_gone_[storage] = true, drop(storage, Place::gone);
  }
}

/// Goes for good once no absent storage depends on it, nor one that its group has yet to make;
/// those that are there stay then.
void OnlineRun::banish_pending() {
  const auto is_missing = [&](std::uint32_t child) {
    return view_.is_absent(child) || view_.place(child) == Place::unmade;
  };
  for (bool goes_on = true; goes_on;) {
    const std::size_t before = banishing_.size();
    std::erase_if(banishing_, [&](std::uint32_t storage) {
      const auto& children = graph_.storages[storage].children;
      if (std::ranges::any_of(children, is_missing)) return false;
      for (const std::uint32_t child : children)
        if (view_.is_present(child)) view_.lock(child);
      is_gone_[storage] = true;
      if (view_.is_present(storage))
        drop(storage, Place::gone);
      else
        view_.set_place(storage, Place::gone);
      return true;
    });
    goes_on = banishing_.size() < before;
  }
}

// --- recomputation whose intermediates go at once ------------------------------------------------

/// Locks what is there of all that has to run again for `node`, and counts its uses.
void OnlineRun::plan_chain(std::uint32_t node) {
  std::vector<std::uint32_t> open;
  const auto visit = [&](std::uint32_t storage) {
    const std::uint32_t group = graph_.storages[storage].group;
    if (!view_.is_absent(storage) || is_in_chain_[group]) return;
    is_in_chain_[group] = true;
    open.push_back(group);
  };
  for (const std::uint32_t read : graph_.nodes[node].reads) visit(read);
  while (!open.empty()) {
    const std::uint32_t group = open.back();
    open.pop_back();
    for (const std::uint32_t parent : graph_.groups[group].parents) {
      ++chain_uses_[parent];
      if (!is_chain_locked_[parent]) view_.lock(parent);
      is_chain_locked_[parent] = true;
      visit(parent);
    }
  }
}

void OnlineRun::end_chain_use(std::uint32_t group) {
  if (!is_in_chain_[group]) return;
  is_in_chain_[group] = false;
  for (const std::uint32_t parent : graph_.groups[group].parents) {
    if (--chain_uses_[parent] > 0) continue;
    is_chain_locked_[parent] = false;
    view_.unlock(parent);
    drop_if_intermediate(parent);
  }
}

void OnlineRun::drop_if_intermediate(std::uint32_t storage) {
  if (options_.drops_intermediates && !is_referenced_[storage] && view_.is_candidate(storage))
    drop(storage, Place::absent);
}

}  // namespace plimsoll
