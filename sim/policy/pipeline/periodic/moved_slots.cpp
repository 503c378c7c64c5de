#include "policy/pipeline/periodic/moved_slots.hpp"

#include "policy/claims/copy_time.hpp"
#include "policy/offload/copies/storage.hpp"
#include "policy/pipeline/partition/cut_times.hpp"
#include "policy/pipeline/periodic/inputs_apart.hpp"
#include "policy/pipeline/schedule/slot_savings.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

bool reads(const Problem& problem, std::span<const OperatorId> operators, TensorId tensor) {
  return std::ranges::any_of(operators, [&](OperatorId op) {
    const auto read = problem.workload.list(problem.workload[op].reads);
    return std::ranges::find(read, tensor) != read.end();
  });
}

}  // namespace

MovedSlots::MovedSlots(const Problem& problem, const std::vector<ProcessorId>& devices,
                       const PipelineParameters& parameters)
    : problem_(problem) {
  if (!parameters.offloads()) return;
  require_slots(parameters.offload->value, parameters.offload->where, devices.size());
  const SlotChoice& choice = parameters.offload->value;
  if (choice.share != kWhole)
    refuse(parameters.offload->where,
           "a pattern that repeats moves every microbatch of a slot, or none; expected "
           "`all`, `none` or a list of slots");
  for (std::uint32_t slot = 0; slot < devices.size(); ++slot) {
    auto& way = ways_.emplace_back();
    if (!choice.takes(slot, 0) || slot + std::size_t{1} == devices.size()) continue;
    const MemoryId home = problem.platform[devices[slot]].memory;
    const MemoryId store = storage_for(problem, home, parameters.to, parameters.where);
    way.emplace(Way{home, store, is_half_duplex(problem, home, store), {Time{}}, {Time{}}, {}, {}});
    for (std::size_t s = 0; s < problem.chain.stages.size(); ++s)
      add_times(*way, s, parameters.recomputes(slot));
  }
}

void MovedSlots::add_times(Way& way, std::size_t stage, bool recomputed) const {
  way.out.push_back(way.out.back());
  way.back.push_back(way.back.back());
  way.received_out.emplace_back();
  way.received_back.emplace_back();
  for (const TensorId tensor : problem_.chain.saved(stage)) {
    if (recomputed) break;
    way.out.back() += copy_time(problem_, way.home, way.store, problem_.workload[tensor].bytes);
    way.back.back() += copy_time(problem_, way.store, way.home, problem_.workload[tensor].bytes);
  }
  if (stage == 0) return;
  const ChainStage& before = problem_.chain.stages[stage - 1];
  const bool keeps_output =
      recomputed || reads(problem_, problem_.chain.backward(stage), before.output);
  const auto time = keeps_output ? value_time : carried_time;
  way.received_out.back() = time(problem_, way.home, way.store, before);
  way.received_back.back() = time(problem_, way.store, way.home, before);
}

std::optional<SlotCopies> MovedSlots::copies(std::size_t slot, std::size_t begin,
                                             std::size_t end) const {
  if (ways_.empty() || !ways_[slot]) return std::nullopt;
  const Way& way = *ways_[slot];
  SlotCopies copies{way.out[end] - way.out[begin], way.back[end] - way.back[begin],
                    way.one_at_a_time};
  if (slot > 0) {
    copies.out += way.received_out[begin];
    copies.back += way.received_back[begin];
  }
  return copies;
}

std::vector<std::uint32_t> MovedSlots::turns(std::size_t slot, bool out) const {
  const Way& way = *ways_[slot];
  return out ? link_turns(problem_, way.home, way.store)
             : link_turns(problem_, way.store, way.home);
}

std::optional<PeriodicPattern::Away> away_between(Time made, Time read, const SlotCopies& copies,
                                                  Time period) {
  if (copies.load() > period || made + copies.out + copies.back > read) return std::nullopt;
  PeriodicPattern::Away away{{made, made + copies.out}, {read - copies.back, read}, {}, {}};
  if (copies.one_at_a_time) {
    // From the end of a copy out to the start of one back, and at most so long that it is over
    // when the next one out starts.
    const Time pause{(away.back.start - away.out.end).count() % period.count()};
    const Time earlier = std::max(Time{}, pause + copies.load() - period);
    away.back = {away.back.start - earlier, away.back.end - earlier};
  }
  if (away.back.start < away.out.end) return std::nullopt;
  return away;
}

}  // namespace plimsoll
