/// What a scenario says of where state lives: `state: {optimizer: {memory: dram, on: cpu}, ...}`.
///
/// A name stands for the memory or the processor of that name, or, where a cluster has copies of it
/// (`dram0`, `dram1`), for the copy that is nearest to a rank's processor.
#pragma once

#include "base/format.hpp"
#include "plan/build/spread_plan.hpp"
#include "platform/core/topology.hpp"
#include "workload/sharding/away_step.hpp"

#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

struct StateOptions {
  struct Optimizer {
    Location where;
    std::optional<Located<std::string>> memory;  ///< default: of the processor that updates
    std::optional<Located<std::string>> on;      ///< default: the processor that computes
  };
  Location where;
  std::optional<Optimizer> optimizer;
  std::optional<Located<std::string>> parameters;  ///< default: with the processor that computes
  std::optional<Located<std::string>> gradients;   ///< default: where the updates run
};

[[nodiscard]] Format<StateOptions> state_format();

/// Adds an error for each name that the platform has not, and for memories that hold nothing.
void check_state(const StateOptions& state, const Platform& platform, Diagnostics& diagnostics);

/// The processors that `on` may be; none where nothing is said.
[[nodiscard]] std::vector<ProcessorId> updaters_of(const StateOptions& state,
                                                   const Platform& platform);

/// Of a rank whose step runs on `device`. Throws InputError where no links lead there and back, and where
/// the processor that updates states no rate.
[[nodiscard]] RankHomes homes_of(const StateOptions& state, const Platform& platform,
                                 const Topology& topology, ProcessorId device);

/// What that makes of a step.
[[nodiscard]] AwayState away_of(const RankHomes& homes, const Platform& platform,
                                ProcessorId device);

}  // namespace plimsoll
