#include "plan/plan_builder.hpp"

#include "plan/latest_stays.hpp"
#include "plan/open_reductions.hpp"
#include "plan/readers.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::uint32_t kNoRead = 0xFFFFFFFF;

std::uint64_t version_key(TensorId tensor, std::uint32_t microbatch) {
  return std::uint64_t{index(tensor)} << 32 | microbatch;
}

/// By tensor: whether some operator may change bytes of it that are there already: in place, or by
/// adding to what another operator or microbatch has made.
std::vector<bool> changeable(const Workload& workload) {
  std::vector<bool> made(workload.tensors.size(), false), changes(workload.tensors.size(), false);
  for (const Operator& op : workload.operators) {
    for (const TensorId value : workload.list(op.updates)) {
      changes[index(value)] = true;
      if (workload[value].inside != kNoTensor) changes[index(workload[value].inside)] = true;
    }
    if (op.phase == Phase::forward) continue;
    for (const TensorId tensor : workload.list(op.kept)) {
      if (made[index(tensor)] || workload[tensor].lifetime == Lifetime::accumulated)
        changes[index(tensor)] = true;
      made[index(tensor)] = true;
    }
  }
  return changes;
}

}  // namespace

struct PlanBuilder::State {
  State(const Workload& of, const Platform& on)
      : workload(of),
        platform(on),
        stays(of, plan.buffers),
        initial_stays(of, plan.buffers),
        changes(changeable(of)),
        versions_read(on.memories.size()) {}

  const Workload& workload;
  const Platform& platform;
  Plan plan;
  LatestStays stays, initial_stays;
  std::vector<bool> changes;        ///< by tensor: an operator may change it
  std::vector<std::uint32_t> runs;  ///< by microbatch and operator, for the microbatches so far
  std::vector<bool> taken;          ///< by buffer: a copy takes it away
  /// By memory: (resident tensor, microbatch) -> the version that it reads. Never iterated.
  std::vector<std::unordered_map<std::uint64_t, BufferId>> versions_read;
  std::vector<bool> is_version, is_superseded;  ///< by buffer
  std::vector<StepId> changed_by;  ///< by buffer: who last changed or added to it, or kNoStep
  /// By buffer: the latest of its reads since then, as a place in `read_log`, or kNoRead. Reads of
  /// what nobody changes are not logged.
  std::vector<std::uint32_t> last_read;
  struct Read {
    StepId by{};
    std::uint32_t previous = 0;  ///< of the same buffer, as a place in `read_log`, or kNoRead
  };
  std::vector<Read> read_log;
  OpenReductions reductions;
  std::uint32_t groups = 0;                       ///< of reductions, so far
  std::vector<BufferId> reads, writes, changing;  ///< by the step that is being added
  std::vector<std::pair<StepId, Dependency>> dependencies;
  std::vector<std::pair<BufferId, StepId>> holds;  ///< further steps that a release waits for

  std::optional<BufferId> stay(TensorId tensor, std::uint32_t microbatch, MemoryId memory) const {
    if (const auto& versions = versions_read[index(memory)]; !versions.empty())
      if (const auto version = versions.find(version_key(tensor, microbatch));
          version != versions.end())
        return version->second;
    return stays.find(tensor, microbatch, memory);
  }

  BufferId add_buffer(Buffer buffer) {
    const auto id = BufferId{static_cast<std::uint32_t>(plan.buffers.size())};
    plan.buffers.push_back(buffer);
    stays.add();
    taken.push_back(false);
    is_version.push_back(false);
    is_superseded.push_back(false);
    changed_by.push_back(kNoStep);
    last_read.push_back(kNoRead);
    return id;
  }

  /// Counts one more run of the operator; returns those before.
  std::uint32_t count_run(OperatorId op, std::uint32_t microbatch) {
    const std::size_t operators = workload.operators.size();
    const std::size_t entry = microbatch * operators + index(op);
    if (entry >= runs.size()) runs.resize((microbatch + std::size_t{1}) * operators, 0);
    return runs[entry]++;
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
    initial_stays.add();
    return placed;
  }

  Slice pool(const std::vector<BufferId>& buffers) {
    const auto begin = static_cast<std::uint32_t>(plan.buffer_lists.size());
    plan.buffer_lists.insert(plan.buffer_lists.end(), buffers.begin(), buffers.end());
    return {begin, static_cast<std::uint32_t>(plan.buffer_lists.size())};
  }

  /// Adds what `part` reads and writes; returns the instance number of the run.
  std::uint32_t use(const Part& part, MemoryId memory) {
    const Operator& op = workload[part.op];
    const auto read = [&](BufferId buffer) {
      if (std::ranges::find(reads, buffer) == reads.end()) reads.push_back(buffer);
    };
    for (const TensorId value : workload.list(op.reads))
      read(source(value, part.microbatch, memory));
    for (const TensorId value : workload.list(op.updates))
      changing.push_back(source(value, part.microbatch, memory));

    const std::uint32_t instance = count_run(part.op, part.microbatch);
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

  /// Adds a step that uses what `reads`, `writes` and `changing` say, and empties them.
  StepId add_step(Step step) {
    step.reads = pool(reads);
    step.writes = pool(writes);
    plan.steps.push_back(step);
    plan.microbatches =
        std::max({plan.microbatches, step.microbatch + 1, step.second_microbatch + 1});
    const auto id = StepId{static_cast<std::uint32_t>(plan.steps.size() - 1)};
    wait_for_changes(id);
    reads.clear();
    writes.clear();
    return id;
  }

  /// Adds a reduction that uses what `reads` says, and empties it.
  StepId add_reduction(Step step, std::uint32_t group, std::span<const StepId> after) {
    step.reads = pool(reads);
    step.writes = pool({});
    plan.steps.push_back(step);
    const auto id = StepId{static_cast<std::uint32_t>(plan.steps.size() - 1)};
    wait_for_users(id, group, after);
    reads.clear();
    return id;
  }

  /// Copies the value of `tensor` from `from`.
  StepId add_copy(LaneId channel, BufferId from, TensorId tensor, SourceRelease source) {
    if (source != SourceRelease::keep) taken[static_cast<std::size_t>(from)] = true;
    const Buffer made = plan[from];
    const BufferId to = add_buffer({tensor, made.microbatch, made.instance, plan[channel].to});
    reads.push_back(from);
    writes.push_back(to);
    return add_step({.kind = StepKind::copy,
                     .source = source,
                     .lane = channel,
                     .microbatch = made.microbatch,
                     .instance = made.instance});
  }

  /// A buffer is valid when its maker ends; a reader in another lane waits for later changes, too,
  /// and a change for the readers before it.
  void wait_for_changes(StepId id) {
    const auto wait_for = [&](StepId on) {
      if (plan[on].lane != plan[id].lane)
        dependencies.push_back({id, {on, Dependency::Edge::after_end}});
    };
    for (const BufferId buffer : changing) {
      for (const StepId reduction : reductions.of(buffer)) wait_for(reduction);
      reductions.close(buffer);
      std::uint32_t& last = last_read[static_cast<std::size_t>(buffer)];
      for (; last != kNoRead; last = read_log[last].previous) wait_for(read_log[last].by);
    }
    for (const BufferId buffer : reads) {
      const auto b = static_cast<std::size_t>(buffer);
      for (const StepId reduction : reductions.of(buffer)) wait_for(reduction);
      if (changed_by[b] != kNoStep) wait_for(changed_by[b]);
      if (!changes[index(plan.buffers[b].tensor)]) continue;
      read_log.push_back(
          {id, std::exchange(last_read[b], static_cast<std::uint32_t>(read_log.size()))});
    }
    for (const BufferId buffer : changing) {
      changed_by[static_cast<std::size_t>(buffer)] = id;
      last_read[static_cast<std::size_t>(buffer)] = kNoRead;
    }
    changing.clear();
  }

  /// Who has used the buffer since it was made, but those that others of them come after.
  std::vector<StepId> users_so_far(BufferId buffer) const {
    const auto b = static_cast<std::size_t>(buffer);
    const auto open = reductions.of(buffer);
    std::vector<StepId> users(open.begin(), open.end());
    if (changed_by[b] != kNoStep) users.push_back(changed_by[b]);
    for (std::uint32_t read = last_read[b]; read != kNoRead; read = read_log[read].previous)
      users.push_back(read_log[read].by);
    std::ranges::sort(users);
    return last_in_each_lane(plan, users);
  }

  /// Orders a reduction that was just added after what it does not know itself.
  void wait_for_users(StepId id, std::uint32_t group, std::span<const StepId> after) {
    std::vector<StepId> all(after.begin(), after.end());
    for (const BufferId buffer : plan.list(plan[id].reads)) {
      if (!reductions.has_begun(buffer, group))
        reductions.begin(buffer, group, users_so_far(buffer));
      const auto before = reductions.add(buffer, id, after);
      all.insert(all.end(), before.begin(), before.end());
    }
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    for (const StepId on : last_in_each_lane(plan, all))
      dependencies.push_back({id, {on, Dependency::Edge::after_end}});
  }

  LaneId lane(const Lane& wanted) {
    const auto same = [&](const Lane& l) {
      return l.kind == wanted.kind && l.processor == wanted.processor &&
             l.stream == wanted.stream && l.from == wanted.from && l.to == wanted.to &&
             l.image == wanted.image;
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

  /// Frees what only further steps would need.
  void forget_uses() {
    runs = std::vector<std::uint32_t>();
    read_log = std::vector<Read>();
    last_read = std::vector<std::uint32_t>();
    changed_by = std::vector<StepId>();
    dependencies = std::vector<std::pair<StepId, Dependency>>();
  }

  /// The steps that use the buffer, and what else its release waits for, in issue order, in
  /// `all` where that is not what `readers` has. Precondition: holds are sorted.
  std::span<const StepId> users(BufferId buffer, const Readers& readers,
                                std::vector<StepId>& all) const {
    const auto of = readers.of(buffer);
    auto held = std::ranges::lower_bound(holds, std::pair{buffer, StepId{}});
    if (held == holds.end() || held->first != buffer) return of;
    all.assign(of.begin(), of.end());
    for (; held != holds.end() && held->first == buffer; ++held) all.push_back(held->second);
    std::ranges::sort(all);
    return all;
  }

  void derive_releases() {
    const Readers readers(plan);
    std::ranges::sort(holds);
    plan.releases.reserve(plan.buffers.size());
    plan.release_steps.reserve(plan.buffers.size());
    std::vector<StepId> all, last;
    for (std::uint32_t b = 0; b < plan.buffers.size(); ++b) {
      const BufferId buffer{b};
      if (taken[b] || !is_released_by_plan(buffer, readers)) continue;
      const auto begin = static_cast<std::uint32_t>(plan.release_steps.size());
      last_in_each_lane(plan, users(buffer, readers, all), last);
      plan.release_steps.insert(plan.release_steps.end(), last.begin(), last.end());
      if (plan.release_steps.size() == begin)
        plan.release_steps.push_back(readers.producer(buffer));
      plan.releases.push_back(
          {buffer, {begin, static_cast<std::uint32_t>(plan.release_steps.size())}});
    }
  }
};

PlanBuilder::PlanBuilder(const Workload& workload, const Platform& platform, std::string policy)
    : state_(std::make_unique<State>(workload, platform)) {
  state_->plan.policy = std::move(policy);
}

PlanBuilder::~PlanBuilder() = default;

LaneId PlanBuilder::stream(ProcessorId processor, std::uint32_t stream) {
  return state_->lane({Lane::Kind::stream, processor, stream, {}, {}, {}});
}

LaneId PlanBuilder::channel(MemoryId from, MemoryId to) {
  return state_->lane({Lane::Kind::channel, {}, 0, from, to, {}});
}

LaneId PlanBuilder::channel(MemoryId from, MemoryId to, MemoryId image) {
  return state_->lane({Lane::Kind::channel, {}, 0, from, to, image});
}

StepId PlanBuilder::compute(LaneId lane, OperatorId op, std::uint32_t microbatch, Form form) {
  Step step{
      .kind = StepKind::compute, .form = form, .lane = lane, .op = op, .microbatch = microbatch};
  const MemoryId memory = state_->platform[state_->plan[lane].processor].memory;
  step.instance = state_->use({op, microbatch, form}, memory);
  return state_->add_step(step);
}

StepId PlanBuilder::pair(LaneId lane, Part first, Part second, Time duration) {
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
  step.instance = state_->use(first, memory);
  state_->use(second, memory);
  return state_->add_step(step);
}

StepId PlanBuilder::copy(LaneId channel, TensorId tensor, std::uint32_t microbatch,
                         SourceRelease source) {
  const BufferId from = state_->source(tensor, microbatch, state_->plan[channel].from);
  return state_->add_copy(channel, from, tensor, source);
}

StepId PlanBuilder::copy_on(StepId made, LaneId channel, SourceRelease source) {
  const BufferId from = state_->plan.list(state_->plan[made].writes).front();
  return state_->add_copy(channel, from, state_->plan[from].tensor, source);
}

StepId PlanBuilder::reduce(LaneId channel, std::span<const TensorId> gradients,
                           const Reduction& part, std::uint32_t group,
                           std::span<const StepId> after) {
  const Lane lane = state_->plan[channel];
  for (const TensorId gradient : gradients)
    state_->reads.push_back(state_->source(gradient, 0, lane.from));
  if (!lane.image)
    for (const TensorId gradient : gradients)
      state_->reads.push_back(state_->source(gradient, 0, lane.to));
  Step step{.kind = StepKind::reduce, .lane = channel};
  step.reduction = static_cast<std::uint32_t>(state_->plan.reductions.size());
  state_->plan.reductions.push_back(part);
  return state_->add_reduction(step, group, after);
}

std::uint32_t PlanBuilder::new_group() {
  return state_->groups++;
}

void PlanBuilder::mirror(ProcessorId processor, ProcessorId like) {
  state_->plan.mirrors.push_back({processor, like});
}

void PlanBuilder::after_end(StepId step, StepId on) {
  state_->dependencies.push_back({step, {on, Dependency::Edge::after_end}});
}

void PlanBuilder::after_start(StepId step, StepId on) {
  state_->dependencies.push_back({step, {on, Dependency::Edge::after_start}});
}

void PlanBuilder::release(TensorId tensor, std::uint32_t microbatch, MemoryId memory) {
  // What is no longer found is no longer read: finish() releases it after its readers so far.
  state_->stays.forget(tensor, microbatch, memory);
  if (const auto placed = state_->initial_stays.find(tensor, microbatch, memory))
    state_->stays.restore(*placed);
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
  state_->versions_read[index(buffer.memory)][version_key(buffer.tensor, microbatch)] = version;
}

void PlanBuilder::read_latest(TensorId tensor, std::uint32_t microbatch, MemoryId memory) {
  state_->versions_read[index(memory)].erase(version_key(tensor, microbatch));
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

void PlanBuilder::reserve(std::size_t steps, std::size_t buffers, std::size_t uses) {
  state_->plan.steps.reserve(steps);
  state_->plan.buffers.reserve(buffers);
  state_->plan.buffer_lists.reserve(uses);
}

Plan PlanBuilder::finish() {
  state_->place_dependencies();
  state_->forget_uses();
  state_->derive_releases();
  Plan plan = std::move(state_->plan);
  plan.steps.shrink_to_fit();
  plan.buffers.shrink_to_fit();
  plan.buffer_lists.shrink_to_fit();
  plan.releases.shrink_to_fit();
  plan.release_steps.shrink_to_fit();
  plan.dependencies.shrink_to_fit();
  return plan;
}

}  // namespace plimsoll
