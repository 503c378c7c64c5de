#include "workload/sharding/sharded_step.hpp"

#include "base/dense_id.hpp"
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
  /// By old tensor, what is there instead: the same, or the rank's part and what is whole for a
  /// while, of a parameter in forwards and in backwards.
  struct Place {
    TensorId held = kNoTensor;
    TensorId whole = kNoTensor, whole_backward = kNoTensor;
  };
  struct Unit {
    std::string name;
    std::vector<TensorId> parameters, gradients;  ///< old ones
  };

  [[nodiscard]] static bool is_gradient_of_parameter(const Tensor& tensor) {
    return tensor.lifetime == Lifetime::accumulated;
  }
  [[nodiscard]] static bool is_parameter(const Tensor& tensor) {
    return tensor.tensor_class == TensorClass::parameter && tensor.lifetime == Lifetime::resident;
  }

  [[nodiscard]] Bytes part(Bytes whole) const {
    return Bytes{(whole.count() + sharding_.ranks - 1) / sharding_.ranks};
  }

  [[nodiscard]] static std::string unit_name(const std::string& part) {
    const std::size_t slash = part.find('/');
    return slash == std::string::npos ? kOutside : part.substr(0, slash);
  }

  [[nodiscard]] Unit& unit_of(const std::string& tensor) {
    const std::string name = unit_name(tensor);
    Unit& unit = units_[name];
    unit.name = name;
    return unit;
  }

  void add_tensors() {
    gathers_before_.resize(step_.operators.size());
    scatters_after_.resize(step_.operators.size());
    for (std::uint32_t t = 0; t < step_.tensors.size(); ++t) {
      Tensor tensor = step_.tensors[t];
      if (tensor.inside != kNoTensor) tensor.inside = places_[index(tensor.inside)].held;
      places_.push_back(place_of(TensorId{t}, std::move(tensor)));
    }
  }

  Place place_of(TensorId id, Tensor tensor) {
    const bool is_state = tensor.tensor_class == TensorClass::optimizer_state;
    const bool scatters = sharding_.stage >= 2 && is_gradient_of_parameter(tensor);
    const bool gathers = sharding_.stage >= 3 && is_parameter(tensor);
    Place place;
    if (scatters) unit_of(tensor.name).gradients.push_back(id);
    if (gathers) unit_of(tensor.name).parameters.push_back(id);
    if (scatters || gathers) {
      Tensor whole = tensor;
      whole.lifetime = Lifetime::step;
      whole.name += ".whole";
      place.whole = builder_.add(whole);
      whole.name += "_backward";
      if (gathers) place.whole_backward = builder_.add(std::move(whole));
    }
    if (is_state || scatters || gathers) tensor.bytes = part(tensor.bytes);
    place.held = builder_.add(std::move(tensor));
    return place;
  }

  /// Units of which an operator reads a parameter, by the first operator that does or is in the unit.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, const Unit*>> by_first_use(std::uint32_t begin,
                                                                                std::uint32_t end) {
    std::map<std::string, std::uint32_t> first_of_unit;
    std::map<const Unit*, std::uint32_t> first;
    for (std::uint32_t op = begin; op < end; ++op) {
      first_of_unit.try_emplace(unit_name(step_.operators[op].name), op);
      for (const TensorId id : step_.list(step_.operators[op].reads))
        if (places_[index(id)].whole_backward != kNoTensor)
          first.try_emplace(&unit_of(step_[id].name), op);
    }
    std::vector<std::pair<std::uint32_t, const Unit*>> order;
    for (const auto& [name, unit] : units_)
      if (const auto read = first.find(&unit); read != first.end()) {
        const auto begins = first_of_unit.find(name);
        const bool is_sooner = begins != first_of_unit.end() && begins->second < read->second;
        order.emplace_back(is_sooner ? begins->second : read->second, &unit);
      }
    std::ranges::stable_sort(order, {}, [](const auto& it) { return it.first; });
    return order;
  }

  void find_gathers() {
    for (const auto& [begin, end] :
         {std::pair(0U, step_.forwards), std::pair(step_.forwards, step_.optimizer_begin)}) {
      const auto order = by_first_use(begin, end);
      for (std::size_t i = 0; i < order.size(); ++i) {
        const auto ahead = std::min<std::int64_t>(sharding_.prefetch, static_cast<std::int64_t>(i));
        gathers_before_[order[i - static_cast<std::size_t>(ahead)].first].push_back(
            order[i].second);
      }
    }
  }

  void find_scatters() {
    std::map<std::uint32_t, std::vector<const Unit*>> after;
    std::uint32_t last_of_all = step_.forwards;
    std::vector<std::uint32_t> last(step_.tensors.size(), 0);
    for (std::uint32_t op = step_.forwards; op < step_.optimizer_begin; ++op)
      for (const TensorId id : step_.list(step_.operators[op].kept)) last[index(id)] = op;
    for (const auto& [name, unit] : units_) {
      std::uint32_t latest = 0;
      for (const TensorId id : unit.gradients) latest = std::max(latest, last[index(id)]);
      if (latest == 0) continue;
      after[latest].push_back(&unit);
      last_of_all = std::max(last_of_all, latest);
    }
    std::vector<const Unit*> in_order;
    for (const auto& [op, units] : after) {
      if (sharding_.overlap) scatters_after_[op] = units;
      in_order.insert(in_order.end(), units.begin(), units.end());
    }
    if (!sharding_.overlap && !in_order.empty()) scatters_after_[last_of_all] = in_order;
  }

  [[nodiscard]] TensorId read_of(TensorId id, Phase phase) const {
    const Place& place = places_[index(id)];
    if (phase == Phase::optimizer || place.whole == kNoTensor) return place.held;
    if (phase == Phase::forward || place.whole_backward == kNoTensor) return place.whole;
    return place.whole_backward;
  }

  [[nodiscard]] std::vector<TensorId> list(TensorList old, Phase phase) const {
    std::vector<TensorId> ids;
    for (const TensorId id : step_.list(old)) ids.push_back(read_of(id, phase));
    return ids;
  }

  /// An update is one of the rank's part.
  OperatorId add_operator(std::uint32_t old) {
    const Operator& op = step_.operators[old];
    const bool is_part = op.phase == Phase::optimizer && sharding_.stage >= 1;
    const auto share = [&](auto whole) {
      return is_part ? decltype(whole){(whole.count() + sharding_.ranks - 1) / sharding_.ranks}
                     : whole;
    };
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
    spec.reads = list(op.reads, op.phase);
    spec.updates = list(op.updates, op.phase);
    spec.kept = list(op.kept, op.phase);
    spec.bare = list(op.bare, op.phase);
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
    spec.collective = {kind, MeshAxis::data};
    if (op.forward != kNoOperator) spec.forward = added_[index(op.forward)];
    return spec;
  }

  void add_gather(const Unit& unit, OperatorId before) {
    const bool is_forward = step_[before].phase == Phase::forward;
    OperatorSpec spec = collective(unit, is_forward ? ".gather" : ".gather_backward",
                                   CollectiveKind::all_gather, before);
    for (const TensorId id : unit.parameters) {
      const Place& place = places_[index(id)];
      spec.reads.push_back(place.held);
      spec.kept.push_back(is_forward ? place.whole : place.whole_backward);
    }
    spec.bare = spec.kept;
    builder_.add(std::move(spec));
  }

  void add_scatter(const Unit& unit, OperatorId after) {
    OperatorSpec spec = collective(unit, ".reduce_scatter", CollectiveKind::reduce_scatter, after);
    for (const TensorId id : unit.gradients) {
      const Place& place = places_[index(id)];
      spec.reads.push_back(place.whole);
      spec.kept.push_back(place.held);
    }
    spec.bare = spec.kept;
    builder_.add(std::move(spec));
  }

  const Workload& step_;
  const StateSharding& sharding_;
  WorkloadBuilder builder_;
  std::vector<Place> places_;
  std::map<std::string, Unit> units_;
  std::vector<std::vector<const Unit*>> gathers_before_, scatters_after_;  ///< by old operator
  std::vector<OperatorId> added_;                                          ///< by old operator
};

}  // namespace

Workload sharded_step(const Workload& step, const StateSharding& sharding) {
  return ShardedStep(step, sharding).run();
}

}  // namespace plimsoll
