/// A training step that holds its parameters and gradients elsewhere, and has those of a *unit* here
/// for a while: parameters from before the first forward of the unit until its last, and again for
/// its backwards (or from the one until the other); gradients from the backward that makes the first of
/// them until all have left.
///
/// A unit is an outermost block of the network that multiplies (`block_3`), or all layers outside of those, or a
/// stage of the chain view (workload/chain/chain_view.hpp). Parameters are brought before the first
/// operator of the unit `prefetch` places before theirs, in the order in which units are first used.
/// Gradients leave after the last backward that adds to one of them, or all of them after the last
/// backward. What is here of a tensor is a tensor of its own, so that every policy of single operators
/// can plan the step.
///
/// Where elsewhere is, others say: other ranks (sharded_step.hpp), or another memory (away_step.hpp).
/// Internal to this folder.
#pragma once

#include "workload/core/workload.hpp"
#include "workload/core/workload_builder.hpp"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll {

class UnitStep {
 public:
  struct Ways {
    CollectiveKind bring = CollectiveKind::none, take = CollectiveKind::none;
    const char* brought = "";  ///< behind the name of the unit: an operator's
    const char* taken = "";
    const char* here = "";  ///< behind the name of a tensor
    std::int64_t prefetch = 1;
    bool overlap = true;
    bool by_chain_stage = false;
    bool brings_once = false;  ///< parameters of forwards stay for the backwards
    /// Layers outside of blocks are units of their own.
    bool by_layer = false;
  };

  UnitStep(const Workload& step, const Ways& ways)
      : step_(step), ways_(ways), builder_(step.name) {}
  UnitStep(const UnitStep&) = delete;
  UnitStep& operator=(const UnitStep&) = delete;
  virtual ~UnitStep() = default;

  [[nodiscard]] Workload run();

 protected:
  [[nodiscard]] static bool is_parameter(const Tensor& tensor) {
    return tensor.tensor_class == TensorClass::parameter && tensor.lifetime == Lifetime::resident &&
           !tensor.is_whole;
  }
  [[nodiscard]] OperatorSpec spec_of(std::uint32_t op);
  /// What takes the place of an old tensor outside of units.
  [[nodiscard]] TensorId held(TensorId old) const { return held_[static_cast<std::size_t>(old)]; }

  const Workload& step_;
  const Ways ways_;
  WorkloadBuilder builder_;

 private:
  /// What is here for a while of a tensor: of a parameter in forwards and in backwards, one where it stays.
  struct Here {
    TensorId forward = kNoTensor, backward = kNoTensor;
  };
  struct Unit {
    std::string name;
    std::string block;  ///< in which it is used: its name, but for experts
    bool is_of_experts = false;
    bool has_weight_halves = false;  ///< halves of backwards make some of its gradients
    std::map<TensorId, Here> parameters, gradients;  ///< by old tensor
  };

  /// Whether it is a parameter, or a gradient of one, that is elsewhere.
  [[nodiscard]] virtual bool brings(TensorId id) const = 0;
  [[nodiscard]] virtual bool takes(TensorId id) const = 0;
  /// What stays of it elsewhere.
  [[nodiscard]] virtual Tensor kept_of(TensorId id) const = 0;
  virtual void add_optimizer() = 0;

  [[nodiscard]] std::string block_of(const std::string& part) const;
  [[nodiscard]] std::string unit_name(std::uint32_t op) const;
  [[nodiscard]] Unit& unit_of(std::uint32_t op, TensorId tensor);
  void find_blocks();
  void find_units();
  void add_tensors();
  void add_here(Tensor tensor, const std::string& unit, bool twice, Here& here);
  [[nodiscard]] std::vector<std::pair<std::uint32_t, const Unit*>> by_first_use(std::uint32_t begin,
                                                                                std::uint32_t end);
  void find_places_to_bring();
  void find_places_to_take();
  [[nodiscard]] TensorId used_by(std::uint32_t op, TensorId id);
  [[nodiscard]] std::vector<TensorId> list(std::uint32_t op, TensorList old);
  [[nodiscard]] OperatorSpec spec_near(const Unit& unit, const std::string& suffix,
                                       CollectiveKind kind, OperatorId near) const;
  void add_bring(const Unit& unit, OperatorId before);
  void add_take(const Unit& unit, OperatorId after);

  std::set<std::string> multiplying_;    ///< outermost blocks that have products
  std::vector<std::uint32_t> stage_of_;  ///< by forward, where units are stages of the chain
  std::map<std::string, Unit> units_;
  std::vector<TensorId> held_;                                          ///< by old tensor
  std::vector<std::vector<const Unit*>> brought_before_, taken_after_;  ///< by old operator
  std::vector<OperatorId> added_;                                       ///< by old operator
};

}  // namespace plimsoll
