/// A training over days: its steps, the rests between them, checkpoints and power failures.
///
/// A step takes its makespan and its energy as measured; where the scenario says how many there are
/// in a day, the board rests in between. At rest each processor draws its `sleep` power, else its
/// idle power, and all else is idle. Every n steps a checkpoint is written, during which nothing
/// else runs: the engine plays that copy (checkpoint_copy.hpp). What power failures cost on average
/// is worked out in power_failures.hpp. The best n is the one of least energy a step; where the
/// platform states no energy, of least time.
///
/// A whole training has steps / n such segments, and one of the steps that are left.
///
/// Numbers are means over failures, in SI units: they may lie far outside the range of Time.
#pragma once

#include "execution/metrics.hpp"
#include "plan/core/plan.hpp"
#include "scenario/document/training_options.hpp"

#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

/// On one charge.
struct ChargeMetrics {
  double days = 0, steps = 0, samples = 0;
  std::optional<double> charges;  ///< that the whole training takes
};

struct FailureMetrics {
  double per_day = 0;
  double repeated = 0;           ///< work done again, as a share of the work
  std::optional<double> in_all;  ///< in the whole training
};

struct CheckpointMetrics {
  std::string to;
  Bytes bytes;
  std::int64_t every = 0;  ///< steps
  Time write, read;
  std::optional<Energy> write_energy, read_energy;
  std::optional<double> young_s, daly_s;  ///< of the times between them, where power fails
  double time_share = 0;                  ///< of what a step takes, while nothing fails
  std::optional<double> energy_share;
};

struct StorageMetrics {
  std::string name;
  double written_per_step = 0;       ///< bytes
  std::optional<double> written;     ///< by the whole training
  std::optional<double> wear;        ///< by the whole training, share of the endurance
  std::optional<double> lasts_days;  ///< until its endurance is used up
};

struct WholeTraining {
  std::optional<std::int64_t> steps;
  double steps_per_day = 0;
  double step_s = 0;  ///< with rests, checkpoints and failures
  std::optional<double> step_j;
  std::optional<Power> rest;             ///< drawn between steps
  std::optional<double> days, energy_j;  ///< of the whole training
  std::optional<ChargeMetrics> charge;
  std::optional<FailureMetrics> failures;
  std::optional<CheckpointMetrics> checkpoints;
  std::vector<StorageMetrics> storages;  ///< those that it writes to
};

/// Precondition: `metrics` are those of a run of `plan` that ended well. Throws InputError where
/// checkpoints have no room, where more than one processor would write them, and where failures are
/// so frequent that nothing ends. Adds to `notes` what cannot be as the options say.
[[nodiscard]] WholeTraining whole_training(const TrainingOptions& options, const Metrics& metrics,
                                           const Workload& workload, const Plan& plan,
                                           const Platform& platform,
                                           std::vector<std::string>& notes);

}  // namespace plimsoll
