#include "workload/sharding/unit_step.hpp"

#include "base/dense_id.hpp"
#include "workload/chain/chain_view.hpp"

#include <algorithm>
#include <set>

namespace plimsoll {

namespace {

/// What the unit is called whose layers are in no block.
constexpr const char* kOutside = "outside";

}  // namespace

Workload UnitStep::run() {
  find_units();
  add_tensors();
  find_places_to_bring();
  find_places_to_take();
  for (std::uint32_t op = 0; op < step_.optimizer_begin; ++op) {
    for (const Unit* unit : brought_before_[op]) add_bring(*unit, OperatorId{op});
    added_.push_back(builder_.add(spec_of(op)));
    for (const Unit* unit : taken_after_[op]) add_take(*unit, OperatorId{op});
  }
  add_optimizer();
  Workload made = builder_.freeze();
  made.batch = step_.batch;
  made.microbatch = step_.microbatch;
  made.microbatches = step_.microbatches;
  made.parameters = step_.parameters;
  made.macs = step_.macs;
  made.frozen_macs = step_.frozen_macs;
  made.tokens = step_.tokens;
  made.dtype = step_.dtype;
  made.saved_bytes = step_.saved_bytes;
  made.parameter_bytes = Bytes{};
  for (const Tensor& tensor : made.tensors)
    if (is_parameter(tensor)) made.parameter_bytes += tensor.bytes;
  return made;
}

std::string UnitStep::block_of(const std::string& part) const {
  std::string block = part.substr(0, part.find('/'));
  if (multiplying_.contains(block)) return block;
  return ways_.by_layer ? part.substr(0, part.find_first_of("/.")) : kOutside;
}

/// A block that multiplies nothing is one layer of several operators, such as the last norm.
void UnitStep::find_blocks() {
  for (std::uint32_t op = 0; op < step_.forwards; ++op) {
    const Operator& it = step_.operators[op];
    const std::size_t slash = it.name.find('/');
    if (slash != std::string::npos && multiplies(it.operator_class))
      multiplying_.insert(it.name.substr(0, slash));
  }
}

/// Of an operator before the optimizer.
std::string UnitStep::unit_name(std::uint32_t op) const {
  if (stage_of_.empty()) return block_of(step_.operators[op].name);
  const OperatorId forward = step_.operators[op].forward;
  return "stage_" + std::to_string(stage_of_[forward == kNoOperator ? op : index(forward)] + 1);
}

/// The unit in which an operator uses a parameter or its gradient.
UnitStep::Unit& UnitStep::unit_of(std::uint32_t op, TensorId tensor) {
  const bool is_of_experts = step_[tensor].is_of_experts;
  const std::string name = stage_of_.empty() ? block_of(step_[tensor].name) : unit_name(op);
  Unit& unit = units_[is_of_experts ? name + ".experts" : name];
  unit.is_of_experts = is_of_experts;
  unit.block = name;
  return unit;
}

void UnitStep::find_units() {
  find_blocks();
  if (ways_.by_chain_stage) {
    const ChainView chain = pipeline_view(step_);
    for (std::uint32_t s = 0; s < chain.stages.size(); ++s)
      stage_of_.resize(chain.stages[s].forward_end, s);
  }
  for (std::uint32_t op = 0; op < step_.optimizer_begin; ++op) {
    for (const TensorId id : step_.list(step_.operators[op].reads))
      if (brings(id)) unit_of(op, id).parameters[id];
    for (const TensorId id : step_.list(step_.operators[op].kept))
      if (takes(id)) unit_of(op, id).gradients[id];
  }
  for (auto& [name, unit] : units_) unit.name = name;
}

void UnitStep::add_tensors() {
  brought_before_.resize(step_.operators.size());
  taken_after_.resize(step_.operators.size());
  std::vector<std::vector<std::pair<const Unit*, Here*>>> here(step_.tensors.size());
  for (auto& [name, unit] : units_)
    for (auto* tensors : {&unit.parameters, &unit.gradients})
      for (auto& [id, its] : *tensors) here[index(id)].emplace_back(&unit, &its);
  for (std::uint32_t t = 0; t < step_.tensors.size(); ++t) {
    const auto with_holder = [&](Tensor tensor) {
      if (tensor.inside != kNoTensor) tensor.inside = held_[index(tensor.inside)];
      return tensor;
    };
    for (const auto& [unit, its] : here[t])
      add_here(with_holder(step_.tensors[t]), here[t].size() > 1 ? "." + unit->name : "",
               brings(TensorId{t}) && !ways_.brings_once, *its);
    held_.push_back(builder_.add(with_holder(kept_of(TensorId{t}))));
  }
  for (std::uint32_t t = 0; t < step_.tensors.size(); ++t)
    if (const TensorId later = step_.tensors[t].later; later != kNoTensor)
      builder_.note_later(held_[t], held(later));
}

void UnitStep::add_here(Tensor tensor, const std::string& unit, bool twice, Here& here) {
  tensor.lifetime = Lifetime::step;
  tensor.name += unit + ways_.here;
  here.forward = here.backward = builder_.add(tensor);
  tensor.name += "_backward";
  if (!twice) return;
  here.backward = builder_.add(std::move(tensor));
  builder_.note_later(here.forward, here.backward);
}

/// Units of which an operator reads a parameter, by the first operator that does or is in the unit.
std::vector<std::pair<std::uint32_t, const UnitStep::Unit*>> UnitStep::by_first_use(
    std::uint32_t begin, std::uint32_t end) {
  std::map<std::string, std::uint32_t> first_of_unit;
  std::map<const Unit*, std::uint32_t> first;
  for (std::uint32_t op = begin; op < end; ++op) {
    first_of_unit.try_emplace(unit_name(op), op);
    for (const TensorId id : step_.list(step_.operators[op].reads))
      if (brings(id)) first.try_emplace(&unit_of(op, id), op);
  }
  std::vector<std::pair<std::uint32_t, const Unit*>> order;
  for (const auto& [name, unit] : units_)
    if (const auto read = first.find(&unit); read != first.end()) {
      const auto begins = first_of_unit.find(unit.block);
      const bool is_sooner = begins != first_of_unit.end() && begins->second < read->second;
      order.emplace_back(is_sooner ? begins->second : read->second, &unit);
    }
  std::ranges::stable_sort(order, {}, [](const auto& it) { return it.first; });
  return order;
}

void UnitStep::find_places_to_bring() {
  std::set<const Unit*> brought;
  for (const auto& [begin, end] :
       {std::pair(0U, step_.forwards), std::pair(step_.forwards, step_.optimizer_begin)}) {
    std::vector<std::uint32_t> places;
    for (const auto& [first, unit] : by_first_use(begin, end)) {
      if (!brought.insert(unit).second && ways_.brings_once) continue;
      if (places.empty() || places.back() != first) places.push_back(first);
      const auto last = static_cast<std::int64_t>(places.size()) - 1;
      const std::int64_t place = last - std::min(ways_.prefetch, last);
      brought_before_[places[static_cast<std::size_t>(place)]].push_back(unit);
    }
  }
}

void UnitStep::find_places_to_take() {
  std::map<const Unit*, std::uint32_t> last;
  for (std::uint32_t op = step_.forwards; op < step_.optimizer_begin; ++op)
    for (const TensorId id : step_.list(step_.operators[op].kept))
      if (takes(id)) {
        Unit& unit = unit_of(op, id);
        last[&unit] = op;
        unit.has_weight_halves |= step_.operators[op].phase == Phase::backward_weight;
      }
  std::map<std::uint32_t, std::vector<const Unit*>> after;
  std::uint32_t last_of_all = step_.forwards;
  for (const auto& [name, unit] : units_) {
    const auto found = last.find(&unit);
    if (found == last.end()) continue;
    after[found->second].push_back(&unit);
    last_of_all = std::max(last_of_all, found->second);
  }
  std::vector<const Unit*> in_order;
  for (const auto& [op, units] : after) {
    if (ways_.overlap) taken_after_[op] = units;
    in_order.insert(in_order.end(), units.begin(), units.end());
  }
  if (!ways_.overlap && !in_order.empty()) taken_after_[last_of_all] = in_order;
}

TensorId UnitStep::used_by(std::uint32_t op, TensorId id) {
  const Phase phase = step_.operators[op].phase;
  if (phase == Phase::optimizer || !(brings(id) || takes(id))) return held(id);
  const Unit& unit = unit_of(op, id);
  if (takes(id)) return unit.gradients.at(id).forward;
  const Here& here = unit.parameters.at(id);
  return phase == Phase::forward ? here.forward : here.backward;
}

std::vector<TensorId> UnitStep::list(std::uint32_t op, TensorList old) {
  std::vector<TensorId> ids;
  for (const TensorId id : step_.list(old)) ids.push_back(used_by(op, id));
  return ids;
}

/// As it was, on the tensors that there are now.
OperatorSpec UnitStep::spec_of(std::uint32_t old) {
  const Operator& op = step_.operators[old];
  OperatorSpec spec;
  spec.name = op.name;
  spec.phase = op.phase;
  spec.operator_class = op.operator_class;
  spec.dtype = op.dtype;
  if (op.forward != kNoOperator) spec.forward = added_[index(op.forward)];
  spec.flops = op.flops;
  spec.traffic = op.traffic;
  spec.additions = op.additions;
  spec.given_time = op.given_time;
  spec.given_energy = op.given_energy;
  spec.launches = op.launches;
  spec.workspace = op.workspace;
  spec.scratch = op.scratch;
  spec.kernel = op.kernel;
  spec.runs_once = op.runs_once;
  spec.is_random = op.is_random;
  spec.is_whole = op.is_whole;
  spec.collective = op.collective;
  spec.reads = list(old, op.reads);
  spec.updates = list(old, op.updates);
  spec.kept = list(old, op.kept);
  spec.bare = list(old, op.bare);
  return spec;
}

OperatorSpec UnitStep::spec_near(const Unit& unit, const std::string& suffix, CollectiveKind kind,
                                 OperatorId near) const {
  const Operator& op = step_[near];
  OperatorSpec spec;
  spec.name = unit.name + suffix;
  spec.phase = op.phase;
  spec.given_time = Time{};
  spec.runs_once = true;
  spec.collective = {kind, MeshAxis::data, unit.is_of_experts};
  if (op.forward != kNoOperator) spec.forward = added_[index(op.forward)];
  return spec;
}

void UnitStep::add_bring(const Unit& unit, OperatorId before) {
  const bool is_forward = step_[before].phase == Phase::forward;
  OperatorSpec spec = spec_near(unit, std::string(ways_.brought) + (is_forward ? "" : "_backward"),
                                ways_.bring, before);
  // The half of a backward that is for inputs comes first, and reads them.
  if (spec.phase == Phase::backward_weight) spec.phase = Phase::backward_input;
  for (const auto& [id, here] : unit.parameters) {
    spec.reads.push_back(held(id));
    spec.kept.push_back(is_forward ? here.forward : here.backward);
  }
  spec.bare = spec.kept;
  builder_.add(std::move(spec));
}

void UnitStep::add_take(const Unit& unit, OperatorId after) {
  OperatorSpec spec = spec_near(unit, ways_.taken, ways_.take, after);
  if (unit.has_weight_halves) spec.phase = Phase::backward_weight;
  for (const auto& [id, here] : unit.gradients) {
    spec.reads.push_back(here.forward);
    spec.kept.push_back(held(id));
  }
  spec.bare = spec.kept;
  builder_.add(std::move(spec));
}

}  // namespace plimsoll
