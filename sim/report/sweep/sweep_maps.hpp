/// Metrics of a sweep over its axes, as heat maps and, over numbers, as points. Internal to this
/// floor.
#pragma once

#include "report/html/html_data.hpp"
#include "report/sweep/swept_axis.hpp"

#include <string>
#include <vector>

namespace plimsoll {

/// A number of a run.
struct SweptMetric {
  std::string name;  ///< "throughput"
  std::string sql;   ///< over `runs` and `points`
  ShownUnit unit;
  enum class Best : std::uint8_t { least, most, unknown } best = Best::least;
  std::string holes_sql;  ///< the same: of a search; else empty
  std::string bound_sql =
      {};  ///< the same: what the policy has proven that no plan passes; or empty
};

/// In SQL over `runs`: the peak of the memory of which the largest share is taken; where none has a
/// capacity, the largest.
[[nodiscard]] const std::string& peak_of_fullest_memory_sql();

/// Throughput, overhead, the peak of the fullest memory, energy per sample, what a search found:
/// those that some run that ended well has. O(runs).
[[nodiscard]] std::vector<SweptMetric> read_swept_metrics(const Database& results);

/// Of further axes at most this many combinations have maps.
inline constexpr std::int64_t kMostMaps = 12;

/// Which axes a map has, and what of the sweep is on no map.
struct SweepMaps {
  std::vector<HtmlHeatmap> maps;      ///< by metric, then by the values of the further axes
  std::vector<std::string> left_out;  ///< sentences; empty where everything is shown
};

/// A map a metric and combination of values of further axes: to the right the axis with most
/// values, down the one with most of the others, of equally long ones the policies. A point whose
/// run has no result has its status for a cell. O(points), in memory of kMostMaps x
/// kMostShownValues^2 cells a metric.
[[nodiscard]] SweepMaps sweep_maps(const Database& results, const SweptAxes& axes,
                                   const std::vector<SweptMetric>& metrics);

}  // namespace plimsoll
