#include "plan/plan_checker.hpp"

#include "plan/readers.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::size_t kMostProblems = 20;

class Checker {
 public:
  Checker(const Plan& plan, const Workload& workload, const Platform& platform,
          const Topology& topology)
      : plan_(plan), workload_(workload), platform_(platform), topology_(topology) {}

  std::vector<std::string> run() {
    if (ranges_hold()) {
      check_lanes();
      if (problems_.empty()) check_steps();
      if (problems_.empty()) check_buffers_and_releases();
      if (problems_.empty()) check_completeness();
    }
    return std::move(problems_);
  }

 private:
  template <class... Args>
  void refuse(fmt::format_string<Args...> text, Args&&... args) {
    if (problems_.size() < kMostProblems)
      problems_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }
  std::string name(StepId step) const { return describe(plan_, step, workload_, platform_); }
  std::string name(BufferId buffer) const {
    return fmt::format("`{}` in `{}`", workload_[plan_[buffer].tensor].name,
                       platform_[plan_[buffer].memory].name);
  }

  /// Everything else indexes without looking; so the ids are looked at first.
  bool ranges_hold() {
    const auto within = [](auto id, std::size_t size) {
      return static_cast<std::size_t>(id) < size;
    };
    const auto slice = [](Slice s, std::size_t size) { return s.begin <= s.end && s.end <= size; };
    for (const Lane& lane : plan_.lanes) {
      const bool ok = lane.kind == Lane::Kind::stream
                          ? within(lane.processor, platform_.processors.size())
                          : within(lane.from, platform_.memories.size()) &&
                                within(lane.to, platform_.memories.size());
      if (!ok) refuse("a lane names a processor or memory that the platform does not have");
    }
    for (const Buffer& buffer : plan_.buffers)
      if (!within(buffer.tensor, workload_.tensors.size()) ||
          !within(buffer.memory, platform_.memories.size()))
        refuse("a buffer names a tensor or memory that does not exist");
    for (const BufferId buffer : plan_.buffer_lists)
      if (!within(buffer, plan_.buffers.size()))
        refuse("a step names a buffer that does not exist");
    for (const BufferId buffer : plan_.initial)
      if (!within(buffer, plan_.buffers.size())) refuse("an initial buffer does not exist");
    for (const Step& step : plan_.steps) {
      const bool computes = step.kind != StepKind::copy;
      if (!within(step.lane, plan_.lanes.size()) || !slice(step.reads, plan_.buffer_lists.size()) ||
          !slice(step.writes, plan_.buffer_lists.size()) ||
          !slice(step.after, plan_.dependencies.size()) ||
          (computes && !within(step.op, workload_.operators.size())) ||
          (step.kind == StepKind::pair && !within(step.second, workload_.operators.size())))
        refuse("a step names a lane, operator or list that does not exist");
    }
    for (const Dependency& dependency : plan_.dependencies)
      if (!within(dependency.on, plan_.steps.size()))
        refuse("a step depends on a step that does not exist");
    for (const Release& release : plan_.releases)
      if (!within(release.buffer, plan_.buffers.size()) ||
          !slice(release.after, plan_.release_steps.size()))
        refuse("a release names a buffer or list that does not exist");
    for (const StepId step : plan_.release_steps)
      if (!within(step, plan_.steps.size()))
        refuse("a release waits for a step that does not exist");
    for (const MemoryId memory : plan_.ordered_grants)
      if (!within(memory, platform_.memories.size()))
        refuse("a memory with ordered grants does not exist");
    return problems_.empty();
  }

  void check_lanes() {
    for (const Lane& lane : plan_.lanes) {
      if (lane.kind == Lane::Kind::stream) {
        if (lane.stream >= platform_[lane.processor].streams)
          refuse("`{}` has no stream {}", platform_[lane.processor].name, lane.stream);
      } else if (!topology_.route(lane.from, lane.to)) {
        refuse("no link leads from `{}` to `{}`", platform_[lane.from].name,
               platform_[lane.to].name);
      }
    }
  }

  void check_steps() {
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      const bool on_stream = plan_[step.lane].kind == Lane::Kind::stream;
      if (on_stream == (step.kind == StepKind::copy))
        refuse("{} is in a lane of the wrong kind", name(StepId{s}));
      else if (step.kind == StepKind::copy)
        check_copy(StepId{s});
      else
        check_compute(StepId{s});
    }
  }

  void check_copy(StepId id) {
    const Step& step = plan_[id];
    const Lane& lane = plan_[step.lane];
    const auto reads = plan_.list(step.reads), writes = plan_.list(step.writes);
    if (reads.size() != 1 || writes.size() != 1)
      return refuse("a copy reads {} buffers and writes {}; expected one of each", reads.size(),
                    writes.size());
    const Buffer &from = plan_[reads[0]], &to = plan_[writes[0]];
    if (from.memory != lane.from || to.memory != lane.to)
      refuse("{}: its buffers are not in the memories of its channel", name(id));
    if (from.tensor != to.tensor && workload_[to.tensor].inside != from.tensor)
      refuse("{}: it reads `{}`, which does not hold that value", name(id),
             workload_[from.tensor].name);
    if (from.microbatch != to.microbatch)
      refuse("{}: source and destination are of different microbatches", name(id));
    if (step.source == SourceRelease::progressive &&
        platform_[lane.from].allocator != AllocatorKind::ideal)
      refuse("{}: progressive release needs the `ideal` allocator in `{}`", name(id),
             platform_[lane.from].name);
    if (step.source == SourceRelease::progressive && crosses_fair_link(lane))
      refuse("{}: progressive release needs `fifo` links", name(id));
  }

  bool crosses_fair_link(const Lane& lane) const {
    return std::ranges::any_of(topology_.route(lane.from, lane.to)->hops, [&](const Hop& hop) {
      return platform_[hop.link].sharing == Sharing::fair;
    });
  }

  bool holds_value(const Buffer& buffer, TensorId value, std::uint32_t microbatch,
                   MemoryId memory) const {
    const Lifetime lifetime = workload_[value].lifetime;
    const bool shared = lifetime == Lifetime::resident || lifetime == Lifetime::accumulated;
    return buffer.memory == memory && (shared || buffer.microbatch == microbatch) &&
           (buffer.tensor == value || workload_[value].inside == buffer.tensor);
  }

  void check_compute(StepId id) {
    const Step& step = plan_[id];
    std::vector<BufferId> unmatched(plan_.list(step.writes).begin(), plan_.list(step.writes).end());
    check_part(id, step.op, step.microbatch, step.form, unmatched);
    if (step.kind == StepKind::pair) {
      check_part(id, step.second, step.second_microbatch, step.second_form, unmatched);
      if (!step.duration) refuse("{}: an overlapped pair needs a duration", name(id));
    } else if (step.duration) {
      refuse("{}: only an overlapped pair states its duration", name(id));
    }
    for (const BufferId buffer : unmatched)
      refuse("{} writes {}, which is none of its outputs", name(id), name(buffer));
  }

  void check_part(StepId id, OperatorId op_id, std::uint32_t microbatch, Form form,
                  std::vector<BufferId>& unmatched) {
    const Step& step = plan_[id];
    const Operator& op = workload_[op_id];
    const MemoryId memory = platform_[plan_[step.lane].processor].memory;
    const auto reads = plan_.list(step.reads);
    const auto is_read = [&](TensorId value) {
      return std::ranges::any_of(
          reads, [&](BufferId b) { return holds_value(plan_[b], value, microbatch, memory); });
    };
    for (const TensorId value : workload_.list(op.reads))
      if (!is_read(value))
        refuse("{} does not read `{}` from `{}`", name(id), workload_[value].name,
               platform_[memory].name);
    for (const TensorId tensor : workload_.list(form == Form::keep ? op.kept : op.bare)) {
      const auto written = std::ranges::find_if(unmatched, [&](BufferId b) {
        return plan_[b].tensor == tensor && holds_value(plan_[b], tensor, microbatch, memory);
      });
      if (written != unmatched.end())
        unmatched.erase(written);
      else if (op.phase == Phase::forward || !is_read(tensor))
        refuse("{} does not write its output `{}`", name(id), workload_[tensor].name);
    }
  }

  void check_buffers_and_releases() {
    const Readers readers(plan_);
    std::vector<std::uint8_t> made(plan_.buffers.size(), 0), freed(plan_.buffers.size(), 0);
    for (const BufferId buffer : plan_.initial) ++made[static_cast<std::size_t>(buffer)];
    for (const Step& step : plan_.steps)
      for (const BufferId buffer : plan_.list(step.writes)) {
        auto& count = made[static_cast<std::size_t>(buffer)];
        if (count < 2) ++count;
      }
    for (std::uint32_t b = 0; b < plan_.buffers.size(); ++b) {
      const BufferId buffer{b};
      if (made[b] > 1) refuse("{} is written twice", name(buffer));
      if (made[b] == 0) refuse("{} is read but never written", name(buffer));
      if (readers.taken_by(buffer) != kNoStep) freed[b] = 1;
    }
    for (const Release& release : plan_.releases) check_release(release, readers, freed);
  }

  void check_release(const Release& release, const Readers& readers,
                     std::vector<std::uint8_t>& freed) {
    const auto b = static_cast<std::size_t>(release.buffer);
    const Lifetime lifetime = workload_[plan_[release.buffer].tensor].lifetime;
    if (freed[b]++ != 0) refuse("{} is released twice", name(release.buffer));
    if (lifetime == Lifetime::resident || lifetime == Lifetime::input)
      refuse("{} is released, but it is resident", name(release.buffer));
    const auto after = plan_.after(release);
    if (after.empty()) refuse("{} is released without waiting for anything", name(release.buffer));
    std::vector<StepId> users(readers.of(release.buffer).begin(), readers.of(release.buffer).end());
    const StepId producer = readers.producer(release.buffer);
    if (users.empty() && producer != kNoStep) users.push_back(producer);
    for (const StepId user : last_in_each_lane(plan_, users)) {
      const bool waits = std::ranges::any_of(after, [&](StepId s) {
        return s == user || (plan_[s].lane == plan_[user].lane && s > user &&
                             plan_[plan_[s].lane].kind == Lane::Kind::stream);
      });
      if (!waits) refuse("{} is released before {} has read it", name(release.buffer), name(user));
    }
  }

  void check_completeness() {
    const std::size_t operators = workload_.operators.size();
    std::vector<std::uint32_t> runs(operators * plan_.microbatches, 0);
    const auto count = [&](OperatorId op, std::uint32_t microbatch) {
      if (microbatch < plan_.microbatches)
        ++runs[microbatch * operators + static_cast<std::size_t>(op)];
    };
    for (const Step& step : plan_.steps) {
      if (step.kind == StepKind::copy) continue;
      count(step.op, step.microbatch);
      if (step.kind == StepKind::pair) count(step.second, step.second_microbatch);
    }
    for (std::uint32_t m = 0; m < plan_.microbatches; ++m)
      for (std::size_t op = 0; op < operators; ++op) {
        const Operator& it = workload_.operators[op];
        const std::uint32_t times = runs[m * operators + op];
        if (it.phase == Phase::optimizer) continue;
        if (times == 0) refuse("`{}` of microbatch {} is left out", it.name, m);
        if (times > 1 && it.phase != Phase::forward)
          refuse("`{}` of microbatch {} runs {} times", it.name, m, times);
      }
    check_optimizer(runs);
  }

  /// An optimizer operator runs once a step, after all microbatches.
  void check_optimizer(const std::vector<std::uint32_t>& runs) {
    const std::size_t operators = workload_.operators.size();
    for (std::size_t op = workload_.optimizer_begin; op < operators; ++op) {
      std::uint32_t times = 0;
      for (std::uint32_t m = 0; m < plan_.microbatches; ++m) times += runs[m * operators + op];
      if (times == 0) refuse("`{}` is left out", workload_.operators[op].name);
    }
  }

  const Plan& plan_;
  const Workload& workload_;
  const Platform& platform_;
  const Topology& topology_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> check_plan(const Plan& plan, const Workload& workload,
                                    const Platform& platform, const Topology& topology) {
  return Checker(plan, workload, platform, topology).run();
}

}  // namespace plimsoll
