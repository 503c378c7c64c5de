#include "platform/core/without_limits.hpp"
#include "policy/claims/claims.hpp"
#include "policy/claims/judged_claims.hpp"
#include "policy/interface/left_out.hpp"
#include "policy/interface/registry.hpp"
#include "policy/pipeline/bounds/makespan_bound.hpp"
#include "policy/pipeline/parameters/device_limits.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"
#include "policy/pipeline/schedule/gradient_reductions.hpp"
#include "policy/pipeline/schedule/slot_savings.hpp"
#include "policy/pipeline/search/list_heuristic.hpp"
#include "policy/pipeline/search/order_search.hpp"
#include "policy/pipeline/search/search_candidates.hpp"
#include "policy/pipeline/search/update_times.hpp"
#include "policy/pipeline/search/v_search.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr const char* kName = "pipeline/search";
constexpr const char* kUncertain =
    "its copies contend for links or share them, so that its times cannot be told, and no engine "
    "is lent to run it";

enum class Backward : std::uint8_t { halves, whole };

struct SearchParameters : PipelineParameters {
  std::optional<Located<std::int64_t>> chunks;
  std::optional<Located<Bytes>> memory_limit;
  std::optional<std::int64_t> orders;
  Backward backward = Backward::halves;

  [[nodiscard]] bool splits_backward() const { return backward == Backward::halves; }
};

/// Tasks that are placed while orders of one placement are looked at, where nothing else is asked.
constexpr std::size_t kMostPlaced = 50'000'000;
constexpr std::size_t kMostOrders = 20'000;
constexpr std::int64_t kMostTasks = 1'000'000;
/// Searches of one placement, each under a lower bound on what is kept, until a plan fits.
constexpr int kMostAttempts = 6;

Record<SearchParameters> search_record() {
  Record<SearchParameters> record(std::string("policy ") + kName,
                                  std::string("Parameters of ") + kName + ".");
  std::int64_t SearchParameters::*microbatches = &SearchParameters::microbatches;
  std::optional<std::vector<Located<std::string>>> SearchParameters::*devices =
      &SearchParameters::devices;
  std::optional<Located<PartitionChoice>> SearchParameters::*partition =
      &SearchParameters::partition;
  record
      .optional("microbatches", microbatches, integer(1, 1'000'000),
                "microbatches of one mini-batch; default 1")
      .optional("devices", devices, list_of(located(plimsoll::name()), 1, 65'536),
                "processors in pipeline order; default: all of the platform")
      .optional("virtual_stages", &SearchParameters::chunks, located(integer(1, 1'000'000)),
                "stages held by one device; default: 1, 2 and 4 are tried, where there are as many "
                "chain stages")
      .optional("partition", partition, located(partition_format()),
                "as of the other pipelines, for each number of stages that is tried")
      .optional("memory_limit", &SearchParameters::memory_limit,
                located(quantity<Bytes>(Unlimited::allowed)),
                "bytes of each device's memory for all that is there; default: what it has for "
                "plans")
      .optional("backward", &SearchParameters::backward,
                one_of<Backward>({{"halves", Backward::halves}, {"whole", Backward::whole}}),
                "`halves`, for a chain whose stages give both, or a network; `whole` for one that "
                "gives only `backward`; default halves")
      .optional("orders", &SearchParameters::orders, integer(0, 1'000'000'000),
                "orders that are looked at for each placement of the stages; default 20000, fewer "
                "where they place more than 50 million tasks");
  add_slot_recompute(record);
  add_offload_ahead(record);
  add_replicas(record);
  return record;
}

struct Placement {
  const char* name;
  StagePlacementRule rule;
};

std::vector<Placement> placements(std::int64_t chunks) {
  std::vector<Placement> all{{"loop", loop_placement}};
  if (chunks % 2 == 0) all.push_back({chunks == 2 ? "V" : "wave", wave_placement});
  return all;
}

class PipelineSearch {
 public:
  PipelineSearch(const Problem& problem, const SearchParameters& parameters)
      : problem_(problem),
        roomy_platform_(without_limits(problem.platform)),
        roomy_{problem.workload, problem.chain, roomy_platform_,
               problem.topology, nullptr,       problem.work},
        parameters_(parameters),
        groups_(replica_groups(problem, parameters)),
        devices_(pipeline_devices(problem, parameters)),
        limits_(limits()),
        splits_(std::ranges::any_of(problem.workload.operators, [](const Operator& op) {
          return op.phase == Phase::backward_weight;
        })) {
    require_equal_replicas(parameters);
    require_alike_replicas(problem, parameters);
  }

  Planned run() {
    const std::vector<std::int64_t> tried = counts();
    if (tried.size() > 1) refuse_slot_numbers();
    for (const std::int64_t chunks : tried) {
      PipelineParameters it = parameters_;
      it.name = kName;
      it.virtual_stages = chunks;
      refuse_too_many_tasks(it);
      const Judged judged = ask_others(it);
      for (const Placement& placement : placements(chunks))
        search_cuts(it, placement,
                    placement.rule == loop_placement ? judged.on_a_loop : judged.on_a_wave);
    }
    if (best_) return finished(std::move(*best_));
    if (smallest_.is_unlimited())
      plimsoll::refuse(parameters_.where,
                       "what this pipeline needs cannot be told without running it, as its copies "
                       "contend for links or share them" +
                           left_out_text(left_out_));
    Infeasible no = too_little(problem_, devices_, limits_, smallest_);
    no.why += left_out_text(left_out_);
    return no;
  }

 private:
  MemoryId memory(ProcessorId device) const { return problem_.platform[device].memory; }

  /// By device, of its replica with the least memory.
  std::vector<Bytes> limits() const {
    std::vector<Bytes> limits = stage_limits(problem_, groups_, parameters_.memory_limit);
    for (std::size_t d = 0; d < groups_.size(); ++d)
      for (const ProcessorId replica : groups_[d])
        limits[d] = std::min(limits[d], problem_.platform[memory(replica)].usable());
    return limits;
  }

  void refuse_too_many_tasks(const PipelineParameters& it) const {
    refuse_too_many_steps(problem_, it);
    const auto slots = static_cast<std::int64_t>(
        std::min(devices_.size() * static_cast<std::size_t>(it.virtual_stages),
                 problem_.chain.stages.size()));
    if (slots * it.microbatches > kMostTasks / 3)
      plimsoll::refuse(
          parameters_.where,
          fmt::format("{} microbatches on {} stages are too many for `{}`: more than {} "
                      "forwards and halves of backwards",
                      it.microbatches, slots, kName, kMostTasks));
  }

  /// They would stand for other slots with each number of chunks.
  void refuse_slot_numbers() const {
    const auto refuse = [](const SlotChoice& choice, const Location& where) {
      if (!choice.slots.empty())
        plimsoll::refuse(
            where, "how many slots there are depends on `virtual_stages`, which is not given");
    };
    if (const auto& it = parameters_.recompute) refuse(it->value.slots, it->where);
    if (const auto& it = parameters_.offload) refuse(it->value, it->where);
  }

  std::vector<std::int64_t> counts() const {
    if (parameters_.chunks) return {parameters_.chunks->value};
    const auto p = std::ssize(devices_);
    if (parameters_.partition)
      if (const auto* cuts = std::get_if<std::vector<std::int64_t>>(&parameters_.partition->value))
        return {std::max<std::int64_t>(1, (std::ssize(*cuts) + 1) / p)};
    std::vector<std::int64_t> counts{1};
    for (const std::int64_t chunks : {2, 4})
      if (p * chunks <= std::ssize(problem_.chain.stages)) counts.push_back(chunks);
    return counts;
  }

  /// Where the needs of a schedule of others are certain.
  struct Judged {
    bool on_a_loop = false, on_a_wave = false;
  };

  Judged ask_others(const PipelineParameters& it) {
    Judged judged;
    const SearchTask task{roomy_, it, std::ranges::min(limits_), splits_};
    for (const std::string& name : flush_policies(task)) try {
        Planned planned = plan_of(name, task);
        if (const auto* no = std::get_if<Infeasible>(&planned))
          smallest_ = std::min(smallest_, no->smallest_budget);
        else if (compare(name, std::move(std::get<Plan>(planned))))
          (runs_on_a_loop(name) ? judged.on_a_loop : judged.on_a_wave) = true;
        else
          leave_out(name, kUncertain);
      } catch (const InputError& error) {
        leave_out(name, error.diagnostics().front().message);
      }
    return judged;
  }

  /// Without the limit where what it needs under one cannot be told without running it: then its
  /// run shows whether it fits.
  Planned plan_of(const std::string& name, const SearchTask& task) const {
    if (problem_.judge == nullptr) return plan_of_flush_policy(name, task);
    try {
      return plan_of_flush_policy(name, task);
    } catch (const InputError&) {
      return plan_of_flush_policy(name,
                                  {task.problem, task.parameters, Bytes::unlimited(), task.splits});
    }
  }

  /// Where a plan claims no times, what its execution shows.
  void judge(Plan& plan) const {
    std::vector<MemoryId> memories;
    for (const auto& group : groups_)
      for (const ProcessorId replica : group) memories.push_back(memory(replica));
    Problem lent = roomy_;
    lent.judge = problem_.judge;
    claim_by_judge(plan, lent, memories);
  }

  Bytes peak(const Plan& plan, std::size_t device) const {
    return fullest_peak(plan, problem_.platform, groups_[device]);
  }

  void leave_out(const std::string& name, const std::string& why) {
    const auto same = [&](const LeftOut& it) { return it.policy == name && it.why == why; };
    if (std::ranges::none_of(left_out_, same)) left_out_.push_back({name, why});
  }

  /// Takes the plan if it fits and nothing that fits is faster; whether what it needs is certain.
  bool compare(const std::string& name, Plan plan) {
    judge(plan);
    if (!plan.claims.makespan) return false;
    Bytes needs;
    bool fits = true;
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      needs = std::max(needs, peak(plan, d));
      fits = fits && peak(plan, d) <= limits_[d];
    }
    const auto value = [](const Claims& claims) {
      return std::pair(claims.makespan, claims.period.value_or(Time::unlimited()));
    };
    if (!fits) {
      smallest_ = std::min(smallest_, needs);
    } else if (!best_ || value(plan.claims) < value(best_->claims)) {
      plan.claims.chosen = name;
      best_ = std::move(plan);
    }
    return true;
  }

  Plan plan(const PipelineParameters& it, Schedule schedule) const {
    const auto placement = [placed = schedule.placement](std::uint32_t, std::uint32_t) {
      return placed;
    };
    Plan made = std::get<Plan>(plan_pipeline(
        roomy_, it,
        [&](std::uint32_t, std::uint32_t, std::uint32_t) { return std::move(schedule); },
        placement));
    judge(made);
    return made;
  }

  /// Others have taken the fastest cut, so that the bound has to hold for all.
  void search_cuts(PipelineParameters it, const Placement& placement, bool others_judged) {
    const auto partitions = partitions_for(problem_, it, devices_, placement.rule);
    for (const Partition& partition : partitions) {
      if (partitions.size() > 1) it.partition = {as_choice(partition), it.where};
      search(it, partition, placement, others_judged);
    }
  }

  void search(const PipelineParameters& it, const Partition& partition, const Placement& placement,
              bool others_judged) {
    const auto m = static_cast<std::uint32_t>(it.microbatches);
    const Slots slots(problem_, partition, devices_,
                      placement.rule(static_cast<std::uint32_t>(devices_.size()),
                                     static_cast<std::uint32_t>(it.virtual_stages)));
    SlotCosts costs = slots.costs();
    SlotSlack slack = slot_slack(problem_, slots, devices_);
    add_recomputation(costs, slack, problem_, slots, it);
    TaskNetwork network =
        task_network(costs, slack, m, std::vector<Time>(devices_.size()), splits_);
    const TaskOrders leanest = one_at_a_time(network);
    const std::string name =
        fmt::format("{} ({}{} a device on a {})", kName, it.virtual_stages,
                    it.virtual_stages == 1 ? " stage" : " stages", placement.name);
    Plan lean = plan(it, schedule_of(network, costs, leanest));
    const auto after = update_times(problem_, it, slots, devices_, lean);
    network = task_network(costs, slack, m, after, splits_);
    const TaskNetwork surely = task_network(slots.surely(costs), slack, m, after, splits_);
    const Time bound = makespan_bound(surely, counts_of(limits_on_kept(lean)));
    if (it.virtual_stages == 1) two_way_bound_ = two_way_bound(surely);
    OrderSearch task{network, costs.placement, {}, orders(network), bound.count()};
    const bool found =
        search_within(it, name, costs, task, room_for_kept(lean, kept_by(network, leanest)));
    const bool lean_judged = compare(name, std::move(lean));
    if (!found && !lean_judged) leave_out(name, kUncertain);
    if (!found && !lean_judged && !others_judged) return;
    bound_ = std::min(bound_, bound);
    unlimited_bound_ =
        std::min(unlimited_bound_, makespan_bound(surely, std::vector(devices_.size(), INT64_MAX)));
  }

  /// The limits but for what else is there than what is kept, in the plan `lean`.
  std::vector<Bytes> room_for_kept(const Plan& lean, const std::vector<std::int64_t>& kept) const {
    std::vector<Bytes> room = limits_;
    for (std::size_t d = 0; d < devices_.size() && lean.claims.makespan; ++d)
      if (!room[d].is_unlimited()) room[d] -= peak(lean, d) - Bytes{kept[d]};
    return room;
  }

  /// By device, for the bound: the limits but for what stays, as it does in the plan `lean`; none
  /// where less is kept than the network says.
  std::vector<Bytes> limits_on_kept(const Plan& lean) const {
    if (parameters_.recomputes_slots() || parameters_.offloads())
      return std::vector(devices_.size(), Bytes::unlimited());
    std::vector<Bytes> limits = limits_;
    for (std::size_t d = 0; d < limits.size(); ++d)
      if (!limits[d].is_unlimited()) limits[d] -= resident(lean, d);
    return limits;
  }

  Bytes resident(const Plan& plan, std::size_t device) const {
    Bytes sum;
    for (const BufferId id : plan.initial) {
      const Tensor& tensor = problem_.workload[plan[id].tensor];
      if (plan[id].memory == memory(devices_[device]) && tensor.lifetime == Lifetime::resident)
        sum += tensor.bytes;
    }
    return sum;
  }

  std::int64_t orders(const TaskNetwork& network) const {
    if (parameters_.orders) return *parameters_.orders;
    return static_cast<std::int64_t>(
        std::min(kMostOrders, kMostPlaced / std::max<std::size_t>(network.tasks(), 1)));
  }

  static std::vector<std::int64_t> counts_of(const std::vector<Bytes>& limits) {
    std::vector<std::int64_t> counts;
    for (const Bytes limit : limits) counts.push_back(limit.count());
    return counts;
  }

  /// Orders that need not keep to a limit come first where offloading makes room that orders do not
  /// tell of.
  bool search_within(const PipelineParameters& it, const std::string& name, const SlotCosts& costs,
                     OrderSearch& task, const std::vector<Bytes>& limits) {
    const std::vector<Bytes> none(devices_.size(), Bytes::unlimited());
    const bool unlimited = it.offloads() && lower_until_fit(it, name, costs, task, none);
    return lower_until_fit(it, name, costs, task, limits) || unlimited;
  }

  /// `limits`, on what is kept, are lowered by what a plan exceeds the limit on the whole by.
  /// Whether a plan was found whose needs are certain.
  bool lower_until_fit(const PipelineParameters& it, const std::string& name,
                       const SlotCosts& costs, OrderSearch& task, std::vector<Bytes> limits) {
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      if (best_ && best_->claims.makespan->count() <= task.bound) return true;
      task.limits = counts_of(limits);
      const auto found = search_orders(task, heuristics(task.network, costs, limits));
      if (!found) return attempt > 0;
      Plan made = plan(it, schedule_of(task.network, costs, found->orders));
      bool fits = true;
      for (std::size_t d = 0; d < devices_.size(); ++d) {
        const Bytes needs = peak(made, d);
        if (needs <= limits_[d] || limits[d].is_unlimited()) continue;
        limits[d] -= needs - limits_[d];
        fits = false;
      }
      if (!compare(name, std::move(made))) return attempt > 0;
      if (fits) return true;
    }
    return true;
  }

  /// Orders of the searches under a limit on what is kept.
  std::vector<TaskOrders> heuristics(const TaskNetwork& network, const SlotCosts& costs,
                                     const std::vector<Bytes>& limits) const {
    std::vector<TaskOrders> all;
    if (!splits_) return all;
    const auto add = [&](const std::vector<Schedule>& schedules) {
      for (const Schedule& schedule : schedules) all.push_back(orders_of(network, schedule));
    };
    if (costs.slots.size() == costs.devices)
      add(list_schedules(costs, network.microbatches, limits));
    else if (costs.placement == v_placement(costs.devices))
      add(v_schedules(costs, network.microbatches, limits));
    return all;
  }

  Plan finished(Plan plan) const {
    const Claims judged = std::move(plan.claims);
    plan.policy = kName;
    plan.claims = claims_of(plan, problem_);
    if (!plan.claims.makespan) {
      plan.claims.makespan = judged.makespan;
      plan.claims.peak = judged.peak;
    }
    plan.claims.chosen = judged.chosen;
    plan.claims.left_out = left_out_;
    plan.bounds = {};
    plan.bounds.makespan = bound_of(judged.chosen);
    plan.claims.optimal = plan.claims.makespan == plan.bounds.makespan;
    return plan;
  }

  /// Of all that were tried and not left out, and of the kind of the one that is chosen.
  Time bound_of(const std::string& chosen) const {
    switch (bounded_by(chosen)) {
      case BoundedBy::two_ways:
        return std::min(bound_, two_way_bound_.value_or(bound_));
      case BoundedBy::no_limit:
        return unlimited_bound_;
      case BoundedBy::one_way:
        break;
    }
    return bound_;
  }

  const Problem& problem_;
  const Platform roomy_platform_;
  const Problem roomy_;
  const SearchParameters& parameters_;
  const std::vector<std::vector<ProcessorId>> groups_;  ///< by device: its replicas
  const std::vector<ProcessorId> devices_;              ///< the first of each
  const std::vector<Bytes> limits_;                     ///< by device, on the whole of its memory
  const bool splits_;
  std::optional<Plan> best_;
  Bytes smallest_ = Bytes::unlimited();
  Time bound_ = Time::unlimited(), unlimited_bound_ = Time::unlimited();
  std::optional<Time> two_way_bound_;
  std::vector<LeftOut> left_out_;
};

Planned plan_search(const Problem& problem, const SearchParameters& parameters) {
  return PipelineSearch(problem, parameters).run();
}

}  // namespace

PolicyInfo pipeline_search_policy() {
  return make_policy<SearchParameters>(
      {.name = kName,
       .summary = "The schedule of least makespan under a limit on every device's memory that any "
                  "pipeline with a flush, or a search of its own, finds.",
       .paper =
           "none: the best of 1f1b, gpipe, zb-h1, zb-h2, zb-1p, zb-2p, zb-v, v-half, v-min, "
           "1f1b-v, interleaved-1f1b, interleaved-zb, looped-bfs, hanayo, dualpipe-v, bpipe, "
           "dualpipe, chimera, gis and gis-h, the first of that order where they tie, and of a "
           "search of its "
           "own: over warm-ups of many depths and the building blocks of Qi et al. 2024, "
           "\"Pipeline Parallelism with Controllable Memory\", NeurIPS, arXiv:2405.15362, with "
           "times as they are; tasks move into gaps within the limit, forwards and backwards in "
           "time; a tabu search (Nowicki and Smutnicki 1996) on the chain that makes the makespan",
       .assumes =
           "a chain whose stages give both halves of their backward, or a network; with "
           "`backward: whole` any chain. Schedules without a flush (pipedream, pipedream-2bw, "
           "1f1b-star, periodic) are not asked, nor pipeoffload, which offloads by itself. "
           "Schedules whose copies contend for links are run; "
           "its own orders are looked for as if they did not, and then run. With `recompute`, "
           "`offload` and replicas every schedule is tried so, and left out where it cannot be; "
           "the fullest replica of a stage has to keep to the limit of the one with the least",
       .guarantees =
           "never slower than any of these for the same limit, the least largest span among those "
           "of equal makespan; claims are execution's. The bound holds for all orders of these "
           "stages with one copy of the parameters that do one thing after the other and leave "
           "what they keep where it is, on the placements that are tried and not left out (a loop "
           "and, for even numbers of stages a device, a V or wave), and where a schedule of "
           "another kind is taken (bpipe, chimera, dualpipe, dualpipe-v), for those, too; "
           "claims.optimal says that it is met. What is infeasible names the smallest limit of any "
           "of them, one microbatch after the other included. claims.chosen names whose schedule "
           "it is",
       .complexity = "the sum of theirs, and O(orders x tasks) for each placement"},
      search_record(), plan_search);
}

}  // namespace plimsoll
