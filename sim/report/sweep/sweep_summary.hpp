/// What came out of a sweep in a few numbers: how the runs ended, and the best point by each
/// metric. Internal to this floor.
#pragma once

#include "scenario/sweep/sweep_results.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace plimsoll {

inline constexpr std::size_t kMostHoles = 4;
inline constexpr std::size_t kMostFound = 24;

struct SweepSummary {
  struct Ending {
    std::string status;
    std::int64_t runs = 0;
    std::int64_t point = 0;  ///< the first that ended so
    std::string message;     ///< of that point
  };
  struct Best {
    std::string metric, value;  ///< "peak of hbm", "7.8 GiB"
    std::int64_t point = 0;     ///< of equally good ones the first
    std::string policy;
    std::vector<std::string> values;  ///< of `paths`
  };
  /// A point of a sweep for the fastest.
  struct Fastest {
    std::int64_t point = 0;
    std::string policy;                ///< with its parameters, where policies differ
    std::vector<std::string> metrics;  ///< of `fastest_metrics`
    std::vector<std::string> values;   ///< of `paths`
  };
  /// What a search found at a point.
  struct Found {
    std::int64_t point = 0;
    std::string policy, value;        ///< empty where nothing holds
    std::vector<std::string> values;  ///< of `paths`; that of what is searched is `value`
  };
  /// A search whose answer is not all of it: candidates before it do not hold.
  struct Holes {
    std::int64_t point = 0;
    std::string policy, found;  ///< "none", "184"
    std::string holes;          ///< "112 to 120, 136"
    std::int64_t untried = 0;   ///< candidates, of a search that was cut short: one may be better
  };
  SweepIdentity identity;
  std::vector<std::string> paths;  ///< all variables but the policy
  std::vector<Ending> endings;     ///< `ok` first, then the most frequent
  std::vector<Best> bests;  ///< of metrics that any run has; none where only the fastest are run
  std::vector<std::string> fastest_metrics;
  std::vector<Fastest> fastest;  ///< the highest throughput first; none of other sweeps
  std::string searched;          ///< a path; empty without a search
  std::vector<Found> found;      ///< of the first kMostFound points with a search
  std::size_t searches = 0;      ///< how many points have one
  std::vector<Holes> holes;      ///< of the first kMostHoles points that have any
  std::size_t with_holes = 0;    ///< how many points have
};

/// Of a file of results, finished or not. Throws InputError for a file that is none. O(runs log
/// runs).
[[nodiscard]] SweepSummary summarize_sweep(const Database& results);

/// As many of "1 to 3, 5" as are read at a glance.
[[nodiscard]] std::string first_of_holes(const std::string& holes);

/// Whether a search stopped before it had tried all that may be its answer.
[[nodiscard]] bool is_any_cut_short(const SweepSummary& summary);

/// "24 runs", "3 runs of shard 0/2, 9 to go".
[[nodiscard]] std::string progress_of(const SweepIdentity& identity);

}  // namespace plimsoll
