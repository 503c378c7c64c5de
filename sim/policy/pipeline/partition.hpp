/// Cuts a chain into the stages of a pipeline.
#pragma once

#include "policy/pipeline/pipeline_parameters.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

/// Slot k holds chain stages [cuts[k], cuts[k+1]).
struct Partition {
  std::vector<std::size_t> cuts;
  [[nodiscard]] std::size_t slots() const { return cuts.size() - 1; }
};

/// The contiguous partition of `times` into `slots` non-empty runs with the least greatest sum;
/// among those the one that fills the first slots most. Exact: a search over the greatest sum, O(n
/// log(sum)). Precondition: 1 <= slots <= times.size().
[[nodiscard]] Partition balanced_partition(const std::vector<Time>& times, std::size_t slots);

/// The partition that the parameters ask for. Throws InputError.
[[nodiscard]] Partition partition_for(const Problem& problem, const PipelineParameters& parameters,
                                      const std::vector<ProcessorId>& devices);

}  // namespace plimsoll
