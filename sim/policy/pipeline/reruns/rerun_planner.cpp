#include "policy/pipeline/reruns/rerun_planner.hpp"

#include "base/dense_id.hpp"
#include "platform/core/without_limits.hpp"
#include "policy/budget/budget.hpp"
#include "policy/pipeline/parameters/device_limits.hpp"
#include "policy/pipeline/reruns/attention_cores.hpp"
#include "policy/pipeline/reruns/block_reruns.hpp"
#include "policy/pipeline/reruns/device_families.hpp"
#include "policy/pipeline/reruns/family_plans.hpp"
#include "policy/pipeline/schedule/slot_savings.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Plans whose peaks are looked at, until all fit.
constexpr int kMostRounds = 24;

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
  }

  Planned run() {
    if (!reruns_.has_budget()) return by_rule();
    for (const std::vector<Task>& order : schedule_.orders) loads_.push_back(device_loads(order));
    limits_ = device_limits(
        problem_, devices_,
        reruns_.budget.value_or(Located<Bytes>{Bytes::unlimited(), parameters_.recompute->where}));
    const Seen plain = seen(schedule_);
    if (fits(plain)) return planned(schedule_);
    choose(plain);
    consider(schedule_);
    consider_rules();
    return best_ ? planned(*best_) : none_fits();
  }

 private:
  /// Of a plan: what its devices need, and how long it takes.
  struct Seen {
    std::vector<Bytes> peaks;  ///< by device
    Time time;
  };

  /// A family that does not fit without reruns.
  struct Tight {
    FamilyPlans plans;
    std::vector<std::int64_t> room;  ///< by device of the family, of what is counted
    const FamilyPlan* chosen;
  };

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
      SlotGraph its = slot_graph(problem_.workload, wholes[device], slots, slot, has_halves(slot));
      if (reruns_.planner == OperatorReruns::Planner::blocks)
        let_gathers_run_again(problem_.workload, its);
      slots_.push_back(std::make_unique<SlotPlanner>(std::move(its), reruns_, problem_.work));
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

  Planned by_rule() {
    const bool by_block = reruns_.planner == OperatorReruns::Planner::blocks;
    const std::vector<ForwardRange> blocks = by_block ? named() : std::vector<ForwardRange>{};
    bool is_any = false;
    for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
      const auto plan = by_block ? slots_[slot]->by_block(problem_.workload, blocks)
                                 : slots_[slot]->selective(problem_.workload);
      if (!plan) continue;
      schedule_.operators[slot] = runs_of(graph(slot), plan->computations);
      is_any = true;
    }
    if (!is_any) refuse_rule(by_block);
    return planned(schedule_);
  }

  [[nodiscard]] std::vector<ForwardRange> named() const {
    return reruns_.blocks.empty() ? outermost_blocks(problem_.workload)
                                  : named_blocks(problem_.workload, reruns_.blocks, problem_.work);
  }

  [[noreturn]] void refuse_rule(bool by_block) const {
    const Location& where = parameters_.recompute->where;
    if (by_block)
      refuse(where, fmt::format("no backward of `{}` reads anything that these blocks make",
                                problem_.workload.name));
    refuse(where,
           fmt::format("`selective` runs the cores of attention again, and `{}` has none in "
                       "operators of their own",
                       problem_.workload.name),
           "`full`, a list of slots or a `policy` runs other operators again");
  }

  // --- what plans need

  [[nodiscard]] Seen seen(const Schedule& schedule) const {
    const Plan plan =
        std::get<Plan>(plan_schedule(roomy_, parameters_, schedule, partition_, devices_));
    Seen seen;
    if (!plan.claims.peak.empty() && plan.claims.makespan) {
      for (const ProcessorId device : devices_)
        seen.peaks.push_back(fullest_peak(plan, problem_.platform, {device}));
      seen.time = *plan.claims.makespan;
      return seen;
    }
    if (problem_.judge == nullptr)
      refuse(parameters_.recompute->where,
             "what this pipeline needs cannot be told without running it, as its copies "
             "contend for links or share them, and no engine is lent to run it");
    const Judgement judgement = problem_.judge(plan, roomy_);
    for (const ProcessorId device : devices_)
      seen.peaks.push_back(judgement.peak[index(problem_.platform[device].memory)]);
    seen.time = judgement.makespan;
    return seen;
  }

  [[nodiscard]] bool fits(const Seen& seen) const {
    for (std::size_t d = 0; d < limits_.size(); ++d)
      if (seen.peaks[d] > limits_[d]) return false;
    return true;
  }

  // --- choice

  /// Chooses plans of the families that do not fit as they are. How much more a device needs than
  /// is counted shows in the plan of all, first ones to begin with; less is counted as room until
  /// all fit, and then the room that is left is given away.
  void choose(const Seen& plain) {
    for (const DeviceFamily& family : families_)
      if (is_above(family, plain)) add_tight(family, plain);
    if (take(&FamilyPlans::first)) set_rooms(seen(schedule_));
    for (int round = 0; round < kMostRounds && take(&FamilyPlans::best); ++round) {
      const Seen now = seen(schedule_);
      if (fits(now)) return give_room(now);
      lower_rooms(now);
    }
    for (Tight& tight : tight_) take(tight, tight.plans.leanest());
    if (const Seen now = seen(schedule_); fits(now)) give_room(now);
  }

  [[nodiscard]] bool is_above(const DeviceFamily& family, const Seen& seen) const {
    return std::ranges::any_of(family.devices,
                               [&](std::uint32_t d) { return seen.peaks[d] > limits_[d]; });
  }

  void add_tight(const DeviceFamily& family, const Seen& plain) {
    Tight& it = tight_.emplace_back(
        Tight{FamilyPlans(family, slots_, loads_, problem_.workload), {}, nullptr});
    for (std::size_t i = 0; i < family.devices.size(); ++i) {
      const std::uint32_t d = family.devices[i];
      const std::int64_t counted = it.plans.plain().counted[i];
      it.room.push_back(
          limits_[d].is_unlimited() ? counted : (limits_[d] - plain.peaks[d]).count() + counted);
    }
  }

  void take(Tight& tight, const FamilyPlan& plan) {
    tight.chosen = &plan;
    const std::vector<std::uint32_t>& slots = tight.plans.family().slots;
    for (std::size_t s = 0; s < slots.size(); ++s)
      schedule_.operators[slots[s]] = runs_of(graph(slots[s]), plan.slots[s].computations);
  }

  /// Takes what `choice` says of each room; whether there is a plan for each.
  bool take(const FamilyPlan* (FamilyPlans::*choice)(std::span<const std::int64_t>)) {
    for (Tight& tight : tight_) {
      const FamilyPlan* plan = (tight.plans.*choice)(tight.room);
      if (plan == nullptr) return false;
      take(tight, *plan);
    }
    return true;
  }

  /// Bytes below the limit of a device; unlimited is 0.
  [[nodiscard]] std::int64_t left(const Seen& now, std::uint32_t device) const {
    return limits_[device].is_unlimited() ? 0 : (limits_[device] - now.peaks[device]).count();
  }

  /// To what is counted of the plans that are chosen and what is left beside them.
  void set_rooms(const Seen& now) {
    for (Tight& tight : tight_) tight.room = room_beside(tight, now, 1);
  }

  [[nodiscard]] std::vector<std::int64_t> room_beside(const Tight& tight, const Seen& now,
                                                      std::int64_t part) const {
    std::vector<std::int64_t> room = tight.chosen->counted;
    const std::vector<std::uint32_t>& devices = tight.plans.family().devices;
    for (std::size_t i = 0; i < room.size(); ++i) room[i] += left(now, devices[i]) / part;
    return room;
  }

  /// Where a device is above its limit, by so much below what is counted of the plan that is chosen.
  void lower_rooms(const Seen& now) {
    for (Tight& tight : tight_) {
      const std::vector<std::uint32_t>& devices = tight.plans.family().devices;
      for (std::size_t i = 0; i < devices.size(); ++i)
        if (const std::int64_t below = left(now, devices[i]); below < 0)
          tight.room[i] = std::min(tight.room[i], tight.chosen->counted[i]) + below;
    }
  }

  /// Gives each family the room that is left on its devices, or parts of it, as long as all fit.
  void give_room(Seen now) {
    for (Tight& tight : tight_)
      for (const std::int64_t part : {1, 2, 4, 8}) {
        const FamilyPlan* plan = tight.plans.best(room_beside(tight, now, part));
        if (plan == nullptr || plan->time >= tight.chosen->time) break;
        const FamilyPlan* before = tight.chosen;
        take(tight, *plan);
        if (Seen then = seen(schedule_); fits(then)) {
          now = std::move(then);
          break;
        }
        take(tight, *before);
      }
  }

  /// Keeps the schedule if it fits and none that is known is faster.
  void consider(const Schedule& schedule) {
    Seen now = seen(schedule);
    if (fits(now)) {
      if (best_ && least_ <= now.time) return;
      best_ = schedule;
      least_ = now.time;
      return;
    }
    const std::size_t d = farthest_above(now);
    const Bytes above = now.peaks[d] - limits_[d];
    if (leanest_ &&
        leanest_->peaks[farthest_above(*leanest_)] - limits_[farthest_above(*leanest_)] <= above)
      return;
    leanest_ = std::move(now);
  }

  [[nodiscard]] std::size_t farthest_above(const Seen& seen) const {
    std::size_t d = 0;
    for (std::size_t other = 1; other < limits_.size(); ++other)
      if (seen.peaks[other] - limits_[other] > seen.peaks[d] - limits_[d]) d = other;
    return d;
  }

  /// `selective` and `full`, on all devices and on those that do not fit as they are.
  void consider_rules() {
    if (!slots_.front()->may_run_again()) return;
    const auto of_slots = [&](const auto& plan_of, bool only_tight) {
      Schedule schedule = schedule_;
      for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
        schedule.operators[slot] = {};
        if (only_tight && !is_tight(slot)) continue;
        if (const auto plan = plan_of(*slots_[slot]))
          schedule.operators[slot] = runs_of(graph(slot), plan->computations);
      }
      consider(schedule);
    };
    const auto cores = [&](const SlotPlanner& it) { return it.selective(problem_.workload); };
    const auto full = [](const SlotPlanner& it) { return it.full(); };
    for (const bool only_tight : {true, false}) {
      of_slots(cores, only_tight);
      of_slots(full, only_tight);
    }
    consider(with_whole_slots(schedule_));
  }

  [[nodiscard]] bool is_tight(std::uint32_t slot) const {
    return std::ranges::any_of(tight_, [&](const Tight& it) {
      return std::ranges::binary_search(it.plans.family().slots, slot);
    });
  }

  Planned planned(const Schedule& schedule) const {
    return plan_schedule(problem_, parameters_, schedule, partition_, devices_);
  }

  Planned none_fits() const {
    const std::size_t d = farthest_above(*leanest_);
    Infeasible no = not_found(problem_, devices_[d], limits_[d], leanest_->peaks[d]);
    no.why += ", as far as the search sees; that is no proof";
    return no;
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
  std::vector<Tight> tight_;                    ///< those that do not fit without reruns
  std::optional<Schedule> best_;                ///< of those that fit
  Time least_;                                  ///< that it takes
  std::optional<Seen> leanest_;                 ///< of those that do not
};

}  // namespace

Planned plan_with_reruns(const Problem& problem, const PipelineParameters& parameters,
                         const Schedule& schedule, const Partition& partition,
                         const std::vector<ProcessorId>& devices) {
  if (parameters.operator_reruns() == nullptr)
    return plan_schedule(problem, parameters, schedule, partition, devices);
  // Which operators run again within a budget follows from peaks of whole plans.
  if (problem.outline != nullptr && parameters.operator_reruns()->has_budget()) {
    *problem.outline = {.is_whole = false};
    return Infeasible{"only an outline was asked for", MemoryId{}, Bytes{}};
  }
  return RerunPlanner(problem, parameters, schedule, partition, devices).run();
}

}  // namespace plimsoll
