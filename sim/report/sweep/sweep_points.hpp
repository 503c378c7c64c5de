/// Runs of a sweep as points in two quantities. Internal to this floor.
#pragma once

#include "report/html/html_data.hpp"
#include "report/sweep/sweep_maps.hpp"

#include <optional>
#include <vector>

namespace plimsoll {

/// Of more points as many are drawn at most, evenly spaced in the order of what is drawn upward.
inline constexpr std::int64_t kMostPoints = 2000;

/// A front of more points is drawn so far.
inline constexpr std::int64_t kMostOnFront = 200;

/// Throughput against the peak of the fullest memory; the Pareto front is exact: for a throughput
/// the least peak, of those that more throughput needs the least. Nothing where fewer than two runs
/// ended well. O(runs log runs).
[[nodiscard]] std::optional<HtmlScatter> sweep_front(const Database& results,
                                                     const SweptAxes& axes);

/// Each metric over the only axis, beside the policies, where that is of numbers; else nothing.
/// O(runs log runs) a metric.
[[nodiscard]] std::vector<HtmlScatter> sweep_curves(const Database& results, const SweptAxes& axes,
                                                    const std::vector<SweptMetric>& metrics);

}  // namespace plimsoll
