#include "plan/build/repeated_plan.hpp"

#include <algorithm>
#include <stdexcept>

namespace plimsoll {
namespace {

constexpr std::size_t kMostSteps = 20'000'000;

[[noreturn]] void refuse(const Plan& plan, const std::string& what) {
  throw std::invalid_argument("a plan of policy `" + plan.policy + "` " + what +
                              ", and cannot be repeated to accumulate gradients");
}

class Repeater {
 public:
  Repeater(const Plan& plan, const Workload& workload, std::uint32_t count)
      : plan_(plan), workload_(workload), count_(count) {
    if (plan.microbatches != 1) refuse(plan, "is one of several microbatches");
    if (plan.steps.size() * count > kMostSteps) refuse(plan, "would have more than 2e7 steps");
    while (body_ < plan.steps.size() && !is_optimizer(plan.steps[body_])) ++body_;
    if (!std::all_of(plan.steps.begin() + static_cast<std::ptrdiff_t>(body_), plan.steps.end(),
                     [&](const Step& step) { return is_optimizer(step); }))
      refuse(plan, "does more after its optimizer");
    if (std::ranges::any_of(plan.arenas, &PlanArena::has_offsets))
      refuse(plan, "says where in memory everything lies");
    find_shared();
    find_made_by_optimizer();
    find_ends();
    find_left();
  }

  Plan repeat() {
    result_.policy = plan_.policy;
    result_.microbatches = count_;
    result_.lanes = plan_.lanes;
    result_.ordered_grants = plan_.ordered_grants;
    result_.limits = plan_.limits;
    result_.arenas = plan_.arenas;
    for (microbatch_ = 0; microbatch_ < count_; ++microbatch_) {
      add_buffers();
      const std::size_t begin = result_.steps.size();
      const bool is_last = microbatch_ + 1 == count_;
      for (std::size_t s = 0; s < (is_last ? plan_.steps.size() : body_); ++s) add_step(s, begin);
      add_releases(begin);
      if (!is_last) release_left(begin);
      before_ = begin;
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool is_optimizer(const Step& step) const {
    return step.kind == StepKind::compute && workload_[step.op].phase == Phase::optimizer;
  }

  [[nodiscard]] bool is_of_all(BufferId id) const {
    return workload_[plan_[id].tensor].lifetime == Lifetime::resident;
  }

  /// What is there before the first step and belongs to no microbatch is one for all; what a
  /// microbatch copies of it is its own.
  void find_shared() {
    is_shared_.resize(plan_.buffers.size(), false);
    for (const BufferId id : plan_.initial)
      is_shared_[static_cast<std::size_t>(id)] = is_of_all(id);
  }

  void find_made_by_optimizer() {
    is_of_optimizer_.resize(plan_.buffers.size(), false);
    for (std::size_t s = body_; s < plan_.steps.size(); ++s)
      for (const BufferId id : plan_.list(plan_.steps[s].writes))
        is_of_optimizer_[static_cast<std::size_t>(id)] = true;
  }

  /// Copies need not end in the order in which they start.
  void find_ends() {
    std::vector<bool> seen(plan_.lanes.size(), false);
    for (std::size_t s = 0; s < body_; ++s) {
      const auto lane = static_cast<std::size_t>(plan_.steps[s].lane);
      is_first_.push_back(!seen[lane]);
      seen[lane] = true;
    }
    is_first_.resize(plan_.steps.size(), false);
    for (std::size_t s = body_; s-- > 0;) {
      const auto lane = static_cast<std::size_t>(plan_.steps[s].lane);
      const bool is_channel = plan_.lanes[lane].kind == Lane::Kind::channel;
      if (is_channel || seen[lane]) ends_.push_back(s);
      seen[lane] = false;
    }
  }

  /// What neither a release nor a copy takes away.
  void find_left() {
    std::vector<bool> goes = is_shared_;
    for (const Release& release : plan_.releases)
      goes[static_cast<std::size_t>(release.buffer)] = true;
    for (const Step& step : plan_.steps)
      if (step.kind == StepKind::copy && step.source != SourceRelease::keep)
        goes[static_cast<std::size_t>(plan_.list(step.reads).front())] = true;
    for (std::size_t b = 0; b < goes.size(); ++b)
      if (!goes[b] && !is_of_optimizer_[b]) left_.push_back(b);
  }

  void add_buffers() {
    buffer_.resize(plan_.buffers.size());
    const bool is_last = microbatch_ + 1 == count_;
    for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
      if (is_shared_[b] && microbatch_ > 0) continue;
      if (is_of_optimizer_[b] && !is_last) continue;
      buffer_[b] = BufferId{static_cast<std::uint32_t>(result_.buffers.size())};
      Buffer buffer = plan_.buffers[b];
      if (!is_of_all(BufferId{b})) buffer.microbatch = is_of_optimizer_[b] ? 0 : microbatch_;
      result_.buffers.push_back(buffer);
    }
    for (const BufferId id : plan_.initial)
      if (microbatch_ == 0 || !is_shared_[static_cast<std::size_t>(id)])
        result_.initial.push_back(buffer_[static_cast<std::size_t>(id)]);
  }

  Slice add_list(Slice slice) {
    const auto begin = static_cast<std::uint32_t>(result_.buffer_lists.size());
    for (const BufferId id : plan_.list(slice))
      result_.buffer_lists.push_back(buffer_[static_cast<std::size_t>(id)]);
    return {begin, static_cast<std::uint32_t>(result_.buffer_lists.size())};
  }

  static StepId moved(std::size_t step, std::size_t begin) {
    return StepId{static_cast<std::uint32_t>(begin + step)};
  }

  /// The first step of each lane waits for all of the microbatch before.
  void wait_for_before(std::size_t step) {
    if (microbatch_ == 0 || !is_first_[step]) return;
    for (const std::size_t last : ends_)
      result_.dependencies.push_back({moved(last, before_), Dependency::Edge::after_end});
  }

  void add_step(std::size_t s, std::size_t begin) {
    Step step = plan_.steps[s];
    step.microbatch = step.second_microbatch = s < body_ ? microbatch_ : 0;
    step.reads = add_list(step.reads);
    step.writes = add_list(step.writes);
    step.after.begin = static_cast<std::uint32_t>(result_.dependencies.size());
    for (const Dependency& dependency : plan_.after(plan_.steps[s]))
      result_.dependencies.push_back(
          {moved(static_cast<std::size_t>(dependency.on), begin), dependency.edge});
    wait_for_before(s);
    step.after.end = static_cast<std::uint32_t>(result_.dependencies.size());
    result_.steps.push_back(step);
  }

  /// Until the last microbatch the optimizer does not run, so that nothing waits for it: what it alone was waited for
  /// goes at the end of a microbatch.
  void add_releases(std::size_t begin) {
    const bool is_last = microbatch_ + 1 == count_;
    for (const Release& release : plan_.releases) {
      const auto b = static_cast<std::size_t>(release.buffer);
      if ((is_shared_[b] || is_of_optimizer_[b]) && !is_last) continue;
      const auto from = static_cast<std::uint32_t>(result_.release_steps.size());
      for (const StepId step : plan_.after(release))
        if (is_last || static_cast<std::size_t>(step) < body_)
          result_.release_steps.push_back(moved(static_cast<std::size_t>(step), begin));
      if (result_.release_steps.size() == from) add_ends(begin);
      result_.releases.push_back({buffer_[b], steps_since(from)});
    }
  }

  void add_ends(std::size_t begin) {
    for (const std::size_t step : ends_) result_.release_steps.push_back(moved(step, begin));
  }

  [[nodiscard]] Slice steps_since(std::uint32_t from) const {
    return {from, static_cast<std::uint32_t>(result_.release_steps.size())};
  }

  void release_left(std::size_t begin) {
    for (const std::size_t b : left_) {
      const auto from = static_cast<std::uint32_t>(result_.release_steps.size());
      add_ends(begin);
      result_.releases.push_back({buffer_[b], steps_since(from)});
    }
  }

  const Plan& plan_;
  const Workload& workload_;
  std::uint32_t count_;
  Plan result_;
  std::size_t body_ = 0;               ///< steps before the optimizer's
  std::vector<bool> is_shared_;        ///< by buffer
  std::vector<bool> is_of_optimizer_;  ///< by buffer: made by it, once
  std::vector<bool> is_first_;         ///< by step: of its lane
  std::vector<std::size_t> ends_;      ///< the last steps of streams, all of channels
  std::vector<std::size_t> left_;      ///< buffers that stay to the end of a microbatch
  std::vector<BufferId> buffer_;       ///< by buffer of the plan, in this microbatch
  std::uint32_t microbatch_ = 0;
  std::size_t before_ = 0;  ///< the first step of the microbatch before
};

}  // namespace

Plan repeated(const Plan& plan, const Workload& workload, std::uint32_t count) {
  return Repeater(plan, workload, count).repeat();
}

}  // namespace plimsoll
