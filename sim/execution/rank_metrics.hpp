/// What is measured of ranks that train together, beside what is measured of every run.
#pragma once

#include "execution/metrics.hpp"

namespace plimsoll {

/// By name, then by memory, of the ranks that are played. O(steps log steps).
[[nodiscard]] std::vector<CollectiveSum> collective_sums(const Program& program,
                                                         const Execution& execution);

/// Adds to `metrics`, which measure() made of the same sums: the collectives, tokens a
/// second, and what of the processors' peak rates the model uses (A. Chowdhery et al., "PaLM:
/// Scaling language modeling with pathways", JMLR 24, 2023, appendix B) or the hardware, where the
/// workload knows its multiply-adds and every processor its rate. `processors`: of the whole mesh.
void measure_ranks(const Program& program, const StepSums& sums, std::int64_t processors,
                   Metrics& metrics);

}  // namespace plimsoll
