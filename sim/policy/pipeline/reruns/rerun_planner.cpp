#include "policy/pipeline/reruns/rerun_planner.hpp"

#include "base/dense_id.hpp"
#include "platform/core/without_limits.hpp"
#include "policy/pipeline/parameters/device_limits.hpp"
#include "policy/pipeline/reruns/attention_cores.hpp"
#include "policy/pipeline/reruns/device_families.hpp"
#include "policy/pipeline/reruns/device_load.hpp"
#include "policy/pipeline/reruns/slot_plan.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Shares of what slots keep are counted in so many parts; the steps between those that are tried
/// at first, and how far beside the best of these others are.
constexpr std::int64_t kParts = 64, kCoarse = 4, kFine = 3;
/// Plans whose peaks are looked at, until all fit.
constexpr int kMostRounds = 8;
/// The room of the leanest plan is found to one part in so many.
constexpr std::int64_t kRoomParts = 128;

/// whole * parts / all, without overflow.
std::int64_t share_of(std::int64_t whole, std::int64_t parts, std::int64_t all) {
  return whole / all * parts + whole % all * parts / all;
}

class RerunPlanner {
 public:
  RerunPlanner(const Problem& problem, const PipelineParameters& parameters,
               const Schedule& schedule, const Partition& partition,
               const std::vector<ProcessorId>& devices)
      : problem_(problem),
        roomy_platform_(without_limits(problem.platform)),
        roomy_{problem.workload, problem.chain, roomy_platform_,
               problem.topology, nullptr,       problem.work},
        parameters_(parameters),
        reruns_(*parameters.operator_reruns()),
        partition_(partition),
        devices_(devices),
        schedule_(schedule),
        families_(device_families(schedule)) {
    refuse_moves();
    add_slots();
    schedule_.operators.resize(slots_.size());
    time_.resize(slots_.size(), 0);
  }

  Planned run() {
    if (!reruns_.has_budget()) return selective();
    for (const std::vector<Task>& order : schedule_.orders) loads_.push_back(device_loads(order));
    limits_ = device_limits(
        problem_, devices_,
        reruns_.budget.value_or(Located<Bytes>{Bytes::unlimited(), parameters_.recompute->where}));
    const std::vector<Bytes> plain = peaks();
    for (std::uint32_t d = 0; d < devices_.size(); ++d)
      room_.push_back(limits_[d].is_unlimited() ? 0 : (limits_[d] - plain[d]).count() + counted(d));
    tight_ = above_limit(plain);
    Families above = tight_;
    for (int round = 0; round < kMostRounds && !above.empty(); ++round) {
      for (const DeviceFamily* family : above)
        if (!plan(*family, false)) return leanest();
      const std::vector<Bytes> now = peaks();
      above = above_limit(now);
      if (above.empty()) improve(now);
      for (const DeviceFamily* family : above)
        for (const std::uint32_t d : family->devices)
          room_[d] -= std::max<std::int64_t>(0, (now[d] - limits_[d]).count());
    }
    return above.empty() ? planned() : leanest();
  }

 private:
  using Families = std::vector<const DeviceFamily*>;

  void refuse_moves() const {
    const Location& where = parameters_.recompute->where;
    if (parameters_.offloads())
      refuse(parameters_.offload->where,
             "`offload` moves what whole slots keep, and `recompute` chooses single "
             "operators of them; expected one of the two",
             "`recompute: full` goes with `offload`");
    if (!schedule_.partners.empty())
      refuse(where, fmt::format("`{}` moves what whole slots keep to the memories of "
                                "partners; expected `full`, or a list of slots",
                                parameters_.name));
  }

  // --- slots

  void add_slots() {
    const Slots slots(problem_, partition_, devices_, schedule_.placement);
    std::vector<OperatorGraph> wholes(devices_.size());  // made where asked for
    for (std::uint32_t slot = 0; slot < slots.count(); ++slot) {
      const std::uint32_t device = schedule_.placement[slot];
      if (wholes[device].nodes.empty()) wholes[device] = operator_graph(problem_, devices_[device]);
      slots_.push_back(std::make_unique<SlotPlanner>(
          slot_graph(problem_.workload, wholes[device], slots, slot, has_halves(slot)), reruns_,
          problem_.work));
      if (reruns_.planner == OperatorReruns::Planner::checkmate) refuse_for_program(slot);
    }
  }

  [[nodiscard]] bool has_halves(std::uint32_t slot) const {
    return std::ranges::any_of(schedule_.orders, [&](const std::vector<Task>& order) {
      return std::ranges::any_of(order, [&](const Task& task) {
        return task.slot == slot && task.kind == Task::Kind::backward_input;
      });
    });
  }

  void refuse_for_program(std::uint32_t slot) const {
    const auto why = slots_[slot]->program_refusal(fmt::format("slot {}", slot));
    if (why) refuse(parameters_.recompute->where, *why, "`remat/search` plans for every slot");
  }

  [[nodiscard]] const SlotGraph& graph(std::uint32_t slot) const { return slots_[slot]->slot(); }

  Planned selective() {
    bool is_any = false;
    for (std::uint32_t slot = 0; slot < slots_.size(); ++slot)
      if (const auto computations = slots_[slot]->selective(problem_.workload)) {
        schedule_.operators[slot] = runs_of(graph(slot), *computations);
        is_any = true;
      }
    if (!is_any)
      refuse(parameters_.recompute->where,
             fmt::format("`selective` runs the cores of attention again, and `{}` has none in "
                         "operators of their own",
                         problem_.workload.name),
             "`full`, a list of slots or a `policy` runs other operators again");
    return planned();
  }

  // --- memory

  /// What the other microbatches keep while `device` runs `slot`, at the most.
  [[nodiscard]] std::int64_t others(std::uint32_t device, std::uint32_t slot,
                                    std::int64_t share) const {
    std::int64_t most = 0;
    for (const DeviceLoad& load : loads_[device]) {
      if (load.slot != slot) continue;
      std::int64_t sum = 0;
      for (const SlotCounts& it : load.others)
        sum += it.kept * kept(it.slot, share) + it.held * graph(it.slot).held.count();
      most = std::max(most, sum);
    }
    return most;
  }

  [[nodiscard]] std::int64_t kept(std::uint32_t slot, std::int64_t share) const {
    return share_of(graph(slot).kept.count(), share, kParts);
  }

  [[nodiscard]] bool runs(std::uint32_t device, std::uint32_t slot) const {
    return std::ranges::find(loads_[device], slot, &DeviceLoad::slot) != loads_[device].end();
  }

  /// The peak of a device without reruns, as it is counted here.
  [[nodiscard]] std::int64_t counted(std::uint32_t device) const {
    std::int64_t most = 0;
    for (std::uint32_t slot = 0; slot < slots_.size(); ++slot)
      if (runs(device, slot))
        most = std::max(most, others(device, slot, kParts) + graph(slot).peak.count());
    return most;
  }

  [[nodiscard]] SlotRoom room(const DeviceFamily& family, std::uint32_t slot,
                              std::int64_t share) const {
    std::int64_t running = graph(slot).peak.count();
    for (const std::uint32_t d : family.devices)
      if (runs(d, slot)) running = std::min(running, room_[d] - others(d, slot, share));
    return {kept(slot, share), running};
  }

  /// Of the plan with the operators that are chosen, by device.
  [[nodiscard]] std::vector<Bytes> peaks() const {
    const Plan plan =
        std::get<Plan>(plan_schedule(roomy_, parameters_, schedule_, partition_, devices_));
    std::vector<Bytes> peaks;
    if (!plan.claims.peak.empty()) {
      for (const ProcessorId device : devices_)
        peaks.push_back(fullest_peak(plan, problem_.platform, {device}));
      return peaks;
    }
    if (problem_.judge == nullptr)
      refuse(parameters_.recompute->where,
             "what this pipeline needs cannot be told without running it, as its copies "
             "contend for links or share them, and no engine is lent to run it");
    const Judgement seen = problem_.judge(plan, roomy_);
    for (const ProcessorId device : devices_)
      peaks.push_back(seen.peak[index(problem_.platform[device].memory)]);
    return peaks;
  }

  [[nodiscard]] Families above_limit(const std::vector<Bytes>& peaks) const {
    Families above;
    for (const DeviceFamily& family : families_)
      if (std::ranges::any_of(family.devices,
                              [&](std::uint32_t d) { return peaks[d] > limits_[d]; }))
        above.push_back(&family);
    return above;
  }

  // --- plans

  using Plans = std::vector<SlotPlan>;  ///< by slot of a family

  [[nodiscard]] static std::int64_t time_of(const Plans& plans) {
    std::int64_t time = 0;
    for (const SlotPlan& plan : plans) time += plan.time;
    return time;
  }

  /// For a share of what is kept; empty where a slot has none.
  [[nodiscard]] Plans plans_for(const DeviceFamily& family, std::int64_t share, bool improved) {
    Plans plans;
    for (const std::uint32_t slot : family.slots) {
      const SlotRoom its = room(family, slot, share);
      auto plan = improved ? slots_[slot]->best_plan(its) : slots_[slot]->first_plan(its);
      if (!plan) return {};
      plans.push_back(std::move(*plan));
    }
    return plans;
  }

  /// Of the first plans of all slots, ps of reruns; nothing where one of them has none.
  [[nodiscard]] std::optional<std::int64_t> first_time(const DeviceFamily& family,
                                                       std::int64_t share) {
    const Plans plans = plans_for(family, share, false);
    return plans.empty() ? std::nullopt : std::optional(time_of(plans));
  }

  /// The share of what is kept whose first plans take the least reruns; nothing where no share has
  /// plans.
  [[nodiscard]] std::optional<std::int64_t> best_share(const DeviceFamily& family) {
    std::optional<std::int64_t> best;
    std::int64_t least = 0;
    // Of equals the larger, which asks for less.
    const auto attempt = [&](std::int64_t share) {
      const auto time = first_time(family, share);
      if (!time || (best && std::pair(*time, -share) >= std::pair(least, -*best))) return;
      least = *time;
      best = share;
    };
    for (std::int64_t share = kCoarse; share <= kParts; share += kCoarse) attempt(share);
    if (!best) return std::nullopt;
    const std::int64_t coarse = *best;
    for (std::int64_t share = coarse - kFine; share <= std::min(coarse + kFine, kParts); ++share)
      if (share != coarse) attempt(share);
    return best;
  }

  /// Chooses the operators of the slots of a family; whether there is a plan.
  bool plan(const DeviceFamily& family, bool improved) {
    const std::optional<std::int64_t> share = best_share(family);
    if (!share) return false;
    const Plans plans = plans_for(family, *share, improved);
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const std::uint32_t slot = family.slots[i];
      schedule_.operators[slot] = runs_of(graph(slot), plans[i].computations);
      time_[slot] = plans[i].time;
    }
    return !plans.empty();
  }

  /// Of plans that fit, `now` being their peaks, the better ones are looked for, with the room that
  /// is left, with parts of it, and without; what does not fit or is slower is not taken.
  void improve(const std::vector<Bytes>& now) {
    const std::vector<std::int64_t> least = room_;
    for (const std::int64_t part : {1, 2, 4, 8}) {
      room_ = least;
      for (const DeviceFamily* family : tight_)
        for (const std::uint32_t d : family->devices)
          room_[d] += (limits_[d] - now[d]).count() / part;
      if (take_better()) return;
    }
    room_ = least;
    take_better();
  }

  bool take_better() {
    const std::vector<SlotRuns> operators = schedule_.operators;
    const std::vector<std::int64_t> times = time_;
    bool is_better = true;
    for (const DeviceFamily* family : tight_) is_better = plan(*family, true) && is_better;
    for (std::size_t slot = 0; slot < time_.size(); ++slot)
      is_better = is_better && time_[slot] <= times[slot];
    is_better = is_better && above_limit(peaks()).empty();
    if (is_better) return true;
    schedule_.operators = operators;
    time_ = times;
    return false;
  }

  Planned planned() const {
    return plan_schedule(problem_, parameters_, schedule_, partition_, devices_);
  }

  /// From the plan of the least room with which any is found, the better ones that fit; or, where it does not fit
  /// itself, its peak.
  Planned leanest() {
    for (const DeviceFamily* family : tight_) find_leanest(*family);
    const std::vector<Bytes> now = peaks();
    if (above_limit(now).empty()) {
      improve(now);
      return planned();
    }
    std::size_t d = 0;  // the one that is farthest above its limit
    for (std::size_t other = 1; other < now.size(); ++other)
      if (now[other] - limits_[other] > now[d] - limits_[d]) d = other;
    Infeasible no = not_found(problem_, devices_[d], limits_[d], now[d]);
    no.why += ", as far as the search sees; that is no proof";
    return no;
  }

  void find_leanest(const DeviceFamily& family) {
    std::int64_t too_little = 0, enough = kRoomParts;
    const auto set_room = [&](std::int64_t parts) {
      for (const std::uint32_t d : family.devices)
        room_[d] = share_of(counted(d), parts, kRoomParts);
    };
    const auto is_enough = [&](std::int64_t parts) {
      set_room(parts);
      for (std::int64_t share = kCoarse; share <= kParts; share += kCoarse)
        if (first_time(family, share)) return true;
      return false;
    };
    while (enough - too_little > 1) {
      const std::int64_t parts = too_little + (enough - too_little) / 2;
      (is_enough(parts) ? enough : too_little) = parts;
    }
    set_room(enough);
    if (!plan(family, false))
      for (const std::uint32_t slot : family.slots) schedule_.operators[slot] = {};
  }

  const Problem& problem_;
  const Platform roomy_platform_;
  const Problem roomy_;
  const PipelineParameters& parameters_;
  const OperatorReruns& reruns_;
  const Partition& partition_;
  const std::vector<ProcessorId>& devices_;
  Schedule schedule_;  ///< with the operators that are chosen
  const std::vector<DeviceFamily> families_;
  std::vector<std::unique_ptr<SlotPlanner>> slots_;
  std::vector<std::vector<DeviceLoad>> loads_;  ///< by device
  std::vector<Bytes> limits_;                   ///< by device
  std::vector<std::int64_t> room_;              ///< by device, of what is counted here
  std::vector<std::int64_t> time_;              ///< by slot, ps of reruns
  Families tight_;                              ///< those that do not fit without reruns
};

}  // namespace

Planned plan_with_reruns(const Problem& problem, const PipelineParameters& parameters,
                         const Schedule& schedule, const Partition& partition,
                         const std::vector<ProcessorId>& devices) {
  if (parameters.operator_reruns() == nullptr)
    return plan_schedule(problem, parameters, schedule, partition, devices);
  if (problem.outline != nullptr) {  // which operators run again follows from peaks of whole plans
    *problem.outline = {.is_whole = false};
    return Infeasible{"only an outline was asked for", MemoryId{}, Bytes{}};
  }
  return RerunPlanner(problem, parameters, schedule, partition, devices).run();
}

}  // namespace plimsoll
