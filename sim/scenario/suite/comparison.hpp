/// Compares the results of a run with its record, and carries an agreed change into the record.
#pragma once

#include "scenario/suite/baseline.hpp"

#include <string>
#include <vector>

namespace plimsoll {

/// Something that a check has to say about a run.
struct Finding {
  enum class Kind : std::uint8_t {
    worse,          ///< than recorded, beyond the tolerance
    better,         ///< than recorded, beyond the tolerance
    changed,        ///< neither: saved bytes, or one failure instead of another
    missing,        ///< not recorded
    stale,          ///< recorded, and there no longer
    out_of_bounds,  ///< `expect` does not hold
  };
  Kind kind = Kind::worse;
  Location where;     ///< of the recorded value, of `expect`, or of the scenario in the suite
  std::string words;  ///< "makespan +3.1 % (412 ms, was 399.6 ms)"
};

/// The record of a run, without places.
[[nodiscard]] RecordedRun record_of(const RunResult& result, const Platform& platform);

struct Comparison {
  std::vector<Finding> findings;  ///< in the order of the record
  std::size_t held = 0;           ///< values within the tolerance, the status among them
  bool is_another_plan = false;
};

/// Where the status is another, that is all there is to say. O(values^2).
[[nodiscard]] Comparison compare(const RecordedRun& was, const RecordedRun& is,
                                 const Tolerances& tolerances);

/// `is`, but with the recorded values that still hold: within the tolerance a record does not move,
/// so that many small steps do not go unseen.
[[nodiscard]] RecordedRun carried_over(const RecordedRun& was, RecordedRun is,
                                       const Tolerances& tolerances);

}  // namespace plimsoll
