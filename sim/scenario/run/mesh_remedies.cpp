#include "scenario/run/mesh_remedies.hpp"

#include "base/divisors.hpp"
#include "scenario/document/memo.hpp"
#include "scenario/run/ranks.hpp"
#include "scenario/run/run_bound.hpp"
#include "scenario/run/step_of_rank.hpp"
#include "scenario/run/trial.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

constexpr std::int64_t kMostGiven = 64;  ///< of the data axis to another one
/// Larger meshes are tried only where one rank stands for all.
constexpr std::int64_t kMostRanksPlayed = 64;
/// Of all trials, steps of plans and events: some seconds of a core. The last one may go beyond.
constexpr std::uint64_t kMostPlayed = 1'200'000;
constexpr std::int64_t kMostPlanned = 5 * kWorkOfTrial;  ///< likewise, of planning

/// The scenario changed, and what changes it so.
struct MeshTrial {
  Scenario scenario;
  Node policy;
  ChangeArguments arguments;

  void set(const std::string& path_and_value) {
    arguments.insert(arguments.end(), {"--set", path_and_value});
  }
};

enum class Outcome {
  runs,
  full,      ///< out of memory, and smaller microbatches may help
  hopeless,  ///< out of memory whatever the microbatches
  refused,   ///< the sizes divide nothing, or the policy has no such plan
  skipped,
};

std::int64_t size_of(const std::optional<Located<std::int64_t>>& axis) {
  return MeshOptions::size(axis);
}

/// The least divisor of `data` that is not below `group`: no rank then holds more.
std::int64_t group_that_divides(std::int64_t data, std::int64_t group) {
  for (std::int64_t size = group; size < data; ++size)
    if (data % size == 0) return size;
  return data;
}

/// Writes all of `sharding` that is not left to its defaults.
void write_sharding(MeshTrial& trial) {
  const ShardingOptions& sharding = trial.scenario.sharding;
  std::vector<std::string> parts;
  if (sharding.stage > 0) parts.push_back(fmt::format("stage: {}", sharding.stage));
  if (sharding.group) parts.push_back(fmt::format("group: {}", sharding.group->value));
  if (!sharding.overlap) parts.emplace_back("overlap: false");
  if (trial.scenario.state) parts.push_back(fmt::format("prefetch: {}", sharding.prefetch));
  if (sharding.from_master)
    parts.push_back(fmt::format("from_master: {}", sharding.from_master->value));
  trial.set(fmt::format("sharding={{{}}}", fmt::join(parts, ", ")));
}

/// What is told of the data axis, for one of another size. Of no ranks that hold the same nothing is told but what
/// `state` takes.
void fit_to_data(MeshTrial& trial) {
  MeshOptions& parallel = *trial.scenario.parallel;
  ShardingOptions& sharding = trial.scenario.sharding;
  if (parallel.alike() == 1 && sharding.stage == 0 && (!sharding.overlap || sharding.bucket)) {
    const std::int64_t prefetch = sharding.prefetch;
    sharding = {};
    sharding.prefetch = prefetch;
    write_sharding(trial);
  }
  const std::int64_t data = size_of(parallel.data);
  auto& group = trial.scenario.sharding.group;
  if (trial.scenario.sharding.stage > 0 && group && data % group->value != 0) {
    group->value = group_that_divides(data, group->value);
    trial.set(fmt::format("sharding.group={}", group->value));
  }
  if (parallel.node && data % parallel.node->value != 0) {
    parallel.node->value = std::gcd(data, parallel.node->value);
    trial.set(fmt::format("parallel.node={}", parallel.node->value));
  }
}

/// In stage 3 there are no buckets, and no assignment takes a key away.
void set_stage(MeshTrial& trial, std::int64_t stage) {
  ShardingOptions& sharding = trial.scenario.sharding;
  sharding.stage = stage;
  if (stage < 3 || !sharding.bucket) return trial.set(fmt::format("sharding.stage={}", stage));
  sharding.bucket.reset();
  write_sharding(trial);
}

/// An `order` that leaves the axis out has it innermost, as by default.
void put_in_order(MeshTrial& trial, MeshOptions::Axis axis) {
  MeshOptions& parallel = *trial.scenario.parallel;
  if (!parallel.order ||
      std::ranges::count(*parallel.order, axis, &Located<MeshOptions::Axis>::value) > 0)
    return;
  const Located<MeshOptions::Axis> added{axis, parallel.order->front().where};
  parallel.order->insert(
      axis == MeshOptions::Axis::pipeline ? parallel.order->end() : parallel.order->begin(), added);
  std::vector<std::string_view> names;
  for (const Located<MeshOptions::Axis>& it : *parallel.order)
    names.emplace_back(name_of(it.value));
  trial.set(fmt::format("parallel.order=[{}]", fmt::join(names, ", ")));
}

class MeshSearch {
 public:
  MeshSearch(const Scenario& scenario, const RunResult& result)
      : scenario_(scenario),
        policy_(own_policy(result)),
        name_(result.policy),
        is_pipeline_(policy_.is_mapping() && name_.starts_with("pipeline/")),
        states_samples_(result.workload_as_run.macs > 0 && states_batch(scenario)) {
    if (states_samples_) turns_ = turns_of_run();
  }

  /// One change before two. What sends least comes first; stage 3, which takes longest to play, last of one change.
  MeshRemedies run() {
    using Axis = MeshOptions::Axis;
    std::vector<std::vector<MeshTrial>> full;  // by axis of which no size runs by itself
    full.push_back(try_axis(Axis::expert));
    const bool is_sharded = try_stages(1, 2);
    for (const Axis axis : {Axis::tensor, Axis::context, Axis::pipeline})
      if (axis != Axis::pipeline || is_pipeline_) full.push_back(try_axis(axis));
    try_positions();
    try_turns(as_it_is());
    try_recomputation();
    if (!is_sharded) try_stages(3, 3);
    try_one_group();
    for (const std::vector<MeshTrial>& trials : full)
      for (const MeshTrial& trial : trials)
        if (try_turns(trial)) break;
    std::ranges::stable_sort(found_.run, {}, &MeshRemedies::Change::makespan);
    return std::move(found_);
  }

 private:
  [[nodiscard]] MeshTrial as_it_is() const { return {scenario_, policy_, {}}; }

  [[nodiscard]] std::int64_t turns_of_run() const {
    if (!is_pipeline_) return scenario_.workload_options.accumulate.value_or(1);
    Diagnostics diagnostics;
    const auto bound = bind_policy(Ranks(scenario_, policy_).policy_of_one(policy_), diagnostics);
    return bound ? bound->microbatches : 1;
  }

  [[nodiscard]] bool took_long() const {
    return played_ > kMostPlayed || planned_.steps() > kMostPlanned;
  }

  Outcome attempt(const MeshTrial& trial) {
    const Outcome outcome = outcome_of(trial);
    if (outcome == Outcome::full || outcome == Outcome::hopeless)
      found_.failed.push_back(trial.arguments);
    if (outcome == Outcome::skipped) found_.skipped.push_back(trial.arguments);
    return outcome;
  }

  Outcome outcome_of(const MeshTrial& trial) {
    Scenario changed = trial.scenario;
    changed.parallel_key += in_one_line(trial.arguments);
    const bool is_large = changed.parallel->product() > kMostRanksPlayed &&
                          changed.parallel->play.value == MeshOptions::Play::automatic;
    if (is_large) changed.parallel->play.value = MeshOptions::Play::once;
    WorkMeter meter(kWorkOfTrial, &planned_);
    const RunOptions options{.memo = &memo_,
                             .work = Work(&meter),
                             .compares = false,
                             .sums_only = true,
                             .is_reported = false};
    bool is_allowed = false;
    try {
      const bool may_fit = bound_run(changed, trial.policy, options).does_not_fit.empty();
      if (!may_fit) return is_pipeline_ ? Outcome::full : Outcome::hopeless;
      is_allowed = true;
      if (took_long()) return Outcome::skipped;
      return played(changed, trial, options);
    } catch (const InputError&) {
      const bool takes_long = meter.steps() > kWorkOfTrial || (is_allowed && is_large);
      return takes_long ? Outcome::skipped : Outcome::refused;
    }
  }

  Outcome played(const Scenario& changed, const MeshTrial& trial, const RunOptions& options) {
    const RunResult tried = run_policy(changed, trial.policy, options);
    played_ += tried.execution.events + tried.plan.steps.size();
    if (std::string_view(status_text(tried)) != "ok") return Outcome::full;
    found_.run.push_back({trial.arguments, *tried.metrics.makespan});
    return Outcome::runs;
  }

  /// Whether it runs with one of them.
  bool try_stages(std::int64_t first, std::int64_t last) {
    if (scenario_.parallel->alike() == 1) return false;
    for (std::int64_t stage = std::max(first, scenario_.sharding.stage + 1); stage <= last;
         ++stage) {
      MeshTrial trial = as_it_is();
      set_stage(trial, stage);
      if (attempt(trial) == Outcome::runs) return true;
    }
    return false;
  }

  void try_one_group() {
    const std::int64_t data = size_of(scenario_.parallel->data);
    const auto& group = scenario_.sharding.group;
    if (scenario_.sharding.stage == 0 || !group || group->value == data) return;
    MeshTrial trial = as_it_is();
    trial.scenario.sharding.group->value = data;
    trial.set(fmt::format("sharding.group={}", data));
    attempt(trial);
  }

  /// Gives it half of the data axis, a fourth, ..; then likewise with positions divided. Returns what may run with
  /// smaller microbatches, if none does without.
  std::vector<MeshTrial> try_axis(MeshOptions::Axis which) {
    const NamedAxis& axis = *std::ranges::find(kNamedAxes, which, &NamedAxis::axis);
    const std::int64_t data = size_of(scenario_.parallel->data);
    std::vector<MeshTrial> full;
    for (std::int64_t given = 2; given <= kMostGiven && data % given == 0; given *= 2) {
      MeshTrial trial = given_to(axis, given);
      if (trial.scenario.sharding.stage > 0 && trial.scenario.parallel->alike() == 1) break;
      const Outcome outcome = attempt(trial);
      if (outcome == Outcome::runs) return {};
      if (outcome == Outcome::full) full.push_back(std::move(trial));
    }
    if (axis.axis == MeshOptions::Axis::tensor)
      for (MeshTrial& trial : full)
        if (divide_positions(trial) && attempt(trial) == Outcome::runs) return {};
    return full;
  }

  [[nodiscard]] MeshTrial given_to(const NamedAxis& axis, std::int64_t given) const {
    MeshTrial trial = as_it_is();
    MeshOptions& parallel = *trial.scenario.parallel;
    const std::int64_t size = size_of(parallel.*axis.size) * given;
    const std::int64_t data = size_of(parallel.data) / given;
    parallel.*axis.size = {size, parallel.where};
    parallel.data = {data, parallel.where};
    trial.set(fmt::format("parallel.{}={}", axis.name, size));
    trial.set(fmt::format("parallel.data={}", data));
    put_in_order(trial, axis.axis);
    fit_to_data(trial);
    return trial;
  }

  /// Whether it was not so before.
  static bool divide_positions(MeshTrial& trial) {
    auto& sequence = trial.scenario.parallel->sequence;
    if (sequence && sequence->value) return false;
    sequence = {true, trial.scenario.parallel->where};
    trial.set("parallel.sequence=true");
    return true;
  }

  void try_positions() {
    if (size_of(scenario_.parallel->tensor) == 1) return;
    MeshTrial trial = as_it_is();
    if (divide_positions(trial)) attempt(trial);
  }

  /// Smaller microbatches, down to one sample. Whether it runs with some; else the smallest failed.
  bool try_turns(const MeshTrial& base) {
    if (!states_samples_) return false;
    const std::int64_t batch =
        base.scenario.workload_options.batch.value_or(default_batch(base.scenario.workload));
    const std::int64_t of_a_rank = batch / base.scenario.parallel->samples();
    std::optional<ChangeArguments> failed;
    for (const std::int64_t turns : divisors_of(of_a_rank)) {
      if (turns <= turns_) continue;
      const MeshTrial trial = in_turns(base, turns);
      const Outcome outcome = outcome_of(trial);
      if (outcome == Outcome::runs) return true;
      if (outcome == Outcome::skipped) {
        found_.skipped.push_back(trial.arguments);
        break;
      }
      if (outcome != Outcome::refused) failed = trial.arguments;
    }
    if (failed) found_.failed.push_back(*failed);
    return false;
  }

  [[nodiscard]] MeshTrial in_turns(const MeshTrial& base, std::int64_t turns) const {
    MeshTrial trial = base;
    if (is_pipeline_) {
      Diagnostics diagnostics;
      trial.policy.set("microbatches", parse_value(std::to_string(turns), "--policy"), diagnostics);
      trial.set(fmt::format("policy.microbatches={}", turns));
    } else {
      trial.scenario.workload_options.accumulate = turns;
      trial.scenario.workload_key += fmt::format(" in {} turns", turns);
      trial.set(fmt::format("workload.accumulate={}", turns));
    }
    return trial;
  }

  void try_recomputation() {
    MeshTrial trial = as_it_is();
    if (!is_pipeline_) {
      trial.policy = parse_value("remat/blocks", "--policy");
      trial.arguments.insert(trial.arguments.end(), {"--policy", "remat/blocks"});
      if (name_ != trial.policy.scalar()) attempt(trial);
      return;
    }
    const Node* given = policy_.find("recompute");
    if (given != nullptr && given->is_scalar() && given->scalar() == "full") return;
    Diagnostics diagnostics;
    trial.policy.set("recompute", parse_value("full", "--policy"), diagnostics);
    trial.set("policy.recompute=full");
    attempt(trial);
  }

  const Scenario& scenario_;
  const Node policy_;
  const std::string& name_;
  const bool is_pipeline_;
  const bool states_samples_;  ///< sizes follow from the samples of a microbatch
  std::int64_t turns_ = 1;     ///< microbatches of a rank
  ScenarioMemo memo_;          ///< a step is built once for its bound and its run
  WorkMeter planned_;
  std::uint64_t played_ = 0;
  MeshRemedies found_;
};

}  // namespace

std::string in_one_line(const ChangeArguments& arguments) {
  std::string line;
  for (const std::string& argument : arguments) {
    const char* quote = argument.find(' ') == std::string::npos ? "" : "'";
    line += fmt::format("{}{}{}{}", line.empty() ? "" : " ", quote, argument, quote);
  }
  return line;
}

MeshRemedies mesh_remedies_of(const Scenario& scenario, const RunResult& result) {
  if (!scenario.parallel || result.from_file) return {};
  return MeshSearch(scenario, result).run();
}

}  // namespace plimsoll
