#include "plan/build/state_moves.hpp"

#include "base/dense_id.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <stdexcept>

namespace plimsoll {

StateMoves::StateMoves(RankedPlan& plan)
    : plan_(plan),
      users_(plan.result.plan.buffers.size()),
      begun_(plan.spreading.likes.size() * plan.played) {
  refuse_copies();
}

void StateMoves::begin(std::uint32_t s, std::uint32_t rank, Step& it, StepBuffers& used,
                       std::vector<Dependency>& after) {
  const Step& of_one = plan_.of_one.steps[s];
  auto& [reads, writes] = used;
  const auto is_room = [&](BufferId id) { return is_room_for_gradient(id); };
  std::ranges::copy_if(writes, std::back_inserter(plan_.result.plan.initial), is_room);
  std::erase_if(writes, is_room);
  const auto elsewhere = updates_on(of_one, rank);
  if (elsewhere) {
    it.lane = plan_.lane(Lane{Lane::Kind::stream, *elsewhere, 0, {}, {}, {}});
    it.duration = update_times(*elsewhere)[index(it.op)];
  }
  if (moves_state(plan_.collective_kind(of_one)))
    for (auto* buffers : {&reads, &writes}) keep_here(it, *buffers);
  if (stores_gradients(of_one)) leave_to_moves(reads);
  if (elsewhere)
    for (const auto* buffers : {&reads, &writes}) wait_for_users(s, rank, *buffers, after);
}

void StateMoves::refuse_copies() const {
  for (const Step& step : plan_.of_one.steps) {
    if (!is_move(step.kind)) continue;
    const Tensor& moved =
        plan_.workload[plan_.of_one[plan_.of_one.list(step.reads).front()].tensor];
    if (moved.home != Home::processor)
      throw std::invalid_argument("a plan of policy `" + plan_.of_one.policy +
                                  "` copies or sums up `" + moved.name +
                                  "`, which lives in a memory of its own");
  }
}

/// Where another processor runs the update that a step of the first rank runs: in its stream.
std::optional<ProcessorId> StateMoves::updates_on(const Step& of_one, std::uint32_t rank) const {
  if (of_one.kind != StepKind::compute) return std::nullopt;
  const Operator& op = plan_.workload[of_one.op];
  if (op.phase != Phase::optimizer || op.reads.begin == op.reads.end) return std::nullopt;
  return plan_.homes(plan_.platform[plan_.of_one[of_one.lane].processor].memory, rank).updates_on;
}

/// Of updates on a processor that need not be able to run anything else.
const std::vector<Time>& StateMoves::update_times(ProcessorId processor) {
  const auto [found, is_new] = update_times_.try_emplace(processor);
  if (!is_new) return found->second;
  Workload updates = plan_.workload;
  for (std::uint32_t op = 0; op < updates.optimizer_begin; ++op)
    updates.operators[op].given_time = Time{};
  return found->second = durations(updates, plan_.platform, processor);
}

/// Those that a step which moves state has where it runs; what it makes elsewhere is there before.
void StateMoves::keep_here(const Step& it, std::vector<BufferId>& buffers) const {
  const MemoryId here = plan_.platform[plan_.result.plan[it.lane].processor].memory;
  std::erase_if(buffers, [&](BufferId id) { return plan_.result.plan[id].memory != here; });
}

bool StateMoves::stores_gradients(const Step& of_one) const {
  return plan_.collective_kind(of_one) == CollectiveKind::store &&
         plan_.workload[of_one.op].phase != Phase::optimizer;
}

/// Of what a step stores, that which ranks reduce meanwhile: its move waits for them, and the
/// processor goes on.
void StateMoves::leave_to_moves(std::vector<BufferId>& stored) const {
  std::erase_if(stored, [&](BufferId id) { return !plan_.open[index(id)].empty(); });
}

bool StateMoves::is_room_for_gradient(BufferId id) const {
  const Tensor& tensor = plan_.workload[plan_.result.plan[id].tensor];
  return tensor.home != Home::processor && tensor.lifetime == Lifetime::resident;
}

/// Where a step has left the stream in which the plan has it, what it uses must be there by other
/// means. The first of a rank's begins after the backward, with all gradients.
void StateMoves::wait_for_users(std::uint32_t s, std::uint32_t rank,
                                std::span<const BufferId> buffers, std::vector<Dependency>& after) {
  const auto wait = [&](StepId on) { after.push_back({on, Dependency::Edge::after_end}); };
  for (const BufferId id : buffers)
    for (const StepId on : users_[index(id)]) wait(on);
  const LaneId left = plan_.of_one.steps[s].lane;
  const std::uint32_t device = plan_.device(plan_.platform[plan_.of_one[left].processor].memory);
  Begun& begun = begun_[device * plan_.played + rank];
  if (begun.updates) return;
  begun.updates = true;
  for (const StepId on : begun.gradients) wait(on);
  for (std::uint32_t before = s; before-- > 0;)
    if (plan_.of_one.steps[before].lane == left) return wait(plan_.step(StepId{before}, rank));
}

/// The last in each stream, and every move.
void StateMoves::note_users(StepId id, std::span<const BufferId> buffers) {
  const LaneId lane = plan_.result.plan[id].lane;
  const bool is_stream = plan_.result.plan[lane].kind == Lane::Kind::stream;
  for (const BufferId buffer : buffers) {
    auto& users = users_[index(buffer)];
    if (is_stream)
      std::erase_if(users, [&](StepId it) { return plan_.result.plan[it].lane == lane; });
    if (users.empty() || users.back() != id) users.push_back(id);
  }
}

/// The buffer of a step of the plan that holds the tensor.
std::optional<BufferId> StateMoves::that_holds(const Step& step, TensorId tensor) const {
  for (const Slice slice : {step.reads, step.writes})
    for (const BufferId id : plan_.of_one.list(slice))
      if (plan_.of_one[id].tensor == tensor) return id;
  return std::nullopt;
}

/// One for each pair of memories, of all that it moves between the two.
void StateMoves::add_moves(StepId id, std::uint32_t rank) {
  const Step& of_one = plan_.of_one[id];
  std::map<std::pair<MemoryId, MemoryId>, std::pair<std::vector<BufferId>, std::vector<BufferId>>>
      moves;
  for (const auto& [from, to] : moved_state(plan_.workload, of_one.op)) {
    const auto source = that_holds(of_one, from), target = that_holds(of_one, to);
    if (!source || !target) plan_.refuse("leaves out state that it moves");
    const BufferId of_rank[] = {plan_.buffer(*source, rank), plan_.buffer(*target, rank)};
    auto& [sources, targets] =
        moves[{plan_.result.plan[of_rank[0]].memory, plan_.result.plan[of_rank[1]].memory}];
    sources.push_back(of_rank[0]);
    targets.push_back(of_rank[1]);
  }
  const bool is_gradient = stores_gradients(of_one);
  for (auto& [way, buffers] : moves) {
    auto& [sources, targets] = buffers;
    std::vector<StepId> waits{plan_.step(id, rank)};
    for (const auto* all : {&sources, &targets})
      for (const BufferId it : *all)
        for (const auto* last : {&users_[index(it)], &plan_.open[index(it)]})
          waits.insert(waits.end(), last->begin(), last->end());
    plan_.note_way({way.first, way.second, 0, 0});
    std::vector<BufferId> all = sources;
    all.insert(all.end(), targets.begin(), targets.end());
    const StepId round =
        plan_.add_round(Lane{Lane::Kind::channel, {}, 0, way.first, way.second, {}}, all,
                        {0, 1, 1, is_gradient && of_one.microbatch > 0, 0, 1, 0, of_one.op}, waits);
    for (const BufferId it : all) plan_.open[index(it)] = {round};
    note_users(round, all);
    if (is_gradient)
      begun_[plan_.device(plan_.platform[plan_.of_one[of_one.lane].processor].memory) *
                 plan_.played +
             rank]
          .gradients.push_back(round);
  }
}

/// Steps that the plan has in one stream may be in two.
void StateMoves::add_users_since(std::uint32_t from, BufferId id) {
  auto& steps = plan_.result.plan.release_steps;
  const std::vector<StepId>& users = users_[index(id)];
  steps.insert(steps.end(), users.begin(), users.end());
  const auto begin = steps.begin() + from;
  std::sort(begin, steps.end());
  steps.erase(std::unique(begin, steps.end()), steps.end());
}

}  // namespace plimsoll
