/// `training` of a scenario: what becomes of its step over days.
///
///   training:
///     steps: 20000
///     steps_per_day: 960
///     power_failures: {mean_time_between: 6 h, restart: 2 s}
///     checkpoints: {to: sd, every: best}
///
/// What follows from it is worked out in scenario/run/whole_training.hpp.
#pragma once

#include "base/format.hpp"
#include "platform/core/platform.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace plimsoll {

/// The power goes at a constant rate, whatever is done; what is in RAM is lost.
struct PowerFailures {
  Location where;
  Time mean_time_between;
  Time restart;  ///< until the program runs again, with its processors at work
};

/// How often parameters and the optimizer's state are written.
struct CheckpointInterval {
  enum class Rule : std::uint8_t {
    best,   ///< of least energy; where none is known, of least time
    young,  ///< J. W. Young, CACM 17(9), 1974
    daly,   ///< J. T. Daly, FGCS 22(3), 2006
    steps
  };
  Rule rule = Rule::best;
  std::int64_t steps = 0;  ///< Rule::steps
};

struct CheckpointOptions {
  Location where;
  Located<std::string> to;  ///< a storage that outlives the power
  CheckpointInterval every;
};

struct TrainingOptions {
  Location where;
  std::optional<std::int64_t> steps;          ///< of the whole training
  std::optional<std::int64_t> steps_per_day;  ///< default: one after the other
  std::optional<PowerFailures> power_failures;
  std::optional<CheckpointOptions> checkpoints;
};

[[nodiscard]] Format<TrainingOptions> training_format();

/// Reports checkpoints whose interval nothing determines, and storages that the platform does not
/// have, with the nearest that it has.
void check_training(const TrainingOptions& training, const Platform& platform,
                    Diagnostics& diagnostics);

}  // namespace plimsoll
