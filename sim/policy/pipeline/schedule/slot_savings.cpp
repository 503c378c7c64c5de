#include "policy/pipeline/schedule/slot_savings.hpp"

#include "policy/offload/copies/storage.hpp"
#include "policy/pipeline/schedule/task_runs.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

using Kind = Task::Kind;
constexpr std::uint32_t kNever = 0xFFFFFFFF;

bool begins_backward(const Task& task) {
  return task.kind == Kind::backward || task.kind == Kind::backward_input;
}

bool computes(const Task& task) {
  return task.kind == Kind::forward || task.kind == Kind::recompute || begins_backward(task) ||
         task.kind == Kind::backward_weight;
}

std::vector<Task> with_recomputation(const std::vector<Task>& order,
                                     const std::vector<bool>& recomputed) {
  std::vector<Task> more;
  for (std::size_t t = 0; t < order.size();) {
    const std::span<const Task> tasks = next_tasks(order, t);
    for (const Task& task : tasks)
      if (begins_backward(task) && recomputed[task.slot])
        more.push_back({Kind::recompute, task.slot, task.microbatch});
    more.insert(more.end(), tasks.begin(), tasks.end());
    t += tasks.size();
  }
  return more;
}

void recompute(Schedule& schedule, std::vector<bool> recomputed) {
  schedule.recomputed = std::move(recomputed);
  for (auto& order : schedule.orders) order = with_recomputation(order, schedule.recomputed);
}

/// Adds to the order of one device what leaves it and comes back.
class Offloader {
 public:
  Offloader(const Schedule& schedule, const SlotChoice& choice, std::uint32_t microbatches,
            std::size_t distance)
      : schedule_(schedule), choice_(choice), microbatches_(microbatches), distance_(distance) {}

  std::vector<Task> run(const std::vector<Task>& order) {
    number(order);
    find_excursions();
    std::vector<Task> more;
    std::size_t unit = 0;
    for (std::size_t t = 0; t < order.size();) {
      const std::span<const Task> tasks = next_tasks(order, t);
      more.insert(more.end(), tasks.begin(), tasks.end());
      t += tasks.size();
      if (!computes(tasks.front())) continue;
      for (const auto* moves : {&reloads_[unit], &offloads_[unit]})
        more.insert(more.end(), moves->begin(), moves->end());
      ++unit;
    }
    return more;
  }

 private:
  /// A chunk of a microbatch that the device holds for a while; units of the order are counted from
  /// 0, a pair as one.
  struct Chunk {
    std::uint32_t slot = 0, microbatch = 0;
    std::uint32_t made = kNever, needed = kNever;
  };

  void number(const std::vector<Task>& order) {
    place_.assign(schedule_.placement.size() * microbatches_, kNever);
    chunks_.clear();
    std::uint32_t units = 0;
    for (std::size_t t = 0; t < order.size();) {
      const std::span<const Task> tasks = next_tasks(order, t);
      t += tasks.size();
      if (!computes(tasks.front())) continue;
      for (const Task& task : tasks) note(task, units);
      ++units;
    }
    offloads_.assign(units, {});
    reloads_.assign(units, {});
  }

  void note(const Task& task, std::uint32_t unit) {
    std::uint32_t& place = place_[task.slot * std::size_t{microbatches_} + task.microbatch];
    if (task.kind == Kind::forward) {
      place = static_cast<std::uint32_t>(chunks_.size());
      chunks_.push_back({task.slot, task.microbatch, unit});
      return;
    }
    need(place, unit);
    // What the slot before left in this memory is read here, too.
    if (task.slot > 0)
      need(place_[(task.slot - std::size_t{1}) * microbatches_ + task.microbatch], unit);
  }

  void need(std::uint32_t place, std::uint32_t unit) {
    if (place != kNever && chunks_[place].needed == kNever) chunks_[place].needed = unit;
  }

  void find_excursions() {
    std::vector<Chunk> away;
    for (const Chunk& chunk : chunks_)
      if (choice_.takes(chunk.slot, chunk.microbatch) && chunk.needed != kNever &&
          chunk.needed > chunk.made + distance_)
        away.push_back(chunk);
    for (const Chunk& it : away)
      offloads_[it.made].push_back({Kind::offload, it.slot, it.microbatch});
    std::ranges::stable_sort(away, {}, &Chunk::needed);
    for (const Chunk& it : away)
      reloads_[it.needed - distance_].push_back({Kind::reload, it.slot, it.microbatch});
  }

  const Schedule& schedule_;
  const SlotChoice& choice_;
  const std::uint32_t microbatches_;
  const std::size_t distance_;
  std::vector<Chunk> chunks_;                          ///< in the order of their forwards
  std::vector<std::uint32_t> place_;                   ///< in `chunks_`
  std::vector<std::vector<Task>> offloads_, reloads_;  ///< by unit, behind it
};

}  // namespace

void require_slots(const SlotChoice& choice, const Location& where, std::size_t slots) {
  for (const std::int64_t slot : choice.slots)
    if (slot >= static_cast<std::int64_t>(slots))
      refuse(where, fmt::format("there is no slot {}; the pipeline has {}, from 0", slot, slots));
}

std::vector<bool> recomputed_slots(const PipelineParameters& parameters, std::size_t slots) {
  std::vector<bool> recomputed;
  if (!parameters.recomputes_slots()) return recomputed;
  require_slots(parameters.recompute->value.slots, parameters.recompute->where, slots);
  for (std::size_t slot = 0; slot < slots; ++slot)
    recomputed.push_back(parameters.recomputes(slot));
  return recomputed;
}

std::vector<MemoryId> stores_of(const Problem& problem, const PipelineParameters& parameters,
                                const std::vector<ProcessorId>& devices) {
  std::vector<MemoryId> stores;
  for (std::size_t d = 0; d < devices.size(); ++d) {
    const MemoryId home = problem.platform[devices[d]].memory;
    for (std::size_t other = 0; other < d; ++other)
      if (problem.platform[devices[other]].memory == home)
        refuse(parameters.where,
               fmt::format("`{}` and `{}` share the memory `{}`; offloading is for "
                           "devices that have one each",
                           problem.platform[devices[other]].name, problem.platform[devices[d]].name,
                           problem.platform[home].name));
    stores.push_back(storage_for(problem, home, parameters.to, parameters.where));
  }
  return stores;
}

void save_memory(Schedule& schedule, const Problem& problem, const PipelineParameters& parameters,
                 const std::vector<ProcessorId>& devices) {
  if (parameters.recomputes_slots())
    recompute(schedule, recomputed_slots(parameters, schedule.placement.size()));
  if (!parameters.offloads()) return;
  const Located<SlotChoice>& choice = *parameters.offload;
  if (!schedule.partners.empty())
    refuse(choice.where,
           fmt::format("`{}` moves what slots keep to the memories of partners already",
                       parameters.name));
  require_slots(choice.value, choice.where, schedule.placement.size());
  schedule.stores = stores_of(problem, parameters, devices);
  Offloader offloader(schedule, choice.value, static_cast<std::uint32_t>(parameters.microbatches),
                      static_cast<std::size_t>(parameters.distance));
  for (auto& order : schedule.orders) order = offloader.run(order);
}

Schedule with_whole_slots(Schedule schedule) {
  schedule.operators.clear();
  recompute(schedule, std::vector<bool>(schedule.placement.size(), true));
  return schedule;
}

void add_recomputation(SlotCosts& costs, const PipelineParameters& parameters) {
  for (std::uint32_t slot = 0; slot < costs.slots.size(); ++slot)
    if (parameters.recomputes(slot)) costs.slots[slot].backward_input += costs.slots[slot].forward;
}

void add_recomputation(SlotCosts& costs, SlotSlack& slack, const Problem& problem,
                       const Slots& slots, const PipelineParameters& parameters) {
  add_recomputation(costs, parameters);
  for (std::uint32_t slot = 0; slot < costs.slots.size(); ++slot) {
    if (!parameters.recomputes(slot)) continue;
    SlotCosts::Slot& its = costs.slots[slot];
    slack.slots[slot].backward_ahead += its.forward;
    its.saved = Bytes{};
    for (const TensorId tensor : slots.kept(slot, true))
      its.saved += problem.workload[tensor].bytes;
    its.held = std::min(its.held, its.saved);
  }
}

}  // namespace plimsoll
