#include "workload/sharding/sharded_step.hpp"

#include "base/dense_id.hpp"
#include "workload/chain/chain_view.hpp"
#include "workload/core/workload_builder.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll {
namespace {

/// What the units are called whose layers are in no block.
constexpr const char* kOutside = "outside";

class ShardedStep {
 public:
  ShardedStep(const Workload& step, const StateSharding& sharding)
      : step_(step), sharding_(sharding), builder_(step.name) {}

  Workload run() {
    find_units();
    add_tensors();
    if (sharding_.stage >= 3) find_gathers();
    if (sharding_.stage >= 2) find_scatters();
    for (std::uint32_t op = 0; op < step_.operators.size(); ++op) {
      for (const Unit* unit : gathers_before_[op]) add_gather(*unit, OperatorId{op});
      added_.push_back(add_operator(op));
      for (const Unit* unit : scatters_after_[op]) add_scatter(*unit, OperatorId{op});
    }
    Workload sharded = builder_.freeze();
    sharded.batch = step_.batch;
    sharded.microbatch = step_.microbatch;
    sharded.microbatches = step_.microbatches;
    sharded.parameters = step_.parameters;
    sharded.macs = step_.macs;
    sharded.tokens = step_.tokens;
    sharded.dtype = step_.dtype;
    sharded.saved_bytes = step_.saved_bytes;
    sharded.parameter_bytes = Bytes{};
    for (const Tensor& tensor : sharded.tensors)
      if (is_parameter(tensor)) sharded.parameter_bytes += tensor.bytes;
    return sharded;
  }

 private:
  /// What is whole for a while of a tensor that a rank holds a part of: of a parameter in forwards and
  /// in backwards.
  struct Whole {
    TensorId forward = kNoTensor, backward = kNoTensor;
  };
  struct Unit {
    std::string name;
    std::string block;  ///< in which it is used: its name, but for experts
    bool is_of_experts = false;
    bool has_weight_halves = false;  ///< halves of backwards make some of its gradients
    std::map<TensorId, Whole> parameters, gradients;  ///< by old tensor
  };

  [[nodiscard]] static bool is_parameter(const Tensor& tensor) {
    return tensor.tensor_class == TensorClass::parameter && tensor.lifetime == Lifetime::resident;
  }
  /// Experts that no other rank has are whole.
  [[nodiscard]] bool is_divided(const Tensor& tensor) const {
    return !tensor.is_of_experts || sharding_.ranks_of_experts > 1;
  }
  [[nodiscard]] bool gathers(TensorId id) const {
    return sharding_.stage >= 3 && is_parameter(step_[id]) && is_divided(step_[id]);
  }
  [[nodiscard]] bool scatters(TensorId id) const {
    return sharding_.stage >= 2 && step_[id].lifetime == Lifetime::accumulated &&
           is_divided(step_[id]);
  }

  /// What one of the ranks has that divide it.
  template <class Amount>
  [[nodiscard]] Amount part(Amount whole, bool of_experts) const {
    const std::int64_t ranks = of_experts ? sharding_.ranks_of_experts : sharding_.ranks;
    return Amount{(whole.count() + ranks - 1) / ranks};
  }

  [[nodiscard]] static std::string block_of(const std::string& part) {
    const std::size_t slash = part.find('/');
    return slash == std::string::npos ? kOutside : part.substr(0, slash);
  }

  /// Of an operator before the optimizer.
  [[nodiscard]] std::string unit_name(std::uint32_t op) const {
    if (stage_of_.empty()) return block_of(step_.operators[op].name);
    const OperatorId forward = step_.operators[op].forward;
    return "stage_" + std::to_string(stage_of_[forward == kNoOperator ? op : index(forward)] + 1);
  }

  /// The unit in which an operator uses a parameter or its gradient.
  [[nodiscard]] Unit& unit_of(std::uint32_t op, TensorId tensor) {
    const bool is_of_experts = step_[tensor].is_of_experts;
    const std::string name = stage_of_.empty() ? block_of(step_[tensor].name) : unit_name(op);
    Unit& unit = units_[is_of_experts ? name + ".experts" : name];
    unit.is_of_experts = is_of_experts;
    unit.block = name;
    return unit;
  }

  void find_units() {
    if (sharding_.by_chain_stage) {
      const ChainView chain = chain_view(step_);
      for (std::uint32_t s = 0; s < chain.stages.size(); ++s)
        stage_of_.resize(chain.stages[s].forward_end, s);
    }
    for (std::uint32_t op = 0; op < step_.optimizer_begin; ++op) {
      for (const TensorId id : step_.list(step_.operators[op].reads))
        if (gathers(id)) unit_of(op, id).parameters[id];
      for (const TensorId id : step_.list(step_.operators[op].kept))
        if (scatters(id)) unit_of(op, id).gradients[id];
    }
    for (auto& [name, unit] : units_) unit.name = name;
  }

  void add_tensors() {
    gathers_before_.resize(step_.operators.size());
    scatters_after_.resize(step_.operators.size());
    std::vector<std::vector<std::pair<const Unit*, Whole*>>> wholes(step_.tensors.size());
    for (auto& [name, unit] : units_)
      for (auto* tensors : {&unit.parameters, &unit.gradients})
        for (auto& [id, whole] : *tensors) wholes[index(id)].emplace_back(&unit, &whole);
    for (std::uint32_t t = 0; t < step_.tensors.size(); ++t) {
      Tensor tensor = step_.tensors[t];
      if (tensor.inside != kNoTensor) tensor.inside = held_[index(tensor.inside)];
      for (const auto& [unit, whole] : wholes[t])
        add_whole(tensor, wholes[t].size() > 1 ? "." + unit->name : "", gathers(TensorId{t}),
                  *whole);
      const bool is_state = tensor.tensor_class == TensorClass::optimizer_state;
      if (is_state || gathers(TensorId{t}) || scatters(TensorId{t}))
        tensor.bytes = part(tensor.bytes, tensor.is_of_experts);
      held_.push_back(builder_.add(std::move(tensor)));
    }
  }

  void add_whole(Tensor tensor, const std::string& unit, bool twice, Whole& whole) {
    tensor.lifetime = Lifetime::step;
    tensor.name += unit + ".whole";
    whole.forward = builder_.add(tensor);
    tensor.name += "_backward";
    if (twice) whole.backward = builder_.add(std::move(tensor));
  }

  /// Units of which an operator reads a parameter, by the first operator that does or is in the unit.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, const Unit*>> by_first_use(std::uint32_t begin,
                                                                                std::uint32_t end) {
    std::map<std::string, std::uint32_t> first_of_unit;
    std::map<const Unit*, std::uint32_t> first;
    for (std::uint32_t op = begin; op < end; ++op) {
      first_of_unit.try_emplace(unit_name(op), op);
      for (const TensorId id : step_.list(step_.operators[op].reads))
        if (gathers(id)) first.try_emplace(&unit_of(op, id), op);
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

  void find_gathers() {
    for (const auto& [begin, end] :
         {std::pair(0U, step_.forwards), std::pair(step_.forwards, step_.optimizer_begin)}) {
      std::vector<std::uint32_t> places;
      for (const auto& [first, unit] : by_first_use(begin, end)) {
        if (places.empty() || places.back() != first) places.push_back(first);
        const auto last = static_cast<std::int64_t>(places.size()) - 1;
        const std::int64_t place = last - std::min(sharding_.prefetch, last);
        gathers_before_[places[static_cast<std::size_t>(place)]].push_back(unit);
      }
    }
  }

  void find_scatters() {
    std::map<const Unit*, std::uint32_t> last;
    for (std::uint32_t op = step_.forwards; op < step_.optimizer_begin; ++op)
      for (const TensorId id : step_.list(step_.operators[op].kept))
        if (scatters(id)) {
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
      if (sharding_.overlap) scatters_after_[op] = units;
      in_order.insert(in_order.end(), units.begin(), units.end());
    }
    if (!sharding_.overlap && !in_order.empty()) scatters_after_[last_of_all] = in_order;
  }

  [[nodiscard]] TensorId used_by(std::uint32_t op, TensorId id) {
    const Phase phase = step_.operators[op].phase;
    if (phase == Phase::optimizer || !(gathers(id) || scatters(id))) return held_[index(id)];
    const Unit& unit = unit_of(op, id);
    if (scatters(id)) return unit.gradients.at(id).forward;
    const Whole& whole = unit.parameters.at(id);
    return phase == Phase::forward ? whole.forward : whole.backward;
  }

  [[nodiscard]] std::vector<TensorId> list(std::uint32_t op, TensorList old) {
    std::vector<TensorId> ids;
    for (const TensorId id : step_.list(old)) ids.push_back(used_by(op, id));
    return ids;
  }

  /// An update is one of the rank's part.
  OperatorId add_operator(std::uint32_t old) {
    const Operator& op = step_.operators[old];
    const bool is_part = op.phase == Phase::optimizer && sharding_.stage >= 1;
    const bool of_experts = std::ranges::any_of(
        step_.list(op.reads), [&](TensorId id) { return step_[id].is_of_experts; });
    const auto share = [&](auto whole) { return is_part ? part(whole, of_experts) : whole; };
    OperatorSpec spec;
    spec.name = op.name;
    spec.phase = op.phase;
    spec.operator_class = op.operator_class;
    spec.dtype = op.dtype;
    if (op.forward != kNoOperator) spec.forward = added_[index(op.forward)];
    spec.flops = share(op.flops);
    spec.traffic = share(op.traffic);
    spec.additions = op.additions;
    spec.given_time = op.given_time;
    spec.given_energy = op.given_energy;
    spec.launches = op.launches;
    spec.workspace = share(op.workspace);
    spec.scratch = op.scratch;
    spec.kernel = op.kernel;
    spec.runs_once = op.runs_once;
    spec.is_random = op.is_random;
    spec.collective = op.collective;
    spec.reads = list(old, op.reads);
    spec.updates = list(old, op.updates);
    spec.kept = list(old, op.kept);
    spec.bare = list(old, op.bare);
    return builder_.add(std::move(spec));
  }

  [[nodiscard]] OperatorSpec collective(const Unit& unit, const char* suffix, CollectiveKind kind,
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

  void add_gather(const Unit& unit, OperatorId before) {
    const bool is_forward = step_[before].phase == Phase::forward;
    OperatorSpec spec = collective(unit, is_forward ? ".gather" : ".gather_backward",
                                   CollectiveKind::all_gather, before);
    // The half of a backward that is for inputs comes first, and reads them.
    if (spec.phase == Phase::backward_weight) spec.phase = Phase::backward_input;
    for (const auto& [id, whole] : unit.parameters) {
      spec.reads.push_back(held_[index(id)]);
      spec.kept.push_back(is_forward ? whole.forward : whole.backward);
    }
    spec.bare = spec.kept;
    builder_.add(std::move(spec));
  }

  void add_scatter(const Unit& unit, OperatorId after) {
    OperatorSpec spec = collective(unit, ".reduce_scatter", CollectiveKind::reduce_scatter, after);
    if (unit.has_weight_halves) spec.phase = Phase::backward_weight;
    for (const auto& [id, whole] : unit.gradients) {
      spec.reads.push_back(whole.forward);
      spec.kept.push_back(held_[index(id)]);
    }
    spec.bare = spec.kept;
    builder_.add(std::move(spec));
  }

  const Workload& step_;
  const StateSharding& sharding_;
  WorkloadBuilder builder_;
  std::vector<std::uint32_t> stage_of_;  ///< by forward, where units are stages of the chain
  std::map<std::string, Unit> units_;
  std::vector<TensorId> held_;  ///< by old tensor: the same, or the rank's part
  std::vector<std::vector<const Unit*>> gathers_before_, scatters_after_;  ///< by old operator
  std::vector<OperatorId> added_;                                          ///< by old operator
};

}  // namespace

Workload sharded_step(const Workload& step, const StateSharding& sharding) {
  return ShardedStep(step, sharding).run();
}

}  // namespace plimsoll
