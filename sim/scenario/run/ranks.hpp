/// A run on the ranks of a mesh, or of one rank whose state lives elsewhere: what each policy is told,
/// and what its plan becomes.
#pragma once

#include "plan/build/spread_plan.hpp"
#include "policy/parallel/least_collectives.hpp"
#include "policy/parallel/rank_symmetry.hpp"
#include "scenario/document/scenario.hpp"
#include "workload/sharding/away_step.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

class Ranks {
 public:
  /// Of a scenario without `parallel` one rank, of which nothing is said; with `state`, the one that
  /// `policy` runs on. Throws InputError where the platform has not the ranks, or state cannot be where
  /// it is to be.
  explicit Ranks(const Scenario& scenario, const Node& policy = {});

  /// From now on rounds of a collective that follow each other on one channel are one step of a plan, for runs
  /// of whose steps nothing is shown.
  void join_rounds();

  /// From now on the units in which parameters come are stages of the chain, not blocks of the network: what is here
  /// for a whole block would reach past the places where the chain is cut. So it is from the start in pipelines,
  /// and for a policy that takes stages as a whole.
  void take_stages_as_units() { takes_stages_ = true; }
  /// But in pipelines.
  void take_blocks_as_units() { takes_stages_ = false; }
  [[nodiscard]] bool has_stages_as_units() const {
    return is_pipeline() || (takes_stages_ && brings_parameters());
  }
  /// Whether it depends on the policy.
  [[nodiscard]] bool may_have_stages_as_units() const {
    return !is_pipeline() && brings_parameters();
  }
  /// Whether units are stages because the policy takes these as a whole. Then it does not know what of parameters
  /// comes ahead.
  [[nodiscard]] bool has_units_of_policy() const { return has_stages_as_units() && !is_pipeline(); }

  /// Of the scenario's platform.
  [[nodiscard]] const Topology& topology() const { return topology_; }

  [[nodiscard]] bool is_mesh() const { return scenario_.parallel.has_value(); }
  [[nodiscard]] bool has_state_elsewhere() const { return away_.has_value(); }
  /// Processors of the mesh.
  [[nodiscard]] std::int64_t count() const;
  /// By how many a mini-batch is divided.
  [[nodiscard]] std::int64_t samples() const;
  /// "data axis", "expert and data axes".
  [[nodiscard]] std::string axes_of_samples() const;
  /// How many work on the same samples, but for those of a pipeline's other stages.
  [[nodiscard]] std::int64_t of_a_sample() const;
  /// Tells how they divide layers, where they do.
  void tell(WorkloadOptions& options) const;

  /// The step as one rank runs it. Throws InputError where it cannot be sharded so, or its state cannot
  /// live so.
  [[nodiscard]] Workload step_of_one(Workload step) const;
  /// The step of one rank as it is played.
  [[nodiscard]] Workload as_played(Workload step) const;

  /// The policy with the processors of the first rank: `on`, or a pipeline's `devices`. Throws
  /// InputError where it names others, or where the axes are not its own.
  [[nodiscard]] Node policy_of_one(const Node& policy) const;

  /// What `plan` plans for the first rank: of a problem as its processor sees it, without what lives or
  /// runs elsewhere.
  [[nodiscard]] Planned planned(const std::function<Planned(const Problem&)>& plan,
                                const Problem& problem) const;

  /// How long their collectives take at least in the step of `problem`; nullptr for one rank.
  [[nodiscard]] std::unique_ptr<LeastCollectives> least_collectives(const Problem& problem) const;

  /// In which forms the collectives of the plan made last are done (SpreadPlan::taken).
  [[nodiscard]] const std::vector<TakenForm>& forms_taken() const { return symmetry_.taken; }

  /// Why a plan that was read cannot be one of the mesh (scenario/run/plan_of_mesh.hpp); empty where it can, or where
  /// there is no mesh.
  [[nodiscard]] std::string why_not_theirs(const Plan& plan, const Workload& as_played) const;

  /// The plan of the first rank for all of them. Where parameters come for each stage, they come `ahead` units before
  /// it, or as the scenario says.
  [[nodiscard]] Plan of_all(Plan of_one, const Problem& problem,
                            std::optional<std::int64_t> ahead = std::nullopt) const;

  /// In which the first rank works. Precondition: a mesh, or state elsewhere.
  [[nodiscard]] MemoryId memory_of_first() const;

 private:
  /// Whether stages of a pipeline hold gradients in parts.
  [[nodiscard]] bool divides_stages() const;
  /// Whether state is in parts within groups of the data axis.
  [[nodiscard]] bool has_groups() const;
  /// Ranks that divide state where it is no experts', and where it is.
  [[nodiscard]] std::int64_t parts() const;
  [[nodiscard]] std::int64_t parts_of_experts() const;
  [[nodiscard]] bool is_pipeline() const { return spreading_ && spreading_->likes.size() > 1; }
  /// Whether parameters come for forwards and again for backwards.
  [[nodiscard]] bool brings_parameters() const;
  [[nodiscard]] std::int64_t size(std::optional<Located<std::int64_t>> MeshOptions::*axis) const;
  [[nodiscard]] std::vector<ProcessorId> that_compute(const Platform& platform) const;
  void find_mesh();
  void check_updaters() const;
  void find_homes(const Node& policy);
  [[noreturn]] void refuse_home_of_one(ProcessorId device) const;
  [[nodiscard]] ProcessorId device_of(const Node& policy) const;
  void check_network(const Location& where, const char* key, const char* what) const;
  void check_sharding() const;
  void check_group() const;
  void check_state() const;
  void check_layers(MeshOptions::Axis axis) const;
  [[nodiscard]] Optimizer optimizer() const;
  void check_from_master() const;
  void check_reshard() const;
  void check_fp8(const char* why) const;
  [[nodiscard]] Workload with_state_elsewhere(const Workload& step) const;

  const Scenario& scenario_;
  const Topology topology_;
  std::optional<Spreading> spreading_;
  mutable RankSymmetry symmetry_;      ///< of the plan made last
  std::vector<ProcessorId> updaters_;  ///< processors that only update
  std::optional<AwayState> away_;      ///< where state lives elsewhere
  bool takes_stages_ = false;          ///< take_stages_as_units()
};

}  // namespace plimsoll
