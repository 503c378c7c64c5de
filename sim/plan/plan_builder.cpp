#include "plan/plan_builder.hpp"

#include "plan/readers.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// The microbatch under which tensors are filed that all microbatches share.
constexpr std::uint32_t kShared = 0xFFFFFFFF;
constexpr std::uint32_t kNoRead = 0xFFFFFFFF;

bool is_shared(const Tensor& tensor) {
  return tensor.lifetime == Lifetime::resident || tensor.lifetime == Lifetime::accumulated;
}

std::uint64_t key(std::uint32_t high, std::uint32_t low) {
  return static_cast<std::uint64_t>(high) << 32 | low;
}

}  // namespace

struct PlanBuilder::State {
  const Workload& workload;
  const Platform& platform;
  Plan plan;
  /// By memory: (tensor, microbatch) -> the latest stay, and that of the initial list. Looked up,
  /// never iterated.
  std::vector<std::unordered_map<std::uint64_t, BufferId>> stays, initial_stays;
  /// By memory: (resident tensor, microbatch) -> the version that it reads. Never iterated.
  std::vector<std::unordered_map<std::uint64_t, BufferId>> versions_read;
  std::vector<bool> is_version, is_superseded;            ///< by buffer
  std::unordered_map<std::uint64_t, std::uint32_t> runs;  ///< (operator, microbatch) -> count
  std::vector<bool> taken;                                ///< by buffer: a copy takes it away
  std::vector<StepId> changed_by;  ///< by buffer: who last changed or added to it, or kNoStep
  /// By buffer: the latest of its reads since then, as a place in `read_log`, or kNoRead.
  std::vector<std::uint32_t> last_read;
  struct Read {
    StepId by{};
    std::uint32_t previous = 0;  ///< of the same buffer, as a place in `read_log`, or kNoRead
  };
  std::vector<Read> read_log;
  std::vector<BufferId> changing;  ///< by the step that is being added
  std::vector<std::pair<StepId, Dependency>> dependencies;
  std::vector<std::pair<BufferId, StepId>> holds;  ///< further steps that a release waits for

  std::uint64_t filed_as(TensorId tensor, std::uint32_t microbatch) const {
    return key(static_cast<std::uint32_t>(tensor),
               is_shared(workload[tensor]) ? kShared : microbatch);
  }

  std::optional<BufferId> stay(TensorId tensor, std::uint32_t microbatch, MemoryId memory) const {
    if (const auto& versions = versions_read[static_cast<std::size_t>(memory)]; !versions.empty())
      if (const auto version = versions.find(key(static_cast<std::uint32_t>(tensor), microbatch));
          version != versions.end())
        return version->second;
    const auto& of_memory = stays[static_cast<std::size_t>(memory)];
    const auto found = of_memory.find(filed_as(tensor, microbatch));
    if (found == of_memory.end()) return std::nullopt;
    return found->second;
  }

  BufferId add_buffer(Buffer buffer) {
    const auto id = BufferId{static_cast<std::uint32_t>(plan.buffers.size())};
    stays[static_cast<std::size_t>(buffer.memory)][filed_as(buffer.tensor, buffer.microbatch)] = id;
    plan.buffers.push_back(buffer);
    taken.push_back(false);
    is_version.push_back(false);
    is_superseded.push_back(false);
    changed_by.push_back(kNoStep);
    last_read.push_back(kNoRead);
    return id;
  }

  /// Where the value can be read: first a stay that nothing takes away, the wider tensor before its
  /// part.
  std::optional<BufferId> find(TensorId value, std::uint32_t microbatch, MemoryId memory) const {
    std::optional<BufferId> leaving;
    for (const TensorId tensor : {workload[value].inside, value}) {
      if (tensor == kNoTensor) continue;
      const auto found = stay(tensor, microbatch, memory);
      if (!found) continue;
      if (!taken[static_cast<std::size_t>(*found)]) return found;
      if (!leaving) leaving = found;
    }
    return leaving;
  }

  BufferId source(TensorId value, std::uint32_t microbatch, MemoryId memory) {
    if (const auto found = find(value, microbatch, memory)) return *found;
    const Lifetime lifetime = workload[value].lifetime;
    if (lifetime != Lifetime::resident && lifetime != Lifetime::input)
      throw PlanError(fmt::format("{}: `{}` of microbatch {} is not in `{}`", plan.policy,
                                  workload[value].name, microbatch, platform[memory].name));
    const BufferId placed = add_buffer({value, microbatch, 0, memory});
    plan.initial.push_back(placed);
    initial_stays[static_cast<std::size_t>(memory)][filed_as(value, microbatch)] = placed;
    return placed;
  }

  Slice pool(const std::vector<BufferId>& buffers) {
    const auto begin = static_cast<std::uint32_t>(plan.buffer_lists.size());
    plan.buffer_lists.insert(plan.buffer_lists.end(), buffers.begin(), buffers.end());
    return {begin, static_cast<std::uint32_t>(plan.buffer_lists.size())};
  }

  /// Adds what `part` reads and writes; returns the instance number of the run.
  std::uint32_t use(const Part& part, MemoryId memory, std::vector<BufferId>& reads,
                    std::vector<BufferId>& writes) {
    const Operator& op = workload[part.op];
    const auto read = [&](BufferId buffer) {
      if (std::ranges::find(reads, buffer) == reads.end()) reads.push_back(buffer);
    };
    for (const TensorId value : workload.list(op.reads))
      read(source(value, part.microbatch, memory));
    for (const TensorId value : workload.list(op.updates))
      changing.push_back(source(value, part.microbatch, memory));

    const std::uint32_t instance =
        runs[key(static_cast<std::uint32_t>(part.op), part.microbatch)]++;
    for (const TensorId tensor : workload.list(part.form == Form::keep ? op.kept : op.bare)) {
      // A gradient that another consumer or microbatch has begun is added to.
      const auto begun =
          op.phase == Phase::forward ? std::nullopt : stay(tensor, part.microbatch, memory);
      if (begun && std::ranges::find(writes, *begun) != writes.end()) continue;
      if (begun && !taken[static_cast<std::size_t>(*begun)]) {
        read(*begun);
        changing.push_back(*begun);
      } else {
        writes.push_back(add_buffer({tensor, part.microbatch, instance, memory}));
      }
    }
    return instance;
  }

  StepId add_step(Step step, const std::vector<BufferId>& reads,
                  const std::vector<BufferId>& writes) {
    step.reads = pool(reads);
    step.writes = pool(writes);
    plan.steps.push_back(step);
    plan.microbatches =
        std::max({plan.microbatches, step.microbatch + 1, step.second_microbatch + 1});
    const auto id = StepId{static_cast<std::uint32_t>(plan.steps.size() - 1)};
    wait_for_changes(id, reads);
    return id;
  }

  /// A buffer is valid when its maker ends; a reader in another lane waits for later changes, too,
  /// and a change for the readers before it.
  void wait_for_changes(StepId id, const std::vector<BufferId>& read) {
    const auto wait_for = [&](StepId on) {
      if (plan[on].lane != plan[id].lane)
        dependencies.push_back({id, {on, Dependency::Edge::after_end}});
    };
    for (const BufferId buffer : changing) {
      std::uint32_t& last = last_read[static_cast<std::size_t>(buffer)];
      for (; last != kNoRead; last = read_log[last].previous) wait_for(read_log[last].by);
    }
    for (const BufferId buffer : read) {
      const auto b = static_cast<std::size_t>(buffer);
      if (changed_by[b] != kNoStep) wait_for(changed_by[b]);
      read_log.push_back(
          {id, std::exchange(last_read[b], static_cast<std::uint32_t>(read_log.size()))});
    }
    for (const BufferId buffer : changing) {
      changed_by[static_cast<std::size_t>(buffer)] = id;
      last_read[static_cast<std::size_t>(buffer)] = kNoRead;
    }
    changing.clear();
  }

  LaneId lane(const Lane& wanted) {
    const auto same = [&](const Lane& l) {
      return l.kind == wanted.kind && l.processor == wanted.processor &&
             l.stream == wanted.stream && l.from == wanted.from && l.to == wanted.to;
    };
    const auto found = std::ranges::find_if(plan.lanes, same);
    const auto index = static_cast<std::uint32_t>(found - plan.lanes.begin());
    if (found == plan.lanes.end()) plan.lanes.push_back(wanted);
    return LaneId{index};
  }

  bool is_released_by_plan(BufferId buffer, const Readers& readers) const {
    switch (workload[plan[buffer].tensor].lifetime) {
      case Lifetime::step:
        return true;
      case Lifetime::resident:  // the last version stays
        if (is_superseded[static_cast<std::size_t>(buffer)]) return true;
        if (is_version[static_cast<std::size_t>(buffer)]) return false;
        [[fallthrough]];
      case Lifetime::input:  // what was there stays; a copy of it goes
        return readers.producer(buffer) != kNoStep;
      case Lifetime::stays:
        return false;
      case Lifetime::accumulated:
        return std::ranges::any_of(readers.of(buffer), [&](StepId s) {
          return plan[s].kind == StepKind::compute &&
                 workload[plan[s].op].phase == Phase::optimizer;
        });
    }
    return false;
  }

  void place_dependencies() {
    const auto by_step = [](const auto& a, const auto& b) { return a.first < b.first; };
    std::ranges::stable_sort(dependencies, by_step);
    for (const auto& [step, dependency] : dependencies) {
      Slice& slice = plan.steps[static_cast<std::size_t>(step)].after;
      const auto end = static_cast<std::uint32_t>(plan.dependencies.size());
      if (slice.begin == slice.end) slice.begin = end;
      slice.end = end + 1;
      plan.dependencies.push_back(dependency);
    }
  }

  /// By buffer: the steps that use it, and what else its release waits for, in issue order.
  /// Precondition: holds are sorted.
  std::vector<StepId> users(BufferId buffer, const Readers& readers) const {
    const auto of = readers.of(buffer);
    std::vector<StepId> all(of.begin(), of.end());
    for (auto held = std::ranges::lower_bound(holds, std::pair{buffer, StepId{}});
         held != holds.end() && held->first == buffer; ++held)
      all.push_back(held->second);
    std::ranges::sort(all);
    return all;
  }

  void derive_releases() {
    const Readers readers(plan);
    std::ranges::sort(holds);
    for (std::uint32_t b = 0; b < plan.buffers.size(); ++b) {
      const BufferId buffer{b};
      if (taken[b] || !is_released_by_plan(buffer, readers)) continue;
      const auto begin = static_cast<std::uint32_t>(plan.release_steps.size());
      for (const StepId step : last_in_each_lane(plan, users(buffer, readers)))
        plan.release_steps.push_back(step);
      if (plan.release_steps.size() == begin)
        plan.release_steps.push_back(readers.producer(buffer));
      plan.releases.push_back(
          {buffer, {begin, static_cast<std::uint32_t>(plan.release_steps.size())}});
    }
  }
};

PlanBuilder::PlanBuilder(const Workload& workload, const Platform& platform, std::string policy)
    : state_(std::make_unique<State>(
          State{workload, platform, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}})) {
  state_->plan.policy = std::move(policy);
  state_->stays.resize(platform.memories.size());
  state_->initial_stays.resize(platform.memories.size());
  state_->versions_read.resize(platform.memories.size());
}

PlanBuilder::~PlanBuilder() = default;

LaneId PlanBuilder::stream(ProcessorId processor, std::uint32_t stream) {
  return state_->lane({Lane::Kind::stream, processor, stream, {}, {}});
}

LaneId PlanBuilder::channel(MemoryId from, MemoryId to) {
  return state_->lane({Lane::Kind::channel, {}, 0, from, to});
}

StepId PlanBuilder::compute(LaneId lane, OperatorId op, std::uint32_t microbatch, Form form) {
  std::vector<BufferId> reads, writes;
  Step step{
      .kind = StepKind::compute, .form = form, .lane = lane, .op = op, .microbatch = microbatch};
  const MemoryId memory = state_->platform[state_->plan[lane].processor].memory;
  step.instance = state_->use({op, microbatch, form}, memory, reads, writes);
  return state_->add_step(step, reads, writes);
}

StepId PlanBuilder::pair(LaneId lane, Part first, Part second, Time duration) {
  std::vector<BufferId> reads, writes;
  Step step{.kind = StepKind::pair,
            .form = first.form,
            .second_form = second.form,
            .lane = lane,
            .op = first.op,
            .second = second.op,
            .microbatch = first.microbatch,
            .second_microbatch = second.microbatch,
            .duration = duration};
  const MemoryId memory = state_->platform[state_->plan[lane].processor].memory;
  step.instance = state_->use(first, memory, reads, writes);
  state_->use(second, memory, reads, writes);
  return state_->add_step(step, reads, writes);
}

StepId PlanBuilder::copy(LaneId channel, TensorId tensor, std::uint32_t microbatch,
                         SourceRelease source) {
  const Lane lane = state_->plan[channel];
  const BufferId from = state_->source(tensor, microbatch, lane.from);
  if (source != SourceRelease::keep) state_->taken[static_cast<std::size_t>(from)] = true;
  const Buffer made = state_->plan[from];
  const BufferId to = state_->add_buffer({tensor, made.microbatch, made.instance, lane.to});
  return state_->add_step({.kind = StepKind::copy,
                           .source = source,
                           .lane = channel,
                           .microbatch = made.microbatch,
                           .instance = made.instance},
                          {from}, {to});
}

void PlanBuilder::after_end(StepId step, StepId on) {
  state_->dependencies.push_back({step, {on, Dependency::Edge::after_end}});
}

void PlanBuilder::after_start(StepId step, StepId on) {
  state_->dependencies.push_back({step, {on, Dependency::Edge::after_start}});
}

void PlanBuilder::release(TensorId tensor, std::uint32_t microbatch, MemoryId memory) {
  // What is no longer found is no longer read: finish() releases it after its readers so far.
  const std::uint64_t filed = state_->filed_as(tensor, microbatch);
  auto& stays = state_->stays[static_cast<std::size_t>(memory)];
  stays.erase(filed);
  const auto& initial = state_->initial_stays[static_cast<std::size_t>(memory)];
  if (const auto placed = initial.find(filed); placed != initial.end())
    stays[filed] = placed->second;
}

void PlanBuilder::hold_until(TensorId tensor, std::uint32_t microbatch, MemoryId memory,
                             StepId step) {
  state_->holds.emplace_back(state_->source(tensor, microbatch, memory), step);
}

BufferId PlanBuilder::version(TensorId tensor, MemoryId memory) {
  return state_->source(tensor, 0, memory);
}

BufferId PlanBuilder::add_version(TensorId tensor, MemoryId memory, std::uint32_t microbatch,
                                  StepId after) {
  const StepId made = copy(channel(memory, memory), tensor, microbatch, SourceRelease::keep);
  after_end(made, after);
  const Plan& plan = state_->plan;
  const BufferId before = plan.list(plan[made].reads).front();
  const BufferId version = plan.list(plan[made].writes).front();
  state_->is_superseded[static_cast<std::size_t>(before)] = true;
  state_->is_version[static_cast<std::size_t>(version)] = true;
  return version;
}

void PlanBuilder::read_version(BufferId version, std::uint32_t microbatch) {
  const Buffer& buffer = state_->plan[version];
  state_->versions_read[static_cast<std::size_t>(buffer.memory)]
                       [key(static_cast<std::uint32_t>(buffer.tensor), microbatch)] = version;
}

void PlanBuilder::read_latest(TensorId tensor, std::uint32_t microbatch, MemoryId memory) {
  state_->versions_read[static_cast<std::size_t>(memory)].erase(
      key(static_cast<std::uint32_t>(tensor), microbatch));
}

void PlanBuilder::order_grants(MemoryId memory) {
  state_->plan.ordered_grants.push_back(memory);
}

void PlanBuilder::limit(MemoryId memory, Bytes bytes) {
  state_->plan.limits.emplace_back(memory, bytes);
}

bool PlanBuilder::holds(TensorId tensor, std::uint32_t microbatch, MemoryId memory) const {
  const auto found = state_->find(tensor, microbatch, memory);
  return found && !state_->taken[static_cast<std::size_t>(*found)];
}

Plan PlanBuilder::finish() {
  state_->place_dependencies();
  state_->derive_releases();
  return std::move(state_->plan);
}

}  // namespace plimsoll
