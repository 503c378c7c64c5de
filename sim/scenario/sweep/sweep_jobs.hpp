/// Runs a whole sweep: its points on several threads, its rows into a file.
#pragma once

#include "scenario/sweep/sweep_results.hpp"

#include <cstddef>
#include <functional>

namespace plimsoll {

/// Told after every run, with how many of the shard are done: on the calling thread.
using SweepProgress = std::function<void(std::size_t)>;

/// Runs those points of the shard that `results` did not have when it was opened, on `jobs` threads
/// (0: as many as the machine runs at once), and adds each as it ends: a slow one holds up no
/// others. The planning of each may take `limit_work` steps of work. Memory does not grow with the number of points. Throws InputError where the file cannot
/// be written; what is there by then stays.
void run_sweep(const Sweep& sweep, const SweepShard& shard, unsigned jobs, SweepResults& results,
               const SweepProgress& progress, std::int64_t limit_work = WorkMeter::kNoLimit);

}  // namespace plimsoll
