/// A second opinion: plays a plan by looking at every step at every instant. Quadratic, and shares
/// no code with the engine: it reads the plan, the workload's given times and the platform's
/// numbers itself. Copies cross one link or two; all links are `fifo` and nothing is erased.
#pragma once

#include "plan/core/plan.hpp"
#include "workload/core/workload.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace plimsoll::test {

class Replay {
 public:
  Replay(const Plan& plan, const Workload& workload, const Platform& platform)
      : plan_(plan),
        workload_(workload),
        platform_(platform),
        start_(plan.steps.size(), kNever),
        end_(plan.steps.size(), kNever),
        completed_(plan.steps.size(), false),
        freed_(plan.buffers.size(), false),
        made_(plan.buffers.size(), false),
        used_(platform.memories.size(), 0),
        peak(platform.memories.size(), 0) {
    for (const BufferId b : plan.initial) {
      const Bytes usable = platform[plan.buffers[at(b)].memory].usable();
      if (!usable.is_unlimited() && used_[memory_of(b)] + bytes(b) > usable.count()) return;
      made_[at(b)] = true;
      hold(memory_of(b), bytes(b));
    }
    std::int64_t now = 0;
    for (;;) {
      // Completions and releases first, then starts in issue order; again while something ends at
      // once.
      do free_what_can_be(now);
      while (start_what_can(now));
      std::int64_t next = kNever;
      for (std::size_t s = 0; s < end_.size(); ++s)
        if (end_[s] > now) next = std::min(next, end_[s]);
      if (next == kNever) break;
      now = next;
    }
    makespan = now;
    finished = std::ranges::none_of(end_, [](std::int64_t e) { return e == kNever; });
  }

 private:
  static constexpr std::int64_t kNever = INT64_MAX;
  const Plan& plan_;
  const Workload& workload_;
  const Platform& platform_;
  std::vector<std::int64_t> start_, end_;
  std::vector<bool> completed_;  ///< by step: its end has been seen
  std::vector<bool> freed_, made_;
  std::vector<std::int64_t> used_;

 public:
  bool finished = false;
  std::int64_t makespan = 0;       ///< ps
  std::vector<std::int64_t> peak;  ///< bytes, by memory

 private:
  static std::size_t at(auto id) { return static_cast<std::size_t>(id); }
  std::size_t memory_of(BufferId b) const { return at(plan_.buffers[at(b)].memory); }
  std::int64_t bytes(BufferId b) const {
    return workload_[plan_.buffers[at(b)].tensor].bytes.count();
  }
  bool started(std::size_t s) const { return start_[s] != kNever; }

  void hold(std::size_t memory, std::int64_t size) {
    used_[memory] += size;
    peak[memory] = std::max(peak[memory], used_[memory]);
  }

  std::int64_t workspace(const Step& step) const {
    if (step.kind == StepKind::copy) return 0;
    std::int64_t size = workload_[step.op].workspace.count();
    if (step.kind == StepKind::pair) size += workload_[step.second].workspace.count();
    return size;
  }

  /// A link in the direction of travel.
  struct Crossing {
    const Link* link = nullptr;
    std::size_t direction = 0;
  };

  std::optional<Crossing> link_between(MemoryId from, MemoryId to) const {
    for (const Link& link : platform_.links)
      for (const std::size_t direction : {0u, 1u})
        if (link.between[direction] == from && link.between[1 - direction] == to)
          return Crossing{&link, direction};
    return std::nullopt;
  }

  /// The links that a copy crosses: one, or two that meet in the first memory that has both.
  std::vector<Crossing> way(const Lane& lane) const {
    if (const auto one = link_between(lane.from, lane.to)) return {*one};
    for (std::uint32_t middle = 0; middle < platform_.memories.size(); ++middle) {
      const auto first = link_between(lane.from, MemoryId{middle});
      const auto second = link_between(MemoryId{middle}, lane.to);
      if (first && second) return {*first, *second};
    }
    return {};
  }

  std::int64_t duration(const Step& step) const {
    if (step.duration) return step.duration->count();
    if (step.kind == StepKind::compute) return workload_[step.op].given_time->count();
    const Lane& lane = plan_[step.lane];
    const Memory &from = platform_[lane.from], &to = platform_[lane.to];
    ByteRate rate = std::min(from.read.bandwidth, to.write.bandwidth);
    std::int64_t time = from.read.latency.count() + to.write.latency.count();
    for (const Crossing& crossing : way(lane)) {
      rate = std::min(rate, crossing.link->bandwidth[crossing.direction]);
      time += crossing.link->latency.count();
    }
    const std::int64_t block = std::max(from.block, to.block).count();
    const std::int64_t size = bytes(plan_.list(step.writes).front());
    const std::int64_t moved = (size + block - 1) / block * block;
    const std::int64_t ps = 1'000'000'000'000;  // sizes in tests stay below 9e6 bytes
    return time + (rate.is_unlimited() ? 0 : (moved * ps + rate.count() - 1) / rate.count());
  }

  std::size_t demand_memory(const Step& step) const {
    const Lane& lane = plan_[step.lane];
    return at(step.kind == StepKind::copy ? lane.to : platform_[lane.processor].memory);
  }

  std::int64_t demand(const Step& step) const {
    std::int64_t size = workspace(step);
    for (const BufferId b : plan_.list(step.writes)) size += bytes(b);
    return size;
  }

  /// All that read a buffer have ended, and a copy takes it away.
  bool taken_away(std::size_t b) const {
    bool taken = false;
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      for (const BufferId read : plan_.list(step.reads)) {
        if (at(read) != b) continue;
        if (!completed_[s]) return false;
        taken |= step.kind == StepKind::copy && step.source == SourceRelease::whole;
      }
    }
    return taken;
  }

  void free_what_can_be(std::int64_t now) {
    const auto free = [&](BufferId b) {
      freed_[at(b)] = true;
      used_[memory_of(b)] -= bytes(b);
    };
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      if (end_[s] != now || completed_[s]) continue;
      completed_[s] = true;
      used_[demand_memory(plan_.steps[s])] -= workspace(plan_.steps[s]);
    }
    for (const Release& release : plan_.releases) {
      const auto after = plan_.after(release);
      const bool over =
          std::ranges::all_of(after, [&](StepId s) { return bool{completed_[at(s)]}; });
      if (over && !freed_[at(release.buffer)]) free(release.buffer);
    }
    for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b)
      if (!freed_[b] && made_[b] && taken_away(b)) free(BufferId{b});
  }

  bool may_start(std::size_t s) const {
    const Step& step = plan_.steps[s];
    const Lane& lane = plan_[step.lane];
    const bool copy = step.kind == StepKind::copy;
    for (std::size_t other = 0; other < s; ++other) {
      if (plan_.steps[other].lane != step.lane) continue;
      if (copy ? !started(other) : !completed_[other]) return false;
    }
    for (const BufferId b : plan_.list(step.reads))
      for (std::size_t other = 0; other < plan_.steps.size(); ++other)
        for (const BufferId made : plan_.list(plan_.steps[other].writes))
          if (made == b && !completed_[other]) return false;
    for (const Dependency& d : plan_.after(step))
      if (d.edge == Dependency::Edge::after_end ? !completed_[at(d.on)] : !started(at(d.on)))
        return false;
    if (copy && (port_is_busy(lane) || copy_out_is_not_over(s))) return false;
    const MemoryId memory{static_cast<std::uint32_t>(demand_memory(step))};
    if (demand(step) > 0 && std::ranges::count(plan_.ordered_grants, memory) > 0)
      for (std::size_t other = 0; other < s; ++other)
        if (demand_memory(plan_.steps[other]) == at(memory) && demand(plan_.steps[other]) > 0 &&
            !started(other))
          return false;
    Bytes usable = platform_[memory].usable();
    for (const auto& [limited, bytes] : plan_.limits)
      if (limited == memory) usable = std::min(usable, bytes);
    return usable.is_unlimited() || used_[at(memory)] + demand(step) <= usable.count();
  }

  bool port_is_busy(const Lane& lane) const {
    const std::vector<Crossing> wanted = way(lane);
    for (std::size_t other = 0; other < plan_.steps.size(); ++other) {
      const Lane& its = plan_[plan_.steps[other].lane];
      if (plan_.steps[other].kind != StepKind::copy || !started(other) || completed_[other])
        continue;
      for (const Crossing& held : way(its))
        for (const Crossing& mine : wanted)
          if (held.link == mine.link &&
              (mine.link->duplex == Duplex::half || held.direction == mine.direction))
            return true;
    }
    return false;
  }

  /// A copy that was issued before this one takes a stay of the same value out of its destination,
  /// and has not done so.
  bool copy_out_is_not_over(std::size_t s) const {
    const Buffer& to = plan_[plan_.list(plan_.steps[s].writes).front()];
    for (std::size_t other = 0; other < s; ++other) {
      const Step& out = plan_.steps[other];
      if (out.kind != StepKind::copy || out.source == SourceRelease::keep) continue;
      const BufferId source = plan_.list(out.reads).front();
      const Buffer& from = plan_[source];
      if (from.tensor == to.tensor && from.microbatch == to.microbatch &&
          from.instance == to.instance && from.memory == to.memory && !freed_[at(source)])
        return true;
    }
    return false;
  }

  bool start_what_can(std::int64_t now) {
    bool at_once = false;
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      if (started(s) || !may_start(s)) continue;
      start_[s] = now;
      end_[s] = now + duration(step);
      // What ends in this instant is seen in the next round only.
      if (end_[s] == now) at_once = true;
      hold(demand_memory(step), demand(step));
      for (const BufferId b : plan_.list(step.writes)) made_[at(b)] = true;
    }
    return at_once;
  }
};

}  // namespace plimsoll::test
