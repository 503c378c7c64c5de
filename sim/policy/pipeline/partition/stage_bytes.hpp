/// What each stage of a chain asks of a memory, for planners that look at sums over runs of stages.
#pragma once

#include "policy/interface/policy.hpp"

#include <vector>

namespace plimsoll {

struct StageBytes {
  Bytes resident;  ///< parameters, their gradients, optimizer state
  Bytes stays;     ///< what is made and stays: for every microbatch of a plan
  /// Of the step: for every microbatch of a plan from the start, or those that are loaded.
  std::vector<Bytes> inputs;
  Bytes saved;     ///< from the forward until the backward, for every microbatch in flight
  Bytes received;  ///< a_{i-1} and what is carried, from another memory: until the backward
  Bytes received_gradient;  ///< delta_i and other gradients, likewise
  Bytes unsaved_output;     ///< a_i where no backward reads it: until it is sent
  /// The most that is there beside all of those while one of its operators runs: workspace,
  /// gradients and values on their way.
  Bytes passing;
};

/// By stage. What two stages share counts in both. O(operators + reads).
[[nodiscard]] std::vector<StageBytes> stage_bytes(const Problem& problem);

/// All inputs of a stage, of one microbatch.
[[nodiscard]] Bytes input_bytes(const StageBytes& stage);

}  // namespace plimsoll
