/// Runs over time as JSON for the page of HTML reports. Internal to this floor.
///
/// {"names": [...], "kinds": [...], "causes": [...], "classes": [...], "runs": [{"label", "status",
/// "microbatches", "makespan", "notes": [...], "failure", "words", "memories", "tracks", "stays",
/// "power"}]}
///
/// Times are picoseconds, bytes bytes, powers watts, energies joules. `names` holds operators and
/// tensors, `kinds` and `causes` what slices do and stalls wait for, `classes` those of tensors;
/// elsewhere stand their numbers.
/// Columns marked with a * are written as differences, each to the one before.
///
///   memories  [{"id", "name", "usable", "limited", "budget", "reserved", "peak": {"bytes",
///              "time"}, "thinned", "time"*: [...], "alive": {CLASS*: [...]}}]; usable is absent
///              where unlimited, limited says that the plan keeps to less than all of it, budget
///              is what the policy was given, where that is less
///   memories[].addresses, where a memory has them
///             {"segments": [begin, ...], "ranges": {"address", "size", "begin"*, "length"},
///              "blocks": {"name", "class", "microbatch", "requested", "address", "size", "begin"*,
///              "length"}, "left_out", "largest_left_out", "ranges_left_out"} as in
///              report/series/address_map.hpp, by begin, a length null where it outlives the run;
///              "oom": {"step", "asked", "largest"} where a request there ended the run
///   tracks    [{"type": "stream" | "link", "label", "start"*, "length", "kind", "microbatch" (-1
///              where all share it), "name", "stalls": {"cause", "start"*, "length"}}], and where
///              it tells something: "rows" and "row" (several copies at a time), "chunk" (a device
///              with several pieces of the network), "count" (slices that stand for several),
///              "pairs" ([slice, kind, microbatch, kind, microbatch])
///   stays     {"memory", "name", "bytes", "microbatch", "begin"*, "length" (null: outlives the
///              run), "thinned"}, by begin
///   power     {"time"*, "drawn", "used"}; absent where the platform has no energy
///
/// A run of more than kMostMoments moments or slices is thinned (report/series/thinning.hpp): peaks
/// stay exact. Three memories and more share twice as many. Of more stays than that the largest are
/// listed; of blocks those that take the most bytes for the longest time, kMostBlocks in all memories
/// of a run together.
#pragma once

#include "report/html/html_data.hpp"

#include <string>

namespace plimsoll {

inline constexpr std::size_t kMostMoments = 100'000;
inline constexpr std::size_t kMostBlocks = 10'000;

/// O(steps log steps) a run.
[[nodiscard]] std::string html_runs_json(const HtmlRuns& section);

}  // namespace plimsoll
