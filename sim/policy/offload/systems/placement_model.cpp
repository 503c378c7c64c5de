#include "policy/offload/systems/placement_model.hpp"

#include "base/dense_id.hpp"
#include "engine/wide.hpp"
#include "plan/build/plan_builder.hpp"
#include "plan/core/changes.hpp"
#include "plan/core/reached.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace plimsoll {

namespace {

constexpr std::uint32_t kNoPlace = UINT32_MAX;

/// What counts as one in a row of bytes.
std::int64_t unit_of(Bytes most) {
  return std::max<std::int64_t>(1, most.count() / 1000);
}

Bytes most_of(const std::vector<Bytes>& needs) {
  return needs.empty() ? Bytes{} : std::ranges::max(needs);
}

Plan plan_of_none(const Problem& problem, ProcessorId processor) {
  PlanBuilder builder(problem.workload, problem.platform, "none");
  const LaneId stream = builder.stream(processor);
  for (std::uint32_t op = 0; op < problem.workload.operators.size(); ++op)
    builder.compute(stream, OperatorId{op});
  return builder.finish();
}

/// The last step at which each buffer is alive.
std::vector<std::uint32_t> last_steps(const Plan& plan) {
  std::vector<std::uint32_t> last(plan.buffers.size(),
                                  static_cast<std::uint32_t>(plan.steps.size() - 1));
  for (const Release& release : plan.releases) {
    std::uint32_t& it = last[index(release.buffer)];
    it = 0;
    for (const StepId step : plan.after(release)) it = std::max(it, index(step));
  }
  return last;
}

}  // namespace

PlacementModel::PlacementModel(const Problem& problem, ProcessorId processor, MemoryId slow)
    : place_(problem.workload.tensors.size(), kNoPlace) {
  const Plan none = plan_of_none(problem, processor);
  for (const Step& step : none.steps) workspaces_.push_back(workspace_of(step, problem.workload));
  alive_.resize(none.steps.size());
  gather_lives(none, problem, slow);
}

void PlacementModel::gather_lives(const Plan& none, const Problem& problem, MemoryId slow) {
  const Memory& memory = problem.platform[slow];
  const std::vector<std::uint32_t> last = last_steps(none);
  const auto live = [&](BufferId buffer, std::uint32_t from) {
    const TensorId tensor = none[buffer].tensor;
    if (problem.workload[tensor].bytes == Bytes{}) return;  // it takes no room anywhere
    const std::uint32_t at = tensor_of(tensor, problem.workload[tensor].bytes);
    for (std::uint32_t s = from; s <= last[index(buffer)]; ++s) alive_[s].push_back(at);
  };
  const auto charge = [&](BufferId buffer, auto time) {
    const TensorId tensor = none[buffer].tensor;
    const Bytes bytes = problem.workload[tensor].bytes;
    if (bytes == Bytes{}) return;
    tensors_[tensor_of(tensor, bytes)].cost += time(memory, bytes);
  };
  for (const BufferId buffer : none.initial) live(buffer, 0);
  for (std::uint32_t s = 0; s < none.steps.size(); ++s) {
    for (const BufferId buffer : none.list(none.steps[s].writes)) {
      live(buffer, s);
      charge(buffer, time_to_write);
    }
    for (const BufferId buffer : none.list(none.steps[s].reads)) charge(buffer, time_to_read);
  }
  for (const auto& [buffer, step] : changes_of(none, problem.workload, problem.platform))
    charge(buffer, time_to_write);
}

std::uint32_t PlacementModel::tensor_of(TensorId tensor, Bytes bytes) {
  std::uint32_t& at = place_[index(tensor)];
  if (at == kNoPlace) {
    at = static_cast<std::uint32_t>(tensors_.size());
    tensors_.push_back({tensor, bytes, Time{}});
  }
  return at;
}

std::vector<Bytes> PlacementModel::needs_at_home(const SlowSet& slow) const {
  std::vector<Bytes> needs = workspaces_;
  for (std::size_t s = 0; s < alive_.size(); ++s)
    for (const std::uint32_t t : alive_[s])
      if (!slow[t]) needs[s] += tensors_[t].bytes;
  return needs;
}

std::vector<std::vector<std::uint32_t>> PlacementModel::steps_by_tensor() const {
  std::vector<std::vector<std::uint32_t>> steps(tensors_.size());
  for (std::uint32_t s = 0; s < alive_.size(); ++s)
    for (const std::uint32_t t : alive_[s]) steps[t].push_back(s);
  return steps;
}

Bytes PlacementModel::peak_at_home(const SlowSet& slow) const {
  return most_of(needs_at_home(slow));
}

Bytes PlacementModel::peak_of_slow(const SlowSet& slow) const {
  Bytes peak;
  for (const std::vector<std::uint32_t>& alive : alive_) {
    Bytes sum;
    for (const std::uint32_t t : alive)
      if (slow[t]) sum += tensors_[t].bytes;
    peak = std::max(peak, sum);
  }
  return peak;
}

Time PlacementModel::cost(const SlowSet& slow) const {
  Time sum;
  for (std::size_t t = 0; t < slow.size(); ++t)
    if (slow[t]) sum += tensors_[t].cost;
  return sum;
}

Time PlacementModel::next_cost(Time bound) const {
  std::int64_t step = 0;
  for (const LivingTensor& it : tensors_) step = std::gcd(step, it.cost.count());
  if (step == 0) return bound;
  return Time{step} * ((bound.count() + step - 1) / step);
}

std::optional<SlowSet> PlacementModel::completed(SlowSet slow, Bytes budget, Bytes room) const {
  std::vector<std::uint32_t> order(tensors_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return Signed128{tensors_[a].cost.count()} * tensors_[b].bytes.count() <
           Signed128{tensors_[b].cost.count()} * tensors_[a].bytes.count();
  });
  std::vector<Bytes> needs = needs_at_home(slow);
  const std::vector<std::vector<std::uint32_t>> lives = steps_by_tensor();
  for (std::uint32_t s = 0; s < alive_.size(); ++s)
    for (std::size_t i = 0; i < order.size() && needs[s] > budget; ++i) {
      const std::uint32_t t = order[i];
      if (slow[t] || !std::ranges::binary_search(lives[t], s)) continue;
      slow[t] = true;
      for (const std::uint32_t step : lives[t]) needs[step] -= tensors_[t].bytes;
    }
  if (most_of(needs) > budget) return std::nullopt;
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::uint32_t t) { return tensors_[t].cost; });
  for (const std::uint32_t t : order) {
    const Bytes bytes = tensors_[t].bytes;
    if (!slow[t] || std::ranges::any_of(
                        lives[t], [&](std::uint32_t step) { return needs[step] + bytes > budget; }))
      continue;
    slow[t] = false;
    for (const std::uint32_t step : lives[t]) needs[step] += bytes;
  }
  if (peak_of_slow(slow) > room) return std::nullopt;
  return slow;
}

Bytes PlacementModel::all() const {
  Bytes sum;
  for (const LivingTensor& it : tensors_) sum += it.bytes;
  return sum;
}

void PlacementModel::add_rows_of_room(WholeProgram& program, Bytes room) const {
  if (all() <= room) return;
  for (const std::vector<std::uint32_t>& alive : alive_) {
    WholeProgram::Row row{.terms = {}, .least = {}, .most = room.count(), .unit = unit_of(room)};
    for (const std::uint32_t t : alive)
      row.terms.emplace_back(static_cast<int>(t), tensors_[t].bytes.count());
    program.rows.push_back(std::move(row));
  }
}

WholeProgram PlacementModel::least_cost(Bytes budget, Bytes room) const {
  WholeProgram program;
  for (const LivingTensor& it : tensors_) program.add({.cost = it.cost.count()});
  for (std::size_t s = 0; s < alive_.size(); ++s) {
    WholeProgram::Row row{.terms = {}, .least = {}, .most = {}, .unit = unit_of(budget)};
    Bytes sum = workspaces_[s];
    for (const std::uint32_t t : alive_[s]) {
      row.terms.emplace_back(static_cast<int>(t), tensors_[t].bytes.count());
      sum += tensors_[t].bytes;
    }
    if (sum <= budget) continue;
    row.least = (sum - budget).count();
    program.rows.push_back(std::move(row));
  }
  add_rows_of_room(program, room);
  return program;
}

WholeProgram PlacementModel::least_budget(Bytes room) const {
  WholeProgram program;
  for (std::size_t t = 0; t < tensors_.size(); ++t) program.add({});
  const Bytes most = peak_at_home(SlowSet(tensors_.size(), false));
  const std::int64_t unit = unit_of(most);
  const int budget =
      program.add({.most = static_cast<double>(most.count()) / static_cast<double>(unit),
                   .is_whole = false,
                   .cost = unit});
  for (std::size_t s = 0; s < alive_.size(); ++s) {
    WholeProgram::Row row{.terms = {{budget, unit}}, .least = {}, .most = {}, .unit = unit};
    Bytes sum = workspaces_[s];
    for (const std::uint32_t t : alive_[s]) {
      row.terms.emplace_back(static_cast<int>(t), tensors_[t].bytes.count());
      sum += tensors_[t].bytes;
    }
    row.least = sum.count();
    program.rows.push_back(std::move(row));
  }
  add_rows_of_room(program, room);
  return program;
}

}  // namespace plimsoll
