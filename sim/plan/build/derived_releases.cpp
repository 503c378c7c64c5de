#include "plan/build/derived_releases.hpp"

#include "plan/core/readers.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace plimsoll {

namespace {

class Derivation {
 public:
  Derivation(Plan& plan, const Workload& workload, BufferFacts facts)
      : plan_(plan),
        workload_(workload),
        facts_(std::move(facts)),
        readers_(plan),
        last_in_lanes_(plan) {
    if (std::ranges::any_of(workload.tensors, &Tensor::cached)) hold_cached();
    std::ranges::sort(facts_.holds);
  }

  void run() {
    plan_.releases.reserve(plan_.buffers.size());
    plan_.release_steps.reserve(plan_.buffers.size());
    for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
      const BufferId buffer{b};
      if (is_marked(facts_.taken, buffer) || !goes(buffer)) continue;
      const auto begin = static_cast<std::uint32_t>(plan_.release_steps.size());
      const auto last = last_in_lanes_.of(users(buffer));
      plan_.release_steps.insert(plan_.release_steps.end(), last.begin(), last.end());
      if (plan_.release_steps.size() == begin)
        plan_.release_steps.push_back(readers_.producer(buffer));
      plan_.releases.push_back(
          {buffer, {begin, static_cast<std::uint32_t>(plan_.release_steps.size())}});
    }
  }

 private:
  using Pass = std::pair<LaneId, std::uint32_t>;  ///< what a lane runs of a microbatch

  /// The last of the forwards that are before all backwards.
  struct LastForward {
    StepId step = kNoStep;
    bool is_over = false;
  };

  void hold_cached() {
    const std::map<Pass, LastForward> last = last_forwards();
    for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
      const StepId maker = readers_.producer(BufferId{b});
      if (maker == kNoStep || !workload_[plan_.buffers[b].tensor].cached) continue;
      const auto found = last.find({plan_[maker].lane, plan_.buffers[b].microbatch});
      if (found != last.end() && maker < found->second.step)
        facts_.holds.emplace_back(BufferId{b}, found->second.step);
    }
  }

  std::map<Pass, LastForward> last_forwards() const {
    std::map<Pass, LastForward> last;
    const auto note = [&](StepId id, OperatorId op, std::uint32_t microbatch) {
      LastForward& it = last[{plan_[id].lane, microbatch}];
      if (workload_[op].phase != Phase::forward) it.is_over = true;
      if (!it.is_over) it.step = id;
    };
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      if (step.kind == StepKind::compute || step.kind == StepKind::pair)
        note(StepId{s}, step.op, step.microbatch);
      if (step.kind == StepKind::pair) note(StepId{s}, step.second, step.second_microbatch);
    }
    return last;
  }

  /// Whether the buffer is over before the plan is.
  bool goes(BufferId buffer) const {
    switch (workload_[plan_[buffer].tensor].lifetime) {
      case Lifetime::step:
        return true;
      case Lifetime::resident:  // the last version stays
        if (is_marked(facts_.is_superseded, buffer)) return true;
        if (is_marked(facts_.is_version, buffer)) return false;
        [[fallthrough]];
      case Lifetime::input:  // what was there stays; a copy of it goes
        return readers_.producer(buffer) != kNoStep;
      case Lifetime::stays:
        return is_marked(facts_.is_superseded, buffer);
      case Lifetime::accumulated:
        return std::ranges::any_of(readers_.of(buffer), [&](StepId s) {
          return plan_[s].kind == StepKind::compute &&
                 workload_[plan_[s].op].phase == Phase::optimizer;
        });
    }
    return false;
  }

  /// The steps that use the buffer, and what else its release waits for, in issue order.
  std::span<const StepId> users(BufferId buffer) {
    const auto of = readers_.of(buffer);
    const auto& holds = facts_.holds;
    auto held = std::ranges::lower_bound(holds, std::pair{buffer, StepId{}});
    if (held == holds.end() || held->first != buffer) return of;
    all_.assign(of.begin(), of.end());
    for (; held != holds.end() && held->first == buffer; ++held) all_.push_back(held->second);
    std::ranges::sort(all_);
    return all_;
  }

  Plan& plan_;
  const Workload& workload_;
  BufferFacts facts_;
  const Readers readers_;
  LastInLanes last_in_lanes_;
  std::vector<StepId> all_;  ///< of the buffer that is looked at
};

}  // namespace

void mark(std::vector<bool>& facts, BufferId buffer) {
  const auto b = static_cast<std::size_t>(buffer);
  if (b >= facts.size()) facts.resize(b + 1, false);
  facts[b] = true;
}

void derive_releases(Plan& plan, const Workload& workload, BufferFacts facts) {
  Derivation(plan, workload, std::move(facts)).run();
}

}  // namespace plimsoll
