#include "scenario/run/mesh_remedies.hpp"

#include "scenario/run/run_bound.hpp"
#include "scenario/run/trial.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::int64_t kMostGiven = 64;  ///< of the data axis to another one
/// Larger meshes are tried only where one rank stands for all.
constexpr std::int64_t kMostRanksPlayed = 64;
constexpr std::size_t kMostStepsPlayed = 2'000'000;  ///< of the run that is out of memory

class MeshSearch {
 public:
  MeshSearch(const Scenario& scenario, const RunResult& result)
      : scenario_(scenario),
        policy_(own_policy(result)),
        name_(result.policy),
        is_pipeline_(policy_.is_mapping() && name_.starts_with("pipeline/")) {}

  MeshRemedies run() {
    try_stages();
    try_one_group();
    try_axis("tensor", &MeshOptions::tensor);
    try_axis("context", &MeshOptions::context);
    try_axis("expert", &MeshOptions::expert);
    if (is_pipeline_) try_axis("pipeline", &MeshOptions::pipeline);
    try_recomputation();
    std::ranges::stable_sort(found_.run, {}, &MeshRemedies::Change::makespan);
    return std::move(found_);
  }

 private:
  using Size = std::optional<Located<std::int64_t>> MeshOptions::*;

  /// Of one kind of change: whether it runs; then no more of it is tried.
  bool runs(Scenario changed, const Node& policy, const std::string& written) {
    changed.parallel_key += written;
    if (changed.parallel->product() > kMostRanksPlayed &&
        changed.parallel->play.value == MeshOptions::Play::automatic)
      changed.parallel->play.value = MeshOptions::Play::once;
    WorkMeter meter(kWorkOfTrial);
    const RunOptions options{.work = Work(&meter), .compares = false};
    try {
      const bool may_fit = bound_run(changed, policy, options).does_not_fit.empty();
      const auto step = may_fit ? tried_step(changed, policy, options) : std::nullopt;
      if (step)
        found_.run.push_back({written, *step});
      else
        found_.failed.push_back(written);
      return step.has_value();
    } catch (const InputError&) {
      return false;  // the sizes divide nothing, or its planning was stopped
    }
  }

  void try_stages() {
    if (scenario_.parallel->alike() == 1) return;
    for (std::int64_t stage = scenario_.sharding.stage + 1; stage <= 3; ++stage) {
      Scenario changed = scenario_;
      changed.sharding.stage = stage;
      if (runs(std::move(changed), policy_, fmt::format("--set sharding.stage={}", stage))) return;
    }
  }

  void try_one_group() {
    const std::int64_t data = MeshOptions::size(scenario_.parallel->data);
    const auto& group = scenario_.sharding.group;
    if (scenario_.sharding.stage == 0 || !group || group->value == data) return;
    Scenario changed = scenario_;
    changed.sharding.group->value = data;
    runs(std::move(changed), policy_, fmt::format("--set sharding.group={}", data));
  }

  /// Gives it half of the data axis, a fourth, ..
  void try_axis(const char* name, Size axis) {
    const std::int64_t data = MeshOptions::size(scenario_.parallel->data);
    for (std::int64_t given = 2; given <= kMostGiven && data % given == 0; given *= 2) {
      Scenario changed = scenario_;
      MeshOptions& parallel = *changed.parallel;
      const std::int64_t size = MeshOptions::size(parallel.*axis) * given;
      parallel.*axis = {size, parallel.where};
      parallel.data = {data / given, parallel.where};
      if (changed.sharding.stage > 0 && parallel.alike() == 1) return;
      if (runs(
              std::move(changed), policy_,
              fmt::format("--set parallel.{}={} --set parallel.data={}", name, size, data / given)))
        return;
    }
  }

  void try_recomputation() {
    if (!is_pipeline_) {
      const Node blocks = parse_value("remat/blocks", "--policy");
      if (name_ != blocks.scalar()) runs(scenario_, blocks, "--policy remat/blocks");
      return;
    }
    const Node* given = policy_.find("recompute");
    if (given != nullptr && given->is_scalar() && given->scalar() == "full") return;
    Node policy = policy_;
    Diagnostics diagnostics;
    policy.set("recompute", parse_value("full", "--policy"), diagnostics);
    runs(scenario_, policy, "--set policy.recompute=full");
  }

  const Scenario& scenario_;
  const Node policy_;
  const std::string& name_;
  const bool is_pipeline_;
  MeshRemedies found_;
};

}  // namespace

MeshRemedies mesh_remedies_of(const Scenario& scenario, const RunResult& result) {
  if (!scenario.parallel || result.from_file || result.plan.steps.size() > kMostStepsPlayed)
    return {};
  return MeshSearch(scenario, result).run();
}

}  // namespace plimsoll
