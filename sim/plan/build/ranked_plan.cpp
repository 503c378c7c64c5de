#include "plan/build/ranked_plan.hpp"

#include "base/dense_id.hpp"
#include "plan/build/hosts_of_ranks.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>

namespace plimsoll {

namespace {

[[noreturn]] void refuse_size() {
  throw std::invalid_argument("the plan of all ranks would have more than 2e7 steps");
}

}  // namespace

RankedPlan::RankedPlan(const Plan& plan_of_one, const Workload& step, const Platform& machine,
                       const Topology& topology, const Spreading& mesh, PlayedRanks of_mesh)
    : of_one(plan_of_one),
      workload(step),
      platform(machine),
      spreading(mesh),
      ranks(std::move(of_mesh)),
      played(ranks.count()),
      result{.plan = {}, .played = ranks, .ways = {}, .forms = {}, .taken = {}, .hosts = {}} {
  if (!of_one.mirrors.empty()) refuse("stands for replicas already");
  if (of_one.steady_from_microbatch) refuse("updates parameters on the way");
  if (of_one.steps.size() * played > kMostSpreadSteps) refuse_size();
  for (const Reduction& it : of_one.reductions)
    own_collectives = std::max(own_collectives, it.collective);
  result.forms.push_back({spreading.algorithm, 0, 1});
  find_memories();
  find_hosts(topology);
  find_homes();
  begin();
  add_buffers();
}

void RankedPlan::refuse(const std::string& what) const {
  throw std::invalid_argument("a plan of policy `" + of_one.policy + "` " + what +
                              ", and cannot be spread over ranks");
}

void RankedPlan::find_memories() {
  memory_.resize(platform.memories.size());
  device_.assign(platform.memories.size(), kNone);
  for (std::uint32_t d = 0; d < spreading.likes.size(); ++d) {
    const auto& likes = spreading.likes[d];
    const std::uint32_t first = index(platform[likes.front()].memory);
    device_[first] = d;
    memory_[first] = memories_of(likes, platform);
  }
}

void RankedPlan::find_hosts(const Topology& topology) {
  hosts_.resize(platform.memories.size());
  std::vector<bool> is_ranks(platform.memories.size());
  for (const auto& likes : spreading.likes)
    for (const ProcessorId of : likes) is_ranks[index(platform[of].memory)] = true;
  const auto find = [&](MemoryId m) {
    if (device(m) != kNone || !hosts_[index(m)].empty()) return;
    if (is_ranks[index(m)]) refuse("uses `" + platform[m].name + "`, in which another rank works");
    hosts_[index(m)] = hosts_of_ranks(m, spreading, platform, topology);
    if (!ranks.are_all()) result.hosts.memories.add(hosts_[index(m)], ranks);
  };
  for (const Buffer& buffer : of_one.buffers) find(buffer.memory);
  for (const Lane& lane : of_one.lanes) {
    if (lane.kind == Lane::Kind::stream) continue;
    find(lane.from);
    find(lane.to);
  }
}

/// Of those where state lives, what is no rank's own.
void RankedPlan::find_homes() {
  if (ranks.are_all()) return;
  for (std::size_t d = 0; d < spreading.homes.size(); ++d) {
    const std::vector<RankHomes>& homes = spreading.homes[d];
    for (std::size_t home = 1; home < kHomes; ++home) {
      if (homes.front().memory[home] == platform[spreading.likes[d].front()].memory) continue;
      std::vector<MemoryId> its;
      for (const RankHomes& of : homes) its.push_back(of.memory[home]);
      result.hosts.memories.add(its, ranks);
    }
    if (!homes.front().updates_on) continue;
    std::vector<ProcessorId> its;
    for (const RankHomes& of : homes) its.push_back(*of.updates_on);
    result.hosts.updaters.add(its, ranks);
  }
}

void RankedPlan::begin() {
  Plan& plan = result.plan;
  plan.policy = of_one.policy;
  plan.notes = of_one.notes;
  plan.microbatches = of_one.microbatches * played;
  plan.replicas = played;
  plan.steps.reserve(of_one.steps.size() * played);
  plan.dependencies.reserve(of_one.dependencies.size() * played);
  plan.buffer_lists.reserve(of_one.buffer_lists.size() * played);
  plan.releases.reserve(of_one.releases.size() * played);
  steps.reserve(of_one.steps.size() * played);
  for (std::uint32_t rank = 0; rank < played; ++rank) {
    for (const Lane& lane : of_one.lanes) lanes_.push_back(add_lane_of(lane, rank));
    // A host's memory is several ranks'.
    const auto is_new = [&](const auto& there, auto by, MemoryId m) {
      return std::ranges::find(there, memory(m, rank), by) == there.end();
    };
    for (const MemoryId m : of_one.ordered_grants)
      if (is_new(plan.ordered_grants, std::identity{}, m))
        plan.ordered_grants.push_back(memory(m, rank));
    for (const auto& [m, limit] : of_one.limits)
      if (is_new(plan.limits, &std::pair<MemoryId, Bytes>::first, m))
        plan.limits.emplace_back(memory(m, rank), limit);
    for (PlanArena arena : of_one.arenas)
      if (is_new(plan.arenas, &PlanArena::memory, arena.memory)) {
        arena.memory = memory(arena.memory, rank);
        plan.arenas.push_back(arena);
      }
  }
  for (const auto& likes : spreading.likes)
    for (std::uint32_t replica = 1; replica < ranks.replicas(); ++replica)
      for (std::uint32_t rank = 0; rank < played; ++rank)
        plan.mirrors.push_back({likes[ranks.rank(rank, replica)], likes[ranks.rank(rank)]});
}

void RankedPlan::add_buffers() {
  Plan& plan = result.plan;
  plan.buffers.reserve(of_one.buffers.size() * played);
  for (std::uint32_t rank = 0; rank < played; ++rank)
    for (Buffer it : of_one.buffers) {
      if (const Home home = workload[it.tensor].home; home != Home::processor) {
        it.memory = homes(it.memory, rank).memory[static_cast<std::size_t>(home)];
        it.offset.reset();
      } else {
        it.memory = memory(it.memory, rank);
      }
      if (workload[it.tensor].lifetime != Lifetime::resident)
        it.microbatch = it.microbatch * played + rank;
      plan.buffers.push_back(it);
    }
  for (std::uint32_t rank = 0; rank < played; ++rank)
    for (const BufferId id : of_one.initial) plan.initial.push_back(buffer(id, rank));
  open.resize(plan.buffers.size());
  rounds.resize(plan.buffers.size());
  copies.resize(plan.buffers.size());
}

MemoryId RankedPlan::memory(MemoryId of_first, std::uint32_t rank) const {
  if (device(of_first) != kNone) return memories(of_first)[ranks.rank(rank)];
  const auto& hosts = hosts_[index(of_first)];
  return hosts.empty() ? of_first : hosts[ranks.rank(rank)];
}

const RankHomes& RankedPlan::homes(MemoryId of_first, std::uint32_t rank) const {
  return spreading.homes[device(of_first)][ranks.rank(rank)];
}

BufferId RankedPlan::buffer(BufferId of_first, std::uint32_t rank) const {
  return BufferId{static_cast<std::uint32_t>(rank * of_one.buffers.size() + index(of_first))};
}

std::vector<BufferId> RankedPlan::of_rank(std::span<const BufferId> of_first,
                                          std::uint32_t rank) const {
  std::vector<BufferId> all;
  set_of_rank(of_first, rank, all);
  return all;
}

void RankedPlan::set_of_rank(std::span<const BufferId> of_first, std::uint32_t rank,
                             std::vector<BufferId>& all) const {
  all.clear();
  for (const BufferId id : of_first) all.push_back(buffer(id, rank));
}

StepId RankedPlan::step(StepId of_first, std::uint32_t rank) const {
  return steps[index(of_first) * std::size_t{played} + rank];
}

CollectiveKind RankedPlan::collective_kind(const Step& of_first) const {
  return of_first.kind == StepKind::compute ? workload[of_first.op].collective.kind
                                            : CollectiveKind::none;
}

bool RankedPlan::is_summed_up(TensorId id) const {
  const Tensor& tensor = workload[id];
  return tensor.tensor_class == TensorClass::gradient &&
         (tensor.lifetime == Lifetime::accumulated || tensor.lifetime == Lifetime::resident);
}

/// An image that begins where the channel does: none.
RankedPlan::LaneKey RankedPlan::key_of(const Lane& lane) {
  return {lane.kind, lane.processor, lane.stream,
          lane.from, lane.to,        lane.image ? lane.image->from : lane.from};
}

LaneId RankedPlan::lane(const Lane& wanted) {
  auto& lanes = result.plan.lanes;
  const auto next = static_cast<std::uint32_t>(lanes.size());
  const auto [found, is_new] = lane_of_.try_emplace(key_of(wanted), LaneId{next});
  if (is_new) lanes.push_back(wanted);
  return found->second;
}

LaneId RankedPlan::add_lane_of(Lane it, std::uint32_t rank) {
  if (it.kind == Lane::Kind::stream) {
    const std::uint32_t d = device_[index(platform[it.processor].memory)];
    it.processor = spreading.likes[d][ranks.rank(rank)];
    return lane(it);
  }
  it.from = memory(it.from, rank);
  it.to = memory(it.to, rank);
  note_way({it.from, it.to, 0, 0});
  return lane(it);
}

LaneId RankedPlan::lane(LaneId of_first, std::uint32_t rank) const {
  return lanes_[rank * of_one.lanes.size() + index(of_first)];
}

std::uint32_t RankedPlan::stream_of(const Lane& channel, const RankTurn& turn) {
  auto& turns = turns_[key_of(channel)];
  const auto known = std::ranges::find(turns, turn);
  const auto stream = static_cast<std::uint32_t>(known - turns.begin());
  if (known == turns.end()) turns.push_back(turn);
  return stream;
}

void RankedPlan::note_way(const RankWay& way) {
  const bool is_within = way.from == way.to && way.to_replica == 0;
  if (!is_within && ways_.insert(way).second) result.ways.push_back(way);
}

Slice RankedPlan::add_list(std::span<const BufferId> buffers) {
  auto& lists = result.plan.buffer_lists;
  const auto from = static_cast<std::uint32_t>(lists.size());
  lists.insert(lists.end(), buffers.begin(), buffers.end());
  return {from, static_cast<std::uint32_t>(lists.size())};
}

StepId RankedPlan::push(Step step, std::vector<Dependency>& after) {
  Plan& plan = result.plan;
  if (plan.steps.size() >= kMostSpreadSteps) refuse_size();
  const auto key = [](const Dependency& d) { return std::pair(d.on, d.edge); };
  std::ranges::sort(after, {}, key);
  const auto last = std::ranges::unique(after, {}, key).begin();
  step.after.begin = static_cast<std::uint32_t>(plan.dependencies.size());
  plan.dependencies.insert(plan.dependencies.end(), after.begin(), last);
  step.after.end = static_cast<std::uint32_t>(plan.dependencies.size());
  plan.steps.push_back(step);
  return StepId{static_cast<std::uint32_t>(plan.steps.size() - 1)};
}

StepId RankedPlan::add_round(const Lane& way, std::span<const BufferId> buffers,
                             const Reduction& part, std::span<const StepId> waits) {
  Step it{.kind = StepKind::reduce, .lane = lane(way)};
  it.reduction = static_cast<std::uint32_t>(result.plan.reductions.size());
  result.plan.reductions.push_back(part);
  it.reads = add_list(buffers);
  it.writes = add_list({});
  std::vector<Dependency> after;
  for (const StepId on : waits) after.push_back({on, Dependency::Edge::after_end});
  const StepId id = push(it, after);
  for (const BufferId buffer : buffers) rounds[index(buffer)].push_back(id);
  return id;
}

}  // namespace plimsoll
