#include "scenario/sweep/sweep_jobs.hpp"

#include "scenario/run/parallel.hpp"
#include "scenario/sweep/sweep_fastest.hpp"

namespace plimsoll {

void run_sweep(const Sweep& sweep, const SweepShard& shard, unsigned jobs, SweepResults& results,
               const SweepProgress& progress, std::int64_t limit_work) {
  if (sweep.fastest) {
    run_fastest(sweep, jobs, results, progress, limit_work);
    results.finish();
    return;
  }
  const SweepRuns runs(sweep, limit_work);
  as_they_end<SweepRow>(
      shard.size(sweep.points()) - results.done(), {.jobs = jobs},
      [&](std::size_t i) { return runs.run(results.missing_point(i)); },
      [&](std::size_t i, const SweepRow& row) {
        results.add(results.missing_point(i), row);
        progress(results.done());
      });
  results.finish();
}

}  // namespace plimsoll
