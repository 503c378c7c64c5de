/// What a run reports: the measurements of execution.hpp, related to the platform and the workload.
#pragma once

#include "execution/energy_phases.hpp"
#include "execution/execution.hpp"
#include "execution/step_sums.hpp"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll {

struct MemoryMetrics {
  std::string name;
  std::optional<Bytes> capacity;  ///< absent where unlimited
  std::optional<Bytes> usable;    ///< of it, by plans; absent likewise
  Bytes peak_requested, peak_allocated;
  Bytes peak_held;           ///< by the allocator
  Bytes peak_reserved;       ///< of the device: held, and what the platform reserves
  double fragmentation = 0;  ///< share of the held bytes that no block uses, at the peaks
  Time peak_time;
  std::array<Bytes, kTensorClasses> at_peak{};
  Bytes bytes_written;
  std::optional<double> wear;  ///< share of the endurance used by one iteration
};

struct LinkMetrics {
  std::string name;
  std::array<Bytes, 2> bytes;                 ///< from between[0] to between[1], and back
  std::optional<std::array<double, 2>> busy;  ///< shares of the makespan; absent without one
  /// The share in which either direction is at work, of a half-duplex link: both take turns on it.
  std::optional<double> busy_of_both;
};

/// How much of the makespan the busier direction is at work, or a half-duplex link as a whole; 0
/// without a makespan.
[[nodiscard]] double busy_share(const LinkMetrics& link);

struct ProcessorMetrics {
  std::string name;
  Time busy, span;
  /// Of `busy`, for what lives in memories that it reaches beside its own; absent where there are none.
  std::optional<Time> reach;
  std::array<Time, kStallCauses> stall{};
  std::optional<double> bubble;     ///< 1 - busy / (makespan x streams); absent without a makespan
  std::int64_t recomputed_ops = 0;  ///< forward executions - distinct forwards
  Flops recomputed_flops;
  Flops recomputed_products;  ///< of these, those of operators that multiply
};

struct EnergyMetrics {
  Energy total, per_sample;
  Power average;
  std::optional<Power> peak;  ///< unknown where work is charged per action
  std::vector<std::pair<std::string, Energy>> components;  ///< they add up to the total
  PhaseEnergies phases{};                                  ///< and so do these
  std::optional<std::int64_t> steps_per_battery, samples_per_battery;
};

/// What ranks that train together move between them, by what that is: `gradients`, `parameters`,
/// `activations`. Of the rank that waits for it longest.
struct CollectiveMetrics {
  std::string name;
  Bytes bytes;   ///< that leave the rank
  Time busy;     ///< with some of it on the way
  Time exposed;  ///< of that, while the rank computes nothing
};

struct Metrics {
  RunStatus status = RunStatus::ok;
  std::optional<Time> makespan, period;  ///< absent unless the run ended well
  std::optional<double> throughput;      ///< samples per second
  std::vector<MemoryMetrics> memories;   ///< in the platform's order, switches left out
  std::vector<LinkMetrics> links;
  std::vector<ProcessorMetrics> processors;
  std::optional<EnergyMetrics> energy;
  std::vector<CollectiveMetrics> collectives;  ///< measure_ranks(): by name
  std::optional<double> tokens_per_s;
  /// Shares of the peak rate of all processors of a mesh: of the model's FLOPs, for each multiply-add
  /// of its forward 2, and 2 for each gradient that it takes in the backward: 6 where all weights are
  /// trained; and of those with forwards that are run again.
  std::optional<double> mfu, hfu;
};

/// Throughput is that of `iterations` in a row: N batches in makespan + (N - 1) periods; of a
/// periodic plan, where a microbatch is a period, N - 1 for each microbatch. O(platform): single steps of
/// the program are not looked at.
[[nodiscard]] Metrics measure(const Program& program, const ExecutionSums& execution,
                              const StepSums& sums, std::int64_t iterations);

}  // namespace plimsoll
