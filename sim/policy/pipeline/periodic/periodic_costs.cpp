#include "policy/pipeline/periodic/periodic_costs.hpp"

#include "policy/claims/copy_time.hpp"
#include "policy/interface/memory_named.hpp"
#include "policy/pipeline/partition/cut_times.hpp"
#include "policy/pipeline/periodic/inputs_apart.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace plimsoll {

PeriodicCosts::PeriodicCosts(const Problem& problem, const std::vector<ProcessorId>& devices,
                             const PipelineParameters& parameters, std::int64_t microbatches)
    : problem_(problem),
      devices_(devices),
      parameters_(parameters),
      microbatches_(microbatches),
      bytes_(stage_bytes(problem)),
      fixed_(1),
      saved_(1),
      inputs_(1),
      drawing_(1, 0),
      moved_(problem, devices, parameters) {
  for (std::size_t slot = 1; slot < devices.size(); ++slot)
    require_link(problem, problem.platform[devices[slot - 1]].memory,
                 problem.platform[devices[slot]].memory, "neighbouring stages", parameters.where);
  for (const ProcessorId device : devices) add_times(problem, device);
  for (const StageBytes& stage : bytes_) {
    fixed_.push_back(fixed_.back() + stage.resident + stage.stays * microbatches);
    saved_.push_back(saved_.back() + stage.saved);
    inputs_.push_back(inputs_.back() + input_bytes(stage));
  }
  add_generators();
  if (parameters.load_from) add_loads();
}

void PeriodicCosts::add_generators() {
  const Workload& workload = problem_.workload;
  for (const ChainStage& stage : problem_.chain.stages) {
    drawing_.push_back(drawing_.back());
    for (std::uint32_t op = stage.forward_begin; op < stage.forward_end; ++op) {
      const TensorId state = workload.operators[op].generator;
      if (state == kNoTensor) continue;
      ++drawing_.back();
      generator_ = std::max(generator_, workload[state].bytes);
    }
  }
}

void PeriodicCosts::add_loads() {
  if (parameters_.load_ahead == 0)
    refuse(parameters_.load_from->where,
           "with `load_ahead: 0` a device waits for its inputs, which a pattern without "
           "a pause has no time for; expected at least 1");
  const MemoryId from = memory_named(problem_, *parameters_.load_from);
  for (std::size_t s = 0; s < stages(); ++s)
    if (!bytes_[s].inputs.empty()) loading_.push_back(s);
  for (std::size_t slot = 0; slot < slots(); ++slot) {
    const MemoryId to = problem_.platform[devices_[slot]].memory;
    const bool joined = from == to || problem_.topology.route(from, to);
    auto& loads = loads_.emplace_back(loading_.size(), joined ? Time{} : Time::unlimited());
    for (std::size_t i = 0; i < loading_.size() && joined && from != to; ++i)
      for (const Bytes input : bytes_[loading_[i]].inputs)
        loads[i] += copy_time(problem_, from, to, input);
  }
  const auto require_way = [&](std::size_t slot) {
    require_link(problem_, from, problem_.platform[devices_[slot]].memory,
                 "the data and a stage that reads it", parameters_.load_from->where);
  };
  // The slots that are sure to have these stages.
  if (!loading_.empty() && loading_.front() == 0) require_way(0);
  if (!loading_.empty() && loading_.back() + 1 == stages()) require_way(slots() - 1);
}

Time PeriodicCosts::load(std::size_t slot, std::size_t begin, std::size_t end) const {
  Time sum;
  for (std::size_t i = 0; i < loading_.size(); ++i) {
    if (loading_[i] < begin || loading_[i] >= end) continue;
    if (loads_[slot][i].is_unlimited()) return Time::unlimited();
    sum += loads_[slot][i];
  }
  return sum;
}

void PeriodicCosts::add_times(const Problem& problem, ProcessorId device) {
  const std::vector<Time> times = durations(problem.workload, problem.platform, device);
  auto &forward = forward_.emplace_back(1), &backward = backward_.emplace_back(1);
  for (std::size_t s = 0; s < problem.chain.stages.size(); ++s) {
    const ChainStage& stage = problem.chain.stages[s];
    forward.push_back(forward.back());
    backward.push_back(backward.back());
    for (std::uint32_t op = stage.forward_begin; op < stage.forward_end; ++op)
      forward.back() += times[op];
    for (const OperatorId op : problem.chain.backward(s)) backward.back() += times[index(op)];
  }
}

std::vector<std::uint32_t> PeriodicCosts::turns(std::size_t slot, bool forward) const {
  const MemoryId before = problem_.platform[devices_[slot - 1]].memory;
  const MemoryId after = problem_.platform[devices_[slot]].memory;
  return forward ? link_turns(problem_, before, after) : link_turns(problem_, after, before);
}

std::optional<LinkId> PeriodicCosts::shared_link() const {
  std::map<std::uint32_t, std::size_t> user;
  for (std::size_t slot = 1; slot < devices_.size(); ++slot)
    for (const bool forward : {true, false})
      for (const std::uint32_t turn : turns(slot, forward))
        if (user.emplace(turn, slot).first->second != slot) return LinkId{turn / 2};
  return std::nullopt;
}

void PeriodicCosts::require_links_apart(const Location& where) const {
  if (const auto link = shared_link())
    refuse(where, fmt::format("link `{}` carries the messages of two cuts of the pipeline in "
                              "one direction; a periodic pattern gives each cut its own",
                              problem_.platform[*link].name));
}

PeriodicCosts::Cut PeriodicCosts::cut(std::size_t slot, std::size_t stage) const {
  const MemoryId from = problem_.platform[devices_[slot - 1]].memory;
  const MemoryId to = problem_.platform[devices_[slot]].memory;
  const ChainStage& before = problem_.chain.stages[stage - 1];
  return {value_time(problem_, from, to, before), gradient_time(problem_, to, from, before),
          is_half_duplex(problem_, from, to)};
}

Bytes PeriodicCosts::memory(std::size_t slot, std::size_t begin, std::size_t end,
                            const KeptCounts& kept, Bytes passing) const {
  const bool again = parameters_.recomputes(slot);
  Bytes sum = fixed_[end] - fixed_[begin] + passing;
  if (!again) sum += (saved_[end] - saved_[begin]) * kept.saved;
  // A slot runs again as a whole: the first of its operators that draws needs the state.
  if (again && drawing_[end] > drawing_[begin]) sum += generator_ * kept.in_flight;
  sum += (inputs_[end] - inputs_[begin]) * parameters_.inputs_there(kept.in_flight, microbatches_);
  if (slot > 0)
    sum += bytes_[begin].received * kept.received +
           bytes_[begin - 1].received_gradient * kept.sent_gradients;
  if (slot + 1 < slots())
    sum += bytes_[end - 1].received_gradient * kept.received_gradients +
           (again ? problem_.chain.stages[end - 1].output_bytes * kept.sent_values
                  : bytes_[end - 1].unsaved_output * kept.in_flight);
  return sum;
}

bool PeriodicCosts::is_memory_exact(std::size_t slot, std::size_t begin, std::size_t end) const {
  if (parameters_.recomputes(slot) || moved_.copies(slot, begin, end)) return false;
  for (std::size_t s = begin; s < end; ++s)
    for (const Bytes part :
         {bytes_[s].stays, input_bytes(bytes_[s]), bytes_[s].passing, bytes_[s].received,
          bytes_[s].received_gradient, bytes_[s].unsaved_output})
      if (part > Bytes{}) return false;
  return true;
}

Time PeriodicCosts::bound() const {
  Time all, greatest;
  for (std::size_t s = 0; s < stages(); ++s) {
    Time least = Time::unlimited();
    for (std::size_t slot = 0; slot < slots(); ++slot)
      least = std::min(least, forward(slot, s, s + 1) + backward(slot, s, s + 1));
    all += least;
    greatest = std::max(greatest, least);
  }
  const auto share = static_cast<std::int64_t>(slots());
  return std::max(greatest, Time{all.count() / share + (all.count() % share == 0 ? 0 : 1)});
}

Time PeriodicCosts::whole() const {
  Time sum{1};
  for (std::size_t slot = 0; slot < slots(); ++slot) {
    sum += forward(slot, 0, stages()) + backward(slot, 0, stages());
    if (const Time loads = load(slot, 0, stages()); !loads.is_unlimited()) sum += loads;
    Time longest;
    for (std::size_t s = 1; slot > 0 && s < stages(); ++s)
      longest = std::max(longest, cut(slot, s).value + cut(slot, s).gradient);
    sum += longest;
  }
  return sum;
}

KeptCounts without_moved(KeptCounts kept, const SlotCopies& copies, const KeptTimes& times,
                         Time period) {
  if (copies.load() > period) return kept;
  const std::int64_t back = periods_of(copies.longest_back() + times.backward, period);
  const Time gone = times.sent + copies.out;
  kept.saved = std::min(kept.saved, periods_of(gone, period) + back);
  kept.received = std::min(kept.received, periods_of(times.arrived + gone, period) + back);
  return kept;
}

void add_moves(PeriodicPattern& pattern, const PeriodicCosts& costs,
               const std::vector<std::size_t>& cuts) {
  pattern.away.resize(costs.slots());
  for (std::size_t slot = 0; slot < costs.slots(); ++slot) {
    const auto copies = costs.moved().copies(slot, cuts[slot], cuts[slot + 1]);
    if (!copies) continue;
    // The last slot has none, so there is a cut behind.
    const Time made = std::max(pattern.forward[slot].end, pattern.cuts[slot].value.end);
    auto away = away_between(made, pattern.backward[slot].start, *copies, pattern.period);
    if (!away) continue;
    away->out_turns = costs.moved().turns(slot, true);
    away->back_turns = costs.moved().turns(slot, false);
    pattern.away[slot] = std::move(away);
  }
}

}  // namespace plimsoll
