/// `fastest` of a sweep: the N points of highest throughput, proven without a run of every point.
///
/// Of every point it is told first what no plan of it exceeds (scenario/run/run_bound.hpp): the throughput
/// from above, the memory from below. Points that cannot be split, or that do not fit, are done then. The
/// others are run in the order of those throughputs, the highest first, until N have reached more than the
/// next one can. So what is run is what may be among the N: the fewest that prove it with these bounds,
/// the same for any number of threads.
#pragma once

#include "scenario/sweep/sweep_jobs.hpp"

namespace plimsoll {

/// Runs such a sweep, as run_sweep() does. Precondition: Sweep::fastest. Memory: 16 B a point.
void run_fastest(const Sweep& sweep, unsigned jobs, SweepResults& results,
                 const SweepProgress& progress, std::int64_t limit_work);

}  // namespace plimsoll
