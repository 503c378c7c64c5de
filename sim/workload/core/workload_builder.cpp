#include "workload/core/workload_builder.hpp"

#include "workload/core/topological_order.hpp"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <utility>

namespace plimsoll {
namespace {

/// Appends `ids` to the lists of `workload`.
TensorList append(Workload& workload, const std::vector<TensorId>& ids) {
  TensorList slice;
  slice.begin = static_cast<std::uint32_t>(workload.tensor_lists.size());
  workload.tensor_lists.insert(workload.tensor_lists.end(), ids.begin(), ids.end());
  slice.end = static_cast<std::uint32_t>(workload.tensor_lists.size());
  return slice;
}

}  // namespace

struct WorkloadBuilder::State {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<OperatorSpec> specs;

  void check_ids() const;
  [[nodiscard]] std::vector<std::uint32_t> order() const;
  [[nodiscard]] std::vector<std::uint32_t> makers(const std::vector<std::uint32_t>& forwards) const;
  [[nodiscard]] std::vector<Need> needs(const std::vector<std::uint32_t>& forwards) const;
  [[nodiscard]] std::vector<std::uint32_t> order_forwards(
      const std::vector<std::uint32_t>& forwards) const;
  [[nodiscard]] std::vector<std::uint32_t> in_phase(bool (*wanted)(Phase)) const;
};

WorkloadBuilder::WorkloadBuilder(std::string name) : state_(std::make_unique<State>()) {
  state_->name = std::move(name);
}

WorkloadBuilder::~WorkloadBuilder() = default;

TensorId WorkloadBuilder::add(Tensor tensor) {
  state_->tensors.push_back(std::move(tensor));
  return TensorId{static_cast<std::uint32_t>(state_->tensors.size() - 1)};
}

OperatorId WorkloadBuilder::add(OperatorSpec spec) {
  state_->specs.push_back(std::move(spec));
  return OperatorId{static_cast<std::uint32_t>(state_->specs.size() - 1)};
}

const Tensor& WorkloadBuilder::operator[](TensorId id) const {
  return state_->tensors[index(id)];
}

void WorkloadBuilder::note_later(TensorId of, TensorId later) {
  state_->tensors[index(of)].later = later;
}

Bytes WorkloadBuilder::moved(const OperatorSpec& spec) const {
  Bytes sum;
  for (const auto* list : {&spec.reads, &spec.kept, &spec.updates})
    for (const TensorId id : *list) sum += (*this)[id].bytes;
  return sum;
}

void WorkloadBuilder::State::check_ids() const {
  const auto known = [&](TensorId id) { return index(id) < tensors.size(); };
  for (const Tensor& tensor : tensors)
    if (tensor.inside != kNoTensor && !known(tensor.inside))
      throw std::invalid_argument("tensor `" + tensor.name + "` lies inside an unknown tensor");
  for (const OperatorSpec& spec : specs) {
    bool good = spec.forward == kNoOperator || index(spec.forward) < specs.size();
    for (const auto* list : {&spec.reads, &spec.updates, &spec.kept, &spec.bare})
      good = good && std::ranges::all_of(*list, known);
    if (!good) throw std::invalid_argument("operator `" + spec.name + "` names an unknown id");
  }
}

std::vector<std::uint32_t> WorkloadBuilder::State::in_phase(bool (*wanted)(Phase)) const {
  std::vector<std::uint32_t> chosen;
  for (std::uint32_t i = 0; i < specs.size(); ++i)
    if (wanted(specs[i].phase)) chosen.push_back(i);
  return chosen;
}

/// By tensor, the position in `forwards` of the operator that makes it.
std::vector<std::uint32_t> WorkloadBuilder::State::makers(
    const std::vector<std::uint32_t>& forwards) const {
  std::vector<std::uint32_t> maker(tensors.size(), kNone);
  for (std::uint32_t position = 0; position < forwards.size(); ++position)
    for (const auto* list : {&specs[forwards[position]].kept, &specs[forwards[position]].bare})
      for (const TensorId id : *list) maker[index(id)] = position;
  return maker;
}

/// A reader needs the maker of a value, and the last change in place that was added before the
/// reader; a change in place needs all readers added before it.
std::vector<Need> WorkloadBuilder::State::needs(const std::vector<std::uint32_t>& forwards) const {
  const std::vector<std::uint32_t> maker = makers(forwards);
  std::vector<bool> changes(tensors.size());
  for (const std::uint32_t f : forwards)
    for (const TensorId id : specs[f].updates) changes[index(id)] = true;

  std::vector<std::uint32_t> changed_by(tensors.size(), kNone);
  std::vector<std::vector<std::uint32_t>> readers(tensors.size());
  std::vector<Need> needs;
  for (std::uint32_t position = 0; position < forwards.size(); ++position) {
    const OperatorSpec& spec = specs[forwards[position]];
    for (const TensorId id : spec.reads) {
      std::uint32_t source = changed_by[index(id)];
      if (source == kNone) source = maker[index(id)];
      if (source == kNone && tensors[index(id)].inside != kNoTensor)
        source = maker[index(tensors[index(id)].inside)];
      if (source != kNone) needs.emplace_back(position, source);
      if (changes[index(id)]) readers[index(id)].push_back(position);
    }
    for (const TensorId id : spec.updates) {
      for (const std::uint32_t reader : readers[index(id)])
        if (reader != position) needs.emplace_back(position, reader);
      readers[index(id)].clear();
      changed_by[index(id)] = position;
    }
  }
  return needs;
}

std::vector<std::uint32_t> WorkloadBuilder::State::order_forwards(
    const std::vector<std::uint32_t>& forwards) const {
  const TopologicalOrder sorted =
      topological_order(static_cast<std::uint32_t>(forwards.size()), needs(forwards));
  if (!sorted.cycle.empty()) {
    std::string names;
    for (const std::uint32_t position : sorted.cycle)
      names += "`" + specs[forwards[position]].name + "` needs ";
    throw std::invalid_argument("the operators form a cycle: " + names + "`" +
                                specs[forwards[sorted.cycle.front()]].name + "`");
  }
  std::vector<std::uint32_t> ordered;
  ordered.reserve(forwards.size());
  for (const std::uint32_t position : sorted.order) ordered.push_back(forwards[position]);
  return ordered;
}

std::vector<std::uint32_t> WorkloadBuilder::State::order() const {
  std::vector<std::uint32_t> order =
      order_forwards(in_phase([](Phase phase) { return phase == Phase::forward; }));
  const auto backwards =
      in_phase([](Phase phase) { return phase != Phase::forward && phase != Phase::optimizer; });
  const auto optimizers = in_phase([](Phase phase) { return phase == Phase::optimizer; });
  order.insert(order.end(), backwards.begin(), backwards.end());
  order.insert(order.end(), optimizers.begin(), optimizers.end());
  return order;
}

namespace {

void flatten(Workload& workload, const std::vector<OperatorSpec>& specs,
             const std::vector<std::uint32_t>& order) {
  std::vector<std::uint32_t> place(specs.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  workload.operators.reserve(order.size());
  for (const std::uint32_t i : order) {
    const OperatorSpec& spec = specs[i];
    Operator op{spec.name,
                spec.phase,
                spec.operator_class,
                spec.dtype,
                kNoOperator,
                spec.flops,
                spec.traffic,
                spec.additions,
                spec.given_time,
                spec.given_energy,
                spec.launches,
                spec.workspace,
                spec.scratch,
                spec.kernel,
                spec.runs_once,
                spec.is_random,
                spec.is_whole,
                kNoTensor,
                spec.collective,
                {},
                {},
                {},
                {}};
    if (spec.forward != kNoOperator) op.forward = OperatorId{place[index(spec.forward)]};
    op.reads = append(workload, spec.reads);
    op.updates = append(workload, spec.updates);
    op.kept = append(workload, spec.kept);
    op.bare = spec.kept == spec.bare ? op.kept : append(workload, spec.bare);
    if (op.phase == Phase::forward) ++workload.forwards;
    if (op.phase != Phase::optimizer) ++workload.optimizer_begin;
    workload.operators.push_back(std::move(op));
  }
}

void check_reads(const Workload& workload) {
  std::vector<bool> there(workload.tensors.size());
  for (std::size_t t = 0; t < there.size(); ++t)
    there[t] = workload.tensors[t].lifetime == Lifetime::resident ||
               workload.tensors[t].lifetime == Lifetime::input;
  for (const Operator& op : workload.operators) {
    for (const TensorId id : workload.list(op.reads)) {
      const TensorId holder = workload[id].inside;
      if (!there[index(id)] && (holder == kNoTensor || !there[index(holder)]))
        throw std::invalid_argument("operator `" + op.name + "` reads `" + workload[id].name +
                                    "`, which nothing before it makes");
    }
    for (const TensorList slice : {op.kept, op.bare})
      for (const TensorId id : workload.list(slice)) there[index(id)] = true;
  }
}

/// The storages made by forwards that backwards read; a value inside another storage counts as that
/// one.
Bytes saved_bytes(const Workload& workload) {
  std::vector<bool> kept(workload.tensors.size()), counted(workload.tensors.size());
  for (std::uint32_t i = 0; i < workload.forwards; ++i)
    for (const TensorId id : workload.list(workload.operators[i].kept)) kept[index(id)] = true;
  Bytes sum;
  for (std::uint32_t i = workload.forwards; i < workload.optimizer_begin; ++i)
    for (const TensorId id : workload.list(workload.operators[i].reads)) {
      const TensorId holder = workload[id].inside;
      const TensorId storage = !kept[index(id)] && holder != kNoTensor ? holder : id;
      if (!kept[index(storage)] || counted[index(storage)]) continue;
      counted[index(storage)] = true;
      sum += workload[storage].bytes;
    }
  return sum;
}

}  // namespace

Workload WorkloadBuilder::freeze() {
  assert(state_ && "a builder freezes once");
  const std::unique_ptr<State> state = std::move(state_);
  state->check_ids();
  const std::vector<std::uint32_t> order = state->order();
  Workload workload;
  workload.name = std::move(state->name);
  workload.tensors = std::move(state->tensors);
  flatten(workload, state->specs, order);
  check_reads(workload);
  workload.saved_bytes = saved_bytes(workload);
  for (const Tensor& tensor : workload.tensors)
    if (tensor.tensor_class == TensorClass::parameter && !tensor.is_whole)
      workload.parameter_bytes += tensor.bytes;
  return workload;
}

}  // namespace plimsoll
