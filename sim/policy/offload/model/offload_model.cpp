#include "policy/offload/model/offload_model.hpp"

#include "base/dense_id.hpp"
#include "policy/claims/copy_time.hpp"
#include "policy/remat/chain/chain_sequence.hpp"

#include <algorithm>
#include <utility>

namespace plimsoll {
namespace {

/// Of Work, for a request for room.
constexpr std::size_t kStepsAGrant = 8;

/// Whether a link carries both ways and only one copy at a time.
bool shares_a_port(const Problem& problem, const OffloadMemories& memories) {
  const Route& out = *problem.topology.route(memories.home, memories.storage);
  const Route& in = *problem.topology.route(memories.storage, memories.home);
  return std::ranges::any_of(out.hops, [&](const Hop& hop) {
    const bool half = problem.platform[hop.link].duplex == Duplex::half;
    return std::ranges::any_of(in.hops, [&](const Hop& other) {
      return other.link == hop.link && (half || other.direction == hop.direction);
    });
  });
}

OffloadStage stage_of(const Problem& problem, const OffloadMemories& memories,
                      const StageCosts& costs, std::size_t s) {
  OffloadStage stage;
  stage.forward = costs.forward;
  stage.backward = costs.backward;
  for (const TensorId id : problem.chain.saved(s)) {
    const Bytes bytes = problem.workload[id].bytes;
    stage.moved += bytes;
    stage.out += copy_time(problem, memories.home, memories.storage, bytes);
    stage.in += copy_time(problem, memories.storage, memories.home, bytes);
    stage.moving += moving_time(problem, memories.home, memories.storage, bytes);
  }
  stage.passing = costs.saved > stage.moved ? costs.saved - stage.moved : Bytes{};
  stage.gradient = costs.gradient;
  stage.forward_workspace = costs.keep_workspace;
  stage.backward_workspace = costs.backward_workspace;
  stage.lasting = costs.lasting;
  return stage;
}

}  // namespace

Time OffloadModel::compute_time() const {
  Time sum = optimizer;
  for (const OffloadStage& stage : stages) sum += stage.forward + stage.backward;
  return sum;
}

Bytes OffloadModel::may_move() const {
  Bytes sum;
  for (std::size_t s = 0; s < candidates; ++s) sum += stages[s].moved;
  return sum;
}

Bytes OffloadModel::beside_forward(std::size_t s) const {
  const Bytes before = s > 0 ? stages[s - 1].passing : Bytes{};
  return resident + before + stages[s].passing + stages[s].forward_workspace;
}

Bytes OffloadModel::beside_backward(std::size_t s) const {
  const Bytes before = s > 0 ? stages[s - 1].gradient : input_gradient;
  Bytes sum = resident + stages[s].gradient + before + stages[s].backward_workspace;
  for (std::size_t q = s; q < stages.size(); ++q) sum += stages[q].lasting;
  return sum;
}

OffloadModel offload_model(const Problem& problem, const OffloadMemories& memories, Bytes budget,
                           SourceRelease release) {
  const ChainCosts costs = chain_costs(problem, memories.processor);
  OffloadModel model;
  model.work = problem.work;
  for (std::size_t s = 0; s < costs.stages.size(); ++s)
    model.stages.push_back(stage_of(problem, memories, costs.stages[s], s));
  model.candidates = offloaded_stages(problem);
  model.resident = costs.resident;
  model.input_gradient = costs.input_gradient;
  model.optimizer_workspace = costs.optimizer_workspace;
  model.optimizer = costs.optimizer;
  model.budget = budget;
  if (const Bytes room = problem.platform[memories.storage].usable(); room < model.may_move())
    model.storage = room;
  model.out_rate = problem.topology.route(memories.home, memories.storage)->bandwidth;
  model.in_rate = problem.topology.route(memories.storage, memories.home)->bandwidth;
  model.progressive = release == SourceRelease::progressive;
  model.one_way = shares_a_port(problem, memories);
  return model;
}

bool has_simple_stages(const Problem& problem) {
  for (std::size_t s = 0; s < problem.chain.stages.size(); ++s) {
    const ChainStage& stage = problem.chain.stages[s];
    if (stage.forward_end - stage.forward_begin != 1 || problem.chain.backward(s).size() != 1 ||
        problem.chain.saved(s).size() > 1)
      return false;
  }
  return problem.workload.is_chain;
}

OffloadSet everything(const OffloadModel& model) {
  OffloadSet set(model.stages.size(), false);
  for (std::size_t s = 0; s < model.candidates; ++s) set[s] = model.stages[s].moved > Bytes{};
  return set;
}

Bytes smallest_budget(const OffloadModel& model, const OffloadSet& set) {
  Bytes need, staying, lasting;  // staying: of stages at least two behind, never moved
  for (std::size_t s = 0; s < model.stages.size(); ++s) lasting += model.stages[s].lasting;
  need = model.resident + lasting + model.input_gradient + model.optimizer_workspace;
  for (std::size_t s = 0; s < model.stages.size(); ++s) {
    const OffloadStage& stage = model.stages[s];
    if (s >= 2 && !set[s - 2]) staying += model.stages[s - 2].moved;
    const Bytes here = staying + stage.moved + (s > 0 ? model.stages[s - 1].moved : Bytes{});
    const Bytes before = s > 0 ? model.stages[s - 1].gradient : model.input_gradient;
    need = std::max(
        {need, here + model.beside_forward(s),
         here + model.resident + stage.gradient + before + stage.backward_workspace + lasting});
    lasting -= stage.lasting;
  }
  return need;
}

OffloadPlay::OffloadPlay(const OffloadModel& model)
    : model_(&model), ledger_(model.budget), storage_(model.storage), stages_(model.stages.size()) {
  ledger_.place(model.resident);
}

bool OffloadPlay::compute(Bytes demand, Moment ready, Time duration) {
  model_->work.add(kStepsAGrant + ledger_.under_way());
  const auto start = ledger_.grant(demand, ready);
  if (start) stream_free_ = after(*start, duration);
  return start.has_value();
}

bool OffloadPlay::forward() {
  const std::size_t s = forwards_;
  const OffloadStage& stage = model_->stages[s];
  if (!compute(stage.moved + stage.passing + stage.forward_workspace, stream_free_, stage.forward))
    return false;
  ++forwards_;
  stages_[s].forward_end = stream_free_;
  ledger_.free_at(stream_free_, stage.forward_workspace);
  if (s > 0) {
    ledger_.free_at(stream_free_, model_->stages[s - 1].passing);
    if (stages_[s - 1].is_out) free_source(s - 1);
  }
  return true;
}

bool OffloadPlay::backward() {
  const std::size_t s = model_->stages.size() - 1 - backwards_;
  const OffloadStage& stage = model_->stages[s];
  Bytes demand = stage.backward_workspace + stage.lasting +
                 (s > 0 ? model_->stages[s - 1].gradient : model_->input_gradient);
  if (backwards_ == 0) demand += stage.gradient;
  Moment ready = std::max(stream_free_, stages_[s].in_end);
  if (s > 0) ready = std::max(ready, stages_[s - 1].in_end);
  if (!compute(demand, ready, stage.backward)) return false;
  ++backwards_;
  ledger_.free_at(stream_free_, stage.moved + stage.gradient + stage.backward_workspace);
  return true;
}

bool OffloadPlay::out(std::size_t s) {
  const OffloadStage& stage = model_->stages[s];
  Stage& it = stages_[s];
  const Moment ready = std::max({out_free_, it.forward_end, model_->one_way ? in_free_ : Moment{}});
  const auto start = storage_.grant(stage.moved, ready);
  if (!start) return false;
  it.out_end = out_free_ = after(*start, stage.out);
  it.is_out = true;
  if (model_->progressive)
    it.release_id =
        ledger_.release_progressively(it.out_end.time - stage.moving, it.out_end, stage.moved);
  if (has_next_forward(s)) free_source(s);
  return true;
}

/// The copy out has been issued, and so has the forward that reads the stage.
void OffloadPlay::free_source(std::size_t s) {
  const Moment read = stages_[s + 1].forward_end;
  if (model_->progressive)
    ledger_.open_release(stages_[s].release_id, read);
  else
    ledger_.free_at(std::max(stages_[s].out_end, read), model_->stages[s].moved);
}

Moment OffloadPlay::left(std::size_t s) const {
  const Moment read = has_next_forward(s) ? stages_[s + 1].forward_end : Moment{};
  return std::max(stages_[s].out_end, read);
}

bool OffloadPlay::in(std::size_t s) {
  const OffloadStage& stage = model_->stages[s];
  const Moment ready = std::max({in_free_, left(s), model_->one_way ? out_free_ : Moment{}});
  model_->work.add(kStepsAGrant + ledger_.under_way());
  const auto start = ledger_.grant(stage.moved, ready);
  if (!start) return false;
  stages_[s].in_end = in_free_ = after(*start, stage.in);
  if (!model_->storage.is_unlimited()) storage_.free_at(in_free_, stage.moved);
  return true;
}

bool OffloadPlay::add(const OffloadAction& action) {
  switch (action.kind) {
    case OffloadAction::Kind::forward:
      return forward();
    case OffloadAction::Kind::backward:
      return backward();
    case OffloadAction::Kind::in:
      return in(action.stage);
    case OffloadAction::Kind::out:
      return out(action.stage);
    case OffloadAction::Kind::bare:
      break;
  }
  return false;
}

void OffloadPlay::back_to(Mark mark) {
  ledger_ = std::move(mark.ledger);
  storage_ = std::move(mark.storage);
  backwards_ = mark.backwards;
  stream_free_ = mark.stream_free;
  in_free_ = mark.in_free;
}

std::optional<Time> OffloadPlay::end() {
  if (!compute(model_->optimizer_workspace, stream_free_, model_->optimizer)) return std::nullopt;
  return std::max({stream_free_.time, out_free_.time, in_free_.time});
}

std::optional<Time> play(const OffloadModel& model, std::span<const OffloadAction> sequence) {
  OffloadPlay it(model);
  for (const OffloadAction& action : sequence)
    if (!it.add(action)) return std::nullopt;
  return it.end();
}

}  // namespace plimsoll
