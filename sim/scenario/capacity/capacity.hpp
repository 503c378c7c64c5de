/// Capacity planning: every candidate platform under every candidate policy, for every workload,
/// measured by running the engine.
///
/// A *configuration* is a platform with a policy; a *unit* is one platform as its file describes
/// it. For each configuration, the largest mini-batch that fits is searched for, and the fastest of
/// those tried. A batch fits if the run ends well while the required headroom is reserved in every
/// memory in which operators run. Batches are tried as scenario/run/largest.hpp says, starting with
/// nine samples between the least and the most that the plan allows. Batches that do not fit
/// although larger ones do are reported (`holes`).
///
/// Units are data-parallel replicas: n of them carry n x `scaling` times what one does. Their
/// number is the least that meets throughput and deadline.
///
/// Deterministic, whatever the number of threads. Cost: O(configurations x (log batches + changes
/// tried)) runs.
#pragma once

#include "scenario/capacity/capacity_plan.hpp"
#include "scenario/capacity/error_band.hpp"
#include "scenario/run/run.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

/// What one unit does at one batch.
struct UnitFigures {
  std::int64_t batch = 1;
  SampleRate throughput;
  Ratio headroom =
      kWhole;  ///< the least free share of a memory in which operators run, at its peak
  std::optional<Energy> energy_per_sample;  ///< absent without any power
  std::optional<Power> average_power;
  std::optional<Power> power_limit;                ///< of the platform
  std::optional<std::int64_t> samples_per_charge;  ///< absent without a battery
  std::optional<double> mfu;                       ///< of networks divided among processors
};

/// The units that the targets ask for, or one where none does.
struct Deployment {
  std::int64_t units = 1;
  std::optional<std::int64_t> units_at_worst;  ///< where each is as slow as the error band allows
  std::int64_t processors = 1;                 ///< of all units, that the plan uses
  SampleRate throughput;
  std::optional<std::int64_t> seconds;  ///< of the whole run, rounded up
  /// Of the whole run. Units are at work for all of it, also while they exchange gradients, so that
  /// what `scaling` costs in time it costs in energy, too.
  std::optional<Energy> energy;
  std::optional<std::int64_t> run_cost;  ///< millionths: rent and electricity of the whole run
  bool is_electricity_unknown = false;   ///< it has a price, but the platform states no power
  std::optional<std::int64_t> purchase;  ///< millionths: of all units
  std::optional<std::int64_t> purchase_at_worst;  ///< of `units_at_worst`
  /// Millionths: the run and the purchase, as far as they have a price; absent without any.
  std::optional<std::int64_t> cost_with_purchase;
};

/// A sample on its way to someone who trains elsewhere: the engine plays that copy, alone.
struct Sending {
  Time time;
  std::optional<Energy> energy;  ///< of the platform; absent without any power
  /// Of training on the sample here that take as much energy; absent where either is not known.
  std::optional<double> epochs_at_par;
};

enum class Verdict : std::uint8_t {
  feasible,
  at_risk,         ///< it carries the targets, but not where it is as slow as the error band allows
  misses_targets,  ///< it runs, but
  does_not_fit,    ///< at no batch that was tried
  does_not_apply   ///< the policy refuses the workload or the platform
};
[[nodiscard]] const char* to_text(Verdict);

/// A division of the training that was tried, at its own best batch.
struct TriedSplit {
  Split::Axes axes;
  Verdict verdict = Verdict::feasible;
  std::string why;                     ///< it does not run
  std::optional<UnitFigures> figures;  ///< where it does
};

struct Configuration {
  std::size_t candidate = 0;  ///< of the plan
  std::string policy, parameters;
  /// Where the workload has `parallel`: the best division, of all that were tried.
  std::optional<Split::Axes> axes;
  std::vector<TriedSplit> splits;
  Verdict verdict = Verdict::feasible;
  std::vector<std::string> reasons;  ///< one for each target missed; or why it does not run
  std::optional<std::int64_t> largest_batch;
  bool is_limited_by_plan = false;   ///< larger batches than the plan allows may hold
  bool is_search_cut_short = false;  ///< not monotone, so that one not tried may be the largest
  std::vector<std::int64_t> holes;   ///< batches tried that do not hold below the largest that does
  std::optional<UnitFigures> figures;  ///< at the fastest batch that meets the most targets
  std::optional<Deployment> deployment;
  std::optional<Sending> sending;  ///< where the workload has `send`
  bool is_on_front = false;
};

/// What holds a configuration back.
enum class Part : std::uint8_t {
  compute,
  memory,            ///< its capacity, where operators run
  memory_bandwidth,  ///< where operators run
  link,
  storage,
  several
};
[[nodiscard]] const char* to_text(Part);

/// A gain or loss that counts as one.
inline constexpr double kNoticeableGain = 0.01;

/// A change of the platform, and what the best of the policies then does.
struct Sensitivity {
  std::string change;  ///< "+12 GiB of hbm"
  std::string policy;  ///< empty where none runs
  Part part = Part::several;
  std::optional<UnitFigures> figures;  ///< absent where it runs at no batch
  std::optional<std::int64_t> largest_batch;
  std::optional<double> gain;  ///< of throughput; absent where one of the two does not run
};

/// What would move the best configuration of a candidate: the feasible one, else the running one,
/// of greatest throughput; else its first.
struct Insight {
  std::size_t configuration = 0;  ///< of the answer
  std::vector<Sensitivity> sensitivities;
  std::optional<Part> bottleneck;  ///< of the greatest gain; absent where none is 1 % or more
};

/// Throughput is that of one unit: units are for the targets, so that a slower policy must not win
/// because it needs more of them.
enum class Axis : std::uint8_t { throughput, cost, energy, headroom };
[[nodiscard]] const char* to_text(Axis);

struct CapacityAnswer {
  std::size_t workload = 0;  ///< of the plan
  std::string title;         ///< of the workload: "resnet50"
  std::vector<Configuration> configurations;
  std::vector<Axis> axes;  ///< of the front: those that all feasible configurations have
  std::vector<Insight> insights;
  Quality worst_quality = Quality::measured;
};

struct CapacityReport {
  CapacityPlan plan;
  std::vector<CandidateError> errors;  ///< by candidate
  std::vector<CapacityAnswer> answers;
};

/// What is being measured: the configurations, then what would move them. Called with how many
/// searches are done of how many, 0 included.
enum class CapacityStage : std::uint8_t { configurations, changes };
using CapacityProgress =
    std::function<void(CapacityStage stage, std::size_t done, std::size_t total)>;

/// What the plan sets on a platform is the plan's word, which no source supports: `estimate`.
[[nodiscard]] Quality worst_quality(const CapacityCandidate& candidate, const Platform& platform);

/// `jobs`: threads, 0 for as many as the machine has. A batch whose planning takes more than
/// `limit_work` steps of work is one that the policy refuses.
[[nodiscard]] CapacityReport plan_capacity(
    CapacityPlan plan, unsigned jobs,
    const CapacityProgress& progress = [](CapacityStage, std::size_t, std::size_t) {},
    std::int64_t limit_work = WorkMeter::kNoLimit);

}  // namespace plimsoll
