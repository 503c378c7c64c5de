#include "plan/core/issue_order.hpp"

#include "workload/cost/cost_model.hpp"

#include <algorithm>

namespace plimsoll {
namespace {

class Issuing {
 public:
  Issuing(const Plan& plan, const Workload& workload, const Platform& platform,
          const Readers& readers)
      : plan_(plan),
        workload_(workload),
        platform_(platform),
        readers_(readers),
        home_of_(platform.memories.size(), kNone),
        hosts_(platform.processors.size()) {
    for (std::uint32_t p = 0; p < platform.processors.size(); ++p)
      home_of_[index(platform.processors[p].memory)] = p;
  }

  IssueOrder run() {
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      if (step.kind == StepKind::copy) note_message(step);
      if (!is_move(step.kind)) issue(StepId{s});
    }
    return std::move(order_);
  }

 private:
  struct Host {
    std::uint32_t last = kNone;  ///< in IssueOrder::steps
    std::vector<StepId> makers;  ///< of messages since then
  };

  /// Whether the copy leads from the memory of one processor to that of another.
  bool is_message(const Step& copy) const {
    const Lane& lane = plan_[copy.lane];
    const std::uint32_t from = home_of_[index(lane.from)], to = home_of_[index(lane.to)];
    return from != kNone && to != kNone && from != to;
  }

  void note_message(const Step& copy) {
    if (!is_message(copy)) return;
    const std::uint32_t sender = home_of_[index(plan_[copy.lane].from)];
    const StepId maker = readers_.producer(plan_.list(copy.reads).front());
    if (maker == kNoStep || is_move(plan_[maker].kind)) return;
    if (platform_.processors[sender].host.waits_for_messages)
      hosts_[sender].makers.push_back(maker);
  }

  Time issue_time(const IssuingHost& host, OperatorId id) const {
    const Operator& op = workload_[id];
    const bool is_given = op.given_time && op.collective.kind == CollectiveKind::none;
    if (is_given || is_second_half(workload_, id)) return {};
    const bool is_backward = op.phase != Phase::forward && op.phase != Phase::optimizer;
    return is_backward ? host.per_backward.value_or(host.per_operator) : host.per_operator;
  }

  Time issue_time(const IssuingHost& host, const Step& step) const {
    Time time = issue_time(host, step.op);
    if (step.kind == StepKind::pair) time += issue_time(host, step.second);
    return time;
  }

  void issue(StepId id) {
    const Step& step = plan_[id];
    const std::uint32_t p = index(plan_[step.lane].processor);
    const IssuingHost& cost = platform_.processors[p].host;
    const Time time = issue_time(cost, step);
    if (time == Time{}) return;
    Host& host = hosts_[p];
    const auto begin = static_cast<std::uint32_t>(order_.awaited.size());
    order_.awaited.insert(order_.awaited.end(), host.makers.begin(), host.makers.end());
    host.makers.clear();
    if (cost.waits_for_messages) await_messages(step);
    if (host.last != kNone) order_.steps[host.last].next = id;
    host.last = static_cast<std::uint32_t>(order_.steps.size());
    order_.steps.push_back(
        {id, kNoStep, time, {begin, static_cast<std::uint32_t>(order_.awaited.size())}});
  }

  void await_messages(const Step& step) {
    for (const BufferId buffer : plan_.list(step.reads)) {
      const StepId maker = readers_.producer(buffer);
      if (maker == kNoStep || plan_[maker].kind != StepKind::copy) continue;
      if (is_message(plan_[maker])) order_.awaited.push_back(maker);
    }
  }

  const Plan& plan_;
  const Workload& workload_;
  const Platform& platform_;
  const Readers& readers_;
  std::vector<std::uint32_t> home_of_;  ///< by memory: the processor that computes in it
  std::vector<Host> hosts_;             ///< by processor
  IssueOrder order_;
};

}  // namespace

IssueOrder issue_order(const Plan& plan, const Workload& workload, const Platform& platform,
                       const Readers& readers) {
  const auto has_host = [](const Processor& it) { return it.host.per_operator > Time{}; };
  if (std::ranges::none_of(platform.processors, has_host)) return {};
  return Issuing(plan, workload, platform, readers).run();
}

}  // namespace plimsoll
