#include "workload/sharding/away_step.hpp"

#include "base/dense_id.hpp"
#include "workload/sharding/unit_step.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll {
namespace {

UnitStep::Ways ways_of(const AwayState& away) {
  UnitStep::Ways ways;
  ways.bring = CollectiveKind::fetch;
  ways.take = CollectiveKind::store;
  ways.brought = ".fetch";
  ways.taken = ".store";
  ways.here = ".here";
  ways.prefetch = away.by_chain_stage ? 0 : away.prefetch;
  ways.by_chain_stage = away.by_chain_stage;
  ways.by_layer = true;
  return ways;
}

class AwayStep : public UnitStep {
 public:
  AwayStep(const Workload& step, const AwayState& away)
      : UnitStep(step, ways_of(away)), away_(away) {}

 private:
  /// What an update works on in the place of a tensor that lives elsewhere.
  struct Visitor {
    TensorId works_on = kNoTensor;
    TensorId fetched_from = kNoTensor;  ///< or kNoTensor: nothing of it is read
    bool is_made = false;               ///< by the update
    std::vector<TensorId> stored_to;    ///< where it is changed
  };

  [[nodiscard]] bool brings(TensorId id) const override {
    return away_.parameters && is_parameter(step_[id]);
  }
  [[nodiscard]] bool takes(TensorId id) const override {
    return away_.gradients && step_[id].lifetime == Lifetime::accumulated;
  }
  [[nodiscard]] bool is_away_state(TensorId id) const {
    return away_.optimizer && step_[id].tensor_class == TensorClass::optimizer_state;
  }
  [[nodiscard]] Home home_of(TensorId id) const {
    if (brings(id)) return Home::parameters;
    if (takes(id)) return Home::gradients;
    return is_away_state(id) ? Home::optimizer : Home::processor;
  }
  [[nodiscard]] Tensor kept_of(TensorId id) const override {
    Tensor tensor = step_[id];
    tensor.home = home_of(id);
    return tensor;
  }

  [[nodiscard]] bool is_there(Home home) const {
    return away_.is_at_updates[static_cast<std::size_t>(home)];
  }
  /// Of what the updates use beside state and gradients.
  [[nodiscard]] Home home_of_visitors() const {
    return away_.updates ? Home::updates : Home::processor;
  }

  [[nodiscard]] bool changes(std::uint32_t op, TensorId id) const {
    const auto updates = step_.list(step_.operators[op].updates);
    return std::ranges::find(updates, id) != updates.end();
  }
  [[nodiscard]] bool has_master(std::uint32_t op, TensorId parameter) const {
    const auto updates = step_.list(step_.operators[op].updates);
    const std::string master = step_[parameter].name + ".master";
    return std::ranges::any_of(updates, [&](TensorId id) { return step_[id].name == master; });
  }

  /// What a rank updates of a parameter that it holds.
  [[nodiscard]] Bytes updated_bytes(TensorId parameter) const {
    const Tensor& tensor = step_[parameter];
    const std::int64_t parts = tensor.is_of_experts ? away_.parts_of_experts : away_.parts;
    return Bytes{(tensor.bytes.count() + parts - 1) / parts};
  }

  TensorId add_visitor(TensorId of, const char* suffix) {
    Tensor tensor = step_[of];
    tensor.name += suffix;
    tensor.lifetime = Lifetime::step;
    tensor.home = home_of_visitors();
    if (is_parameter(step_[of])) tensor.bytes = updated_bytes(of);
    return builder_.add(std::move(tensor));
  }

  /// A copy of a parameter that stays with the optimizer's state.
  TensorId add_copy(TensorId of) {
    Tensor tensor = step_[of];
    tensor.name += ".copy";
    tensor.tensor_class = TensorClass::optimizer_state;
    tensor.bytes = updated_bytes(of);
    tensor.home = away_.optimizer ? Home::optimizer : Home::updates;
    return builder_.add(std::move(tensor));
  }

  Visitor visitor_for(std::uint32_t op, TensorId id) {
    Visitor visitor;
    const bool is_of_parameter = is_parameter(step_[id]) && changes(op, id);
    if (is_of_parameter && has_master(op, id)) {
      visitor.works_on = add_visitor(id, ".updated");
      visitor.is_made = true;
      visitor.stored_to = {held(id)};
    } else if (is_of_parameter && home_of(id) == Home::processor) {
      const TensorId copy = add_copy(id);
      const bool visits = away_.optimizer && !is_there(Home::optimizer);
      visitor.works_on = visits ? add_visitor(id, ".here_update") : copy;
      if (visits) visitor.fetched_from = copy;
      visitor.stored_to = {held(id)};
      if (visits) visitor.stored_to.push_back(copy);
    } else {
      visitor.works_on = add_visitor(id, ".here_update");
      visitor.fetched_from = held(id);
      if (changes(op, id)) visitor.stored_to = {held(id)};
    }
    return visitor;
  }

  /// Each operator has visitors of its own, so that they leave with it.
  void find_visitors() {
    for (auto op = step_.optimizer_begin; op < step_.operators.size(); ++op)
      for (const TensorId id : step_.list(step_.operators[op].reads))
        if (!is_there(home_of(id)) && !visitors_[op].contains(id))
          visitors_[op].emplace(id, visitor_for(op, id));
  }

  void add_optimizer() override {
    find_visitors();
    find_fetches();
    for (auto op = step_.optimizer_begin; op < step_.operators.size(); ++op) {
      if (const auto due = fetches_before_.find(op); due != fetches_before_.end())
        for (const std::uint32_t of : due->second) add_fetch(of);
      builder_.add(update(op));
      add_stores(op);
    }
  }

  /// By operator: those whose fetches are issued before it, behind all stores of what they fetch.
  void find_fetches() {
    std::vector<std::uint32_t> places;
    std::map<TensorId, std::uint32_t> stored_behind;
    for (auto op = step_.optimizer_begin; op < step_.operators.size(); ++op) {
      bool fetches = false;
      std::uint32_t behind = 0;
      for (const auto& [id, it] : visitors_[op]) {
        fetches = fetches || it.fetched_from != kNoTensor;
        if (const auto found = stored_behind.find(id); found != stored_behind.end())
          behind = std::max(behind, found->second);
        if (!it.stored_to.empty()) stored_behind[id] = op;
      }
      if (!fetches) continue;
      places.push_back(op);
      std::size_t place = places.size() - 1;
      for (std::int64_t left = away_.prefetch; left > 0 && place > 0; --left)
        if (places[place - 1] > behind) --place;
      fetches_before_[places[place]].push_back(op);
    }
  }

  [[nodiscard]] static OperatorSpec move(std::string name, CollectiveKind kind) {
    OperatorSpec spec;
    spec.name = std::move(name);
    spec.phase = Phase::optimizer;
    spec.given_time = Time{};
    spec.runs_once = true;
    spec.collective.kind = kind;
    return spec;
  }

  void add_fetch(std::uint32_t op) {
    OperatorSpec spec = move(step_.operators[op].name + ".fetch", CollectiveKind::fetch);
    for (const auto& [id, it] : visitors_[op])
      if (it.fetched_from != kNoTensor) {
        spec.reads.push_back(it.fetched_from);
        spec.kept.push_back(it.works_on);
      }
    spec.bare = spec.kept;
    builder_.add(std::move(spec));
  }

  void add_stores(std::uint32_t op) {
    OperatorSpec spec = move(step_.operators[op].name + ".store", CollectiveKind::store);
    for (const auto& [id, it] : visitors_[op])
      for (const TensorId to : it.stored_to) {
        spec.reads.push_back(it.works_on);
        spec.updates.push_back(to);
      }
    if (spec.updates.empty()) return;
    spec.reads.insert(spec.reads.end(), spec.updates.begin(), spec.updates.end());
    builder_.add(std::move(spec));
  }

  OperatorSpec update(std::uint32_t op) {
    OperatorSpec spec = spec_of(op);
    spec.reads.clear();
    spec.updates.clear();
    for (const TensorId id : step_.list(step_.operators[op].reads)) {
      const auto found = visitors_[op].find(id);
      const bool visits = found != visitors_[op].end();
      const TensorId used = visits ? found->second.works_on : held(id);
      if (visits && found->second.is_made) {
        spec.kept.push_back(used);
        continue;
      }
      spec.reads.push_back(used);
      if (changes(op, id)) spec.updates.push_back(used);
    }
    spec.bare = spec.kept;
    if (away_.updates && spec.dtype != DType::int8) spec.dtype = DType::fp32;
    return spec;
  }

  const AwayState& away_;
  /// By operator of the old step, and its tensors.
  std::map<std::uint32_t, std::map<TensorId, Visitor>> visitors_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> fetches_before_;
};

}  // namespace

Workload away_step(const Workload& step, const AwayState& away) {
  return AwayStep(step, away).run();
}

Workload as_seen_here(Workload step, bool updates_elsewhere) {
  for (std::uint32_t op = step.forwards; op < step.optimizer_begin; ++op)
    if (step.operators[op].collective.kind == CollectiveKind::store)
      for (const TensorId id : step.list(step.operators[op].kept))
        step.tensors[index(id)].lifetime = Lifetime::accumulated;
  for (Tensor& tensor : step.tensors)
    if (tensor.home != Home::processor) tensor.bytes = Bytes{};
  if (!updates_elsewhere) return step;
  for (auto op = step.optimizer_begin; op < step.operators.size(); ++op) {
    Operator& it = step.operators[op];
    if (it.reads.begin == it.reads.end) continue;  // the overhead of a step is of all processors
    it.given_time = Time{};
    it.workspace = Bytes{};
  }
  return step;
}

Workload with_room_for_gradients(Workload step) {
  for (Tensor& tensor : step.tensors)
    if (tensor.home != Home::processor && tensor.lifetime == Lifetime::accumulated)
      tensor.lifetime = Lifetime::resident;
  return step;
}

}  // namespace plimsoll
