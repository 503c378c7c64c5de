#include "plan/build/plan_builder.hpp"

#include "plan/build/change_order.hpp"
#include "plan/build/derived_releases.hpp"
#include "plan/build/kept_generators.hpp"
#include "plan/build/latest_stays.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Of a tensor that lives where it is used.
constexpr MemoryId kAnywhere{0xFFFFFFFF};

std::uint64_t version_key(TensorId tensor, std::uint32_t microbatch) {
  return std::uint64_t{index(tensor)} << 32 | microbatch;
}

}  // namespace

struct PlanBuilder::State {
  State(const Workload& of, const Platform& on)
      : workload(of),
        platform(on),
        stays(of, plan.buffers),
        initial_stays(of, plan.buffers),
        order(of, plan),
        versions_read(on.memories.size()) {}

  const Workload& workload;
  const Platform& platform;
  Plan plan;
  LatestStays stays, initial_stays;
  ChangeOrder order;
  BufferFacts facts;
  std::vector<std::uint32_t> runs;  ///< by microbatch and operator, for the microbatches so far
  /// By memory: (resident tensor, microbatch) -> the version that it reads. Never iterated.
  std::vector<std::unordered_map<std::uint64_t, BufferId>> versions_read;
  KeptGenerators generators;
  std::vector<MemoryId> lives_in;  ///< by tensor; empty where all live where they are used
  std::uint32_t groups = 0;        ///< of reductions, so far
  std::vector<BufferId> reads, writes, changing;  ///< by the step that is being added

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
    return id;
  }

  /// Counts one more run of the operator; returns those before.
  std::uint32_t count_run(OperatorId op, std::uint32_t microbatch) {
    const std::size_t operators = workload.operators.size();
    const std::size_t entry = microbatch * operators + index(op);
    if (entry >= runs.size()) runs.resize((microbatch + std::size_t{1}) * operators, 0);
    return runs[entry]++;
  }

  /// Where operators in `memory` make and read the tensor.
  MemoryId memory_of(TensorId tensor, MemoryId memory) const {
    if (lives_in.empty() || lives_in[index(tensor)] == kAnywhere) return memory;
    return lives_in[index(tensor)];
  }

  /// Where the value can be read: first a stay that nothing takes away, the wider tensor before its
  /// part, and what was made later, of which the other need not stay.
  std::optional<BufferId> find(TensorId value, std::uint32_t microbatch, MemoryId memory) const {
    std::optional<BufferId> leaving;
    for (const TensorId tensor : {workload[value].inside, workload[value].later, value}) {
      if (tensor == kNoTensor) continue;
      const auto found = stay(tensor, microbatch, memory_of(tensor, memory));
      if (!found) continue;
      if (!is_marked(facts.taken, *found)) return found;
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
    const BufferId placed = add_buffer({value, microbatch, 0, memory_of(value, memory)});
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
      const auto begun = op.phase == Phase::forward
                             ? std::nullopt
                             : stay(tensor, part.microbatch, memory_of(tensor, memory));
      if (begun && std::ranges::find(writes, *begun) != writes.end()) continue;
      if (begun && !is_marked(facts.taken, *begun)) {
        read(*begun);
        changing.push_back(*begun);
      } else {
        writes.push_back(
            add_buffer({tensor, part.microbatch, instance, memory_of(tensor, memory)}));
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
    order.add_step(id, changing);
    reads.clear();
    writes.clear();
    changing.clear();
    return id;
  }

  /// Adds a reduction that uses what `reads` says, and empties it.
  StepId add_reduction(Step step, std::uint32_t group, std::span<const StepId> after) {
    step.reads = pool(reads);
    step.writes = pool({});
    plan.steps.push_back(step);
    const auto id = StepId{static_cast<std::uint32_t>(plan.steps.size() - 1)};
    order.add_reduction(id, group, after);
    reads.clear();
    return id;
  }

  /// Copies the value of `tensor` from `from`.
  StepId add_copy(LaneId channel, BufferId from, TensorId tensor, SourceRelease source) {
    if (source != SourceRelease::keep) mark(facts.taken, from);
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

  LaneId lane(const Lane& wanted) {
    const auto found = std::ranges::find(plan.lanes, wanted);
    const auto index = static_cast<std::uint32_t>(found - plan.lanes.begin());
    if (found == plan.lanes.end()) plan.lanes.push_back(wanted);
    return LaneId{index};
  }
};

PlanBuilder::PlanBuilder(const Workload& workload, const Platform& platform, std::string policy)
    : state_(std::make_unique<State>(workload, platform)) {
  state_->plan.policy = std::move(policy);
}

PlanBuilder::~PlanBuilder() = default;

void PlanBuilder::keep_in(TensorId tensor, MemoryId memory) {
  std::vector<MemoryId>& all = state_->lives_in;
  if (all.empty()) all.assign(state_->workload.tensors.size(), kAnywhere);
  all[index(tensor)] = memory;
}

LaneId PlanBuilder::stream(ProcessorId processor, std::uint32_t stream) {
  return state_->lane({Lane::Kind::stream, processor, stream, {}, {}, {}});
}

LaneId PlanBuilder::channel(MemoryId from, MemoryId to) {
  return state_->lane({Lane::Kind::channel, {}, 0, from, to, {}});
}

LaneId PlanBuilder::channel(MemoryId from, MemoryId to, MemoryId image) {
  return state_->lane({Lane::Kind::channel, {}, 0, from, to, Lane::Image{image, from}});
}

StepId PlanBuilder::compute(LaneId lane, OperatorId op, std::uint32_t microbatch, Form form,
                            std::optional<Time> duration) {
  Step step{.kind = StepKind::compute,
            .form = form,
            .lane = lane,
            .op = op,
            .microbatch = microbatch,
            .duration = duration};
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
  if (!lane.comes_back())
    for (const TensorId gradient : gradients)
      state_->reads.push_back(state_->source(gradient, 0, lane.arrives_in()));
  Step step{.kind = StepKind::reduce, .lane = channel};
  step.reduction = static_cast<std::uint32_t>(state_->plan.reductions.size());
  state_->plan.reductions.push_back(part);
  state_->plan.reductions.back().collective = group + 1;
  return state_->add_reduction(step, group, after);
}

std::uint32_t PlanBuilder::new_group() {
  return state_->groups++;
}

void PlanBuilder::mirror(ProcessorId processor, ProcessorId like) {
  state_->plan.mirrors.push_back({processor, like});
}

void PlanBuilder::mirror(const std::vector<LinkMirror>& links) {
  state_->plan.link_mirrors = links;
}

void PlanBuilder::after_end(StepId step, StepId on) {
  state_->order.wait(step, {on, Dependency::Edge::after_end});
}

void PlanBuilder::after_start(StepId step, StepId on) {
  state_->order.wait(step, {on, Dependency::Edge::after_start});
}

void PlanBuilder::release(TensorId tensor, std::uint32_t microbatch, MemoryId memory) {
  // What is no longer found is no longer read: finish() releases it after its readers so far.
  if (const auto latest = state_->stays.find(tensor, microbatch, memory);
      latest && state_->workload[tensor].lifetime == Lifetime::stays)
    mark(state_->facts.is_superseded, *latest);
  state_->stays.forget(tensor, microbatch, memory);
  if (const auto placed = state_->initial_stays.find(tensor, microbatch, memory))
    state_->stays.restore(*placed);
}

void PlanBuilder::hold_until(TensorId tensor, std::uint32_t microbatch, MemoryId memory,
                             StepId step) {
  state_->facts.holds.emplace_back(state_->source(tensor, microbatch, memory), step);
}

void PlanBuilder::keep_each_generator() {
  state_->generators.of_each = true;
}

void PlanBuilder::hold_generator(StepId first, StepId until, std::optional<Bytes> offset) {
  state_->generators.holds.push_back({first, until, offset});
}

void PlanBuilder::place(TensorId tensor, std::uint32_t microbatch, MemoryId memory, Bytes offset) {
  const BufferId stay = state_->source(tensor, microbatch, memory);
  state_->plan.buffers[index(stay)].offset = offset;
}

void PlanBuilder::place_workspace(StepId step, Bytes offset) {
  state_->plan.steps[index(step)].workspace_offset = offset;
}

BufferId PlanBuilder::version(TensorId tensor, MemoryId memory) {
  return state_->source(tensor, 0, memory);
}

BufferId PlanBuilder::add_version(TensorId tensor, MemoryId memory, std::uint32_t microbatch,
                                  std::span<const StepId> after) {
  const StepId made = copy(channel(memory, memory), tensor, microbatch, SourceRelease::keep);
  for (const StepId step : after) after_end(made, step);
  const Plan& plan = state_->plan;
  const BufferId before = plan.list(plan[made].reads).front();
  const BufferId version = plan.list(plan[made].writes).front();
  mark(state_->facts.is_superseded, before);
  mark(state_->facts.is_version, version);
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
  return found && !is_marked(state_->facts.taken, *found);
}

bool PlanBuilder::holds_for_backward(OperatorId gather, std::uint32_t microbatch,
                                     MemoryId memory) const {
  const Workload& workload = state_->workload;
  return std::ranges::all_of(workload.list(workload[gather].kept), [&](TensorId brought) {
    const TensorId later = workload[brought].later;
    return later != kNoTensor && holds(later, microbatch, memory);
  });
}

void PlanBuilder::reserve(std::size_t steps, std::size_t buffers, std::size_t uses) {
  state_->plan.steps.reserve(steps);
  state_->plan.buffers.reserve(buffers);
  state_->plan.buffer_lists.reserve(uses);
}

Plan PlanBuilder::finish() {
  state_->order.finish(state_->plan);
  state_->runs = std::vector<std::uint32_t>();
  keep_generators(state_->plan, state_->workload, state_->platform, state_->generators,
                  state_->facts);
  derive_releases(state_->plan, state_->workload, std::move(state_->facts));
  return std::move(state_->plan);
}

}  // namespace plimsoll
