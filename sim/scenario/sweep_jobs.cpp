#include "scenario/sweep_jobs.hpp"

#include "scenario/parallel.hpp"

namespace plimsoll {

void run_sweep(const Sweep& sweep, const SweepShard& shard, unsigned jobs, SweepResults& results,
               const SweepProgress& progress) {
  const SweepRuns runs(sweep);
  const std::size_t before = results.done();
  in_order<SweepRow>(
      shard.size(sweep.points()) - before, {.jobs = jobs},
      [&](std::size_t i) { return runs.run(shard.point(before + i)); },
      [&](std::size_t i, const SweepRow& row) {
        results.add(shard.point(before + i), row);
        progress(results.done());
      });
  results.finish();
}

}  // namespace plimsoll
