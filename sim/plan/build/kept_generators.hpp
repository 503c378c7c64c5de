/// The states of random generators that a plan keeps, so that a run of an operator draws what its
/// first one drew.
///
/// A state (Operator::generator) is an output of the first run, and the later runs of the operator
/// for the same microbatch that need it (plan/core/generator_runs.hpp) read it: it is there from the
/// start of the first run to the end of the last that does. What runs once keeps none.
#pragma once

#include "plan/build/derived_releases.hpp"
#include "plan/core/plan.hpp"

#include <optional>
#include <vector>

namespace plimsoll {

/// A state that is kept whether or not its operator runs again: until the end of a step, at least.
struct GeneratorHold {
  StepId first{};  ///< the operator's first run, alone in its step
  StepId until{};
  std::optional<Bytes> offset;  ///< Buffer::offset
};

struct KeptGenerators {
  bool of_each = false;  ///< no run goes on where another has ended
  std::vector<GeneratorHold> holds;
};

/// Adds the states as buffers to a plan whose steps are complete, to what first runs write and later
/// ones read. Throws std::logic_error where a later run is in another memory. O(steps + reads).
void keep_generators(Plan& plan, const Workload& workload, const Platform& platform,
                     const KeptGenerators& kept, BufferFacts& facts);

}  // namespace plimsoll
