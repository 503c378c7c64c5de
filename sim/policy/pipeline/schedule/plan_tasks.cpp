#include "policy/pipeline/schedule/plan_tasks.hpp"

#include "base/dense_id.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

namespace plimsoll {

namespace {

using Kind = Task::Kind;

/// An operator on a device, or both halves of a backward.
struct Run {
  std::uint32_t stage = 0, microbatch = 0;
  Phase phase = Phase::forward;
  bool is_whole = false;     ///< a backward, or both of its halves
  bool begins_pair = false;  ///< a forward beside which a backward runs
};

constexpr std::size_t kClasses = 3;

/// Forwards, backwards and weight halves each have an order along the chain.
std::size_t class_of(const Run& run) {
  if (run.phase == Phase::forward) return 0;
  return run.phase == Phase::backward_weight ? 2 : 1;
}

class PlanReader {
 public:
  PlanReader(const Plan& plan, const Workload& workload, const ChainView& chain,
             const Location& where)
      : plan_(plan), workload_(workload), chain_(chain), where_(where) {
    if (plan.steady_from_microbatch) refuse("does not end in a flush");
    find_stages();
    find_devices();
    read_steps();
    place_stages();
  }

  std::vector<std::size_t> cuts() {
    find_cuts();
    even_out();
    std::vector<std::size_t> cuts;
    for (std::size_t s = 0; s < cut_.size(); ++s)
      if (cut_[s]) cuts.push_back(s);
    return cuts;
  }

  Schedule run() {
    find_cuts();
    even_out();
    Schedule schedule;
    for (std::size_t s = 0; s < device_.size(); ++s) {
      if (cut_[s]) schedule.placement.push_back(device_[s]);
      slot_.push_back(static_cast<std::uint32_t>(schedule.placement.size() - 1));
    }
    for (const auto& runs : runs_) schedule.orders.push_back(order_of(runs));
    return schedule;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    plimsoll::refuse(where_,
                     "a schedule of PyTorch's form cannot say what this plan does: it " + what);
  }

  void find_stages() {
    stage_.assign(workload_.operators.size(), 0);
    for (std::uint32_t s = 0; s < chain_.stages.size(); ++s) {
      for (std::uint32_t op = chain_.stages[s].forward_begin; op < chain_.stages[s].forward_end;
           ++op)
        stage_[op] = s;
      for (const OperatorId op : chain_.backward(s)) stage_[index(op)] = s;
    }
  }

  void find_devices() {
    std::uint32_t devices = 0;
    for (const Lane& lane : plan_.lanes)
      device_of_lane_.push_back(lane.kind == Lane::Kind::stream ? devices++ : kNone);
    runs_.resize(devices);
    backward_beside_.resize(devices);
    forward_beside_.resize(devices, kNoOperator);
    in_pairs_backward_.resize(devices, false);
  }

  Run run_of(OperatorId op, std::uint32_t microbatch) const {
    const Phase phase = workload_[op].phase;
    return {stage_[index(op)], microbatch, phase, phase == Phase::backward, false};
  }

  void read_steps() {
    for (const Step& step : plan_.steps) {
      if (step.kind == StepKind::reduce) continue;  // of replicas: each has the schedule
      if (step.kind == StepKind::copy) {
        if (step.source != SourceRelease::keep) refuse("moves what stages keep to other memories");
      } else if (workload_[step.op].phase != Phase::optimizer) {
        if (workload_[step.op].phase == Phase::forward && step.instance > 0)
          refuse("recomputes what stages keep");
        read_step(step, device_of_lane_[index(step.lane)]);
      }
    }
    for (std::uint32_t device = 0; device < runs_.size(); ++device) end_pair(device);
  }

  void read_step(const Step& step, std::uint32_t device) {
    std::vector<Run>& runs = runs_[device];
    Run run = run_of(step.op, step.microbatch);
    const bool is_of_pair = backward_beside_[device] && run.phase == Phase::forward &&
                            step.kind == StepKind::compute &&
                            run.microbatch == runs.back().microbatch &&
                            index(step.op) == index(forward_beside_[device]) + 1;
    if (!is_of_pair) end_pair(device);
    if (step.kind == StepKind::pair) {
      if (run.phase != Phase::forward) {
        run.is_whole = true;
      } else {
        run.begins_pair = true;
        backward_beside_[device] = run_of(step.second, step.second_microbatch);
      }
    }
    forward_beside_[device] = step.op;
    if (run.phase == Phase::forward) in_pairs_backward_[device] = false;
    if (in_pairs_backward_[device] && is_other_half(runs.back(), run))
      runs.back().is_whole = true;
    else
      runs.push_back(run);
  }

  static bool is_other_half(const Run& first, const Run& second) {
    return first.phase == Phase::backward_input && second.phase == Phase::backward_weight &&
           first.stage == second.stage && first.microbatch == second.microbatch;
  }

  /// The operators of a pair's forward come first, then those of its backward, which is a whole one
  /// whose halves follow each other.
  void end_pair(std::uint32_t device) {
    if (!backward_beside_[device]) return;
    runs_[device].push_back(*backward_beside_[device]);
    backward_beside_[device].reset();
    in_pairs_backward_[device] = true;
  }

  void place_stages() {
    device_.assign(chain_.stages.size(), kNone);
    has_.assign(chain_.stages.size(), {});
    for (std::uint32_t device = 0; device < runs_.size(); ++device)
      for (const Run& run : runs_[device]) {
        if (device_[run.stage] == kNone) device_[run.stage] = device;
        if (device_[run.stage] != device) refuse("runs a stage on several devices");
        has_[run.stage][class_of(run)] = true;
        if (run.is_whole) whole_.emplace(run.stage, run.microbatch);
      }
  }

  /// A cut wherever some microbatch does something between two stages.
  void find_cuts() {
    std::vector<bool> broken(device_.size() + 1, false);
    for (const auto& runs : runs_)
      for (std::size_t r = 0; r < runs.size(); ++r) {
        const Run& run = runs[r];
        const bool forward = run.phase == Phase::forward;
        if (r > 0 && goes_on(runs[r - 1], run)) continue;
        const std::size_t before = run.stage + (forward ? 0U : 1U);
        // An embedding, at the begin of a network or of its decoder, has no half for its input.
        if (!forward && (before == device_.size() || !has_[before][class_of(run)])) continue;
        broken[before] = true;
      }
    for (std::size_t s = 0; s < device_.size(); ++s)
      cut_.push_back(s == 0 || device_[s] != device_[s - 1] || broken[s]);
  }

  /// Whether `b` belongs to the task of `a`, which runs just before it: to the same stage or the
  /// next one in its direction. A weight half that follows its input half ends a task, unless the
  /// stage has halves that ran as one.
  [[nodiscard]] bool goes_on(const Run& a, const Run& b) const {
    const bool forward = b.phase == Phase::forward;
    if (a.microbatch != b.microbatch || (a.phase == Phase::forward) != forward) return false;
    if (forward) return a.stage == b.stage || a.stage + 1 == b.stage;
    if (a.stage != b.stage && a.stage != b.stage + 1) return false;
    return class_of(a) == class_of(b) || whole_.contains({a.stage, a.microbatch});
  }

  void even_out() {
    while (static_cast<std::size_t>(std::ranges::count(cut_, true)) % runs_.size() != 0) {
      std::size_t s = 1;
      while (s < cut_.size() && (cut_[s] || !is_in_turn(s))) ++s;
      if (s == cut_.size()) refuse("has not as many stages on every device");
      cut_[s] = true;
    }
  }

  /// Whether the slots before and after that of stage `s` are on one device.
  [[nodiscard]] bool is_in_turn(std::size_t s) const {
    std::size_t before = s, after = s;
    while (before > 0 && device_[before] == device_[s]) --before;
    while (after + 1 < device_.size() && device_[after] == device_[s]) ++after;
    return device_[before] != device_[s] && device_[before] == device_[after];
  }

  /// Whether all of the slot's backward is in weight halves, or none of it.
  [[nodiscard]] bool is_split(std::uint32_t slot) const {
    bool input = false, weight = false;
    for (std::size_t s = 0; s < slot_.size(); ++s) {
      input |= slot_[s] == slot && has_[s][1];
      weight |= slot_[s] == slot && has_[s][2];
    }
    return input && weight;
  }

  std::vector<Task> order_of(const std::vector<Run>& runs) const {
    std::vector<Task> order;
    bool in_pair = false;
    for (std::size_t r = 0; r < runs.size();) {
      const Run& first = runs[r];
      const std::uint32_t slot = slot_[first.stage];
      const bool forward = first.phase == Phase::forward;
      const bool halves = !forward && !in_pair && is_split(slot);
      bool whole = false;
      const auto belongs = [&](const Run& run) {
        if (slot_[run.stage] != slot || run.microbatch != first.microbatch) return false;
        if (forward || run.phase == Phase::forward)
          return forward && run.phase == Phase::forward && (&run == &first || !run.begins_pair);
        return !halves || whole || class_of(run) == class_of(first);
      };
      for (; r < runs.size() && belongs(runs[r]); ++r) whole |= runs[r].is_whole;
      const Kind kind = forward                ? Kind::forward
                        : !halves || whole     ? Kind::backward
                        : class_of(first) == 2 ? Kind::backward_weight
                                               : Kind::backward_input;
      order.push_back({kind, slot, first.microbatch, first.begins_pair});
      in_pair = first.begins_pair;
    }
    return order;
  }

  const Plan& plan_;
  const Workload& workload_;
  const ChainView& chain_;
  const Location& where_;
  std::vector<std::uint32_t> stage_;                 ///< by operator
  std::vector<std::uint32_t> device_of_lane_;        ///< kNone for channels
  std::vector<std::vector<Run>> runs_;               ///< by device, in order
  std::vector<std::optional<Run>> backward_beside_;  ///< by device: of the pair that is being read
  std::vector<OperatorId> forward_beside_;           ///< by device: the last operator
  std::vector<bool> in_pairs_backward_;              ///< by device
  std::vector<std::uint32_t> device_;                ///< by stage
  std::vector<std::array<bool, kClasses>> has_;      ///< by stage: runs of the class
  std::vector<bool> cut_;                            ///< by stage: a slot begins
  std::vector<std::uint32_t> slot_;                  ///< by stage
  std::set<std::pair<std::uint32_t, std::uint32_t>> whole_;  ///< stages and microbatches
};

}  // namespace

Schedule tasks_of(const Plan& plan, const Workload& workload, const ChainView& chain,
                  const Location& where) {
  return PlanReader(plan, workload, chain, where).run();
}

std::vector<std::size_t> cuts_of(const Plan& plan, const Workload& workload, const ChainView& chain,
                                 const Location& where) {
  return PlanReader(plan, workload, chain, where).cuts();
}

}  // namespace plimsoll
