/// Fewer moments than there were, for pictures: peaks stay exact.
#pragma once

#include "report/series/series.hpp"

#include <algorithm>
#include <vector>

namespace plimsoll {

/// Of each of `most / 3` equal parts of the time up to `end` at most the first point, the greatest
/// and the last one, in order; all where there are no more than `most`. `size` gives what is to be
/// the greatest. Precondition: points by time. O(points).
template <class Point>
[[nodiscard]] std::vector<Point> thinned(const std::vector<Point>& points, Time end,
                                         std::size_t most, auto size) {
  if (points.size() <= most) return points;
  const auto parts = static_cast<std::int64_t>(std::max<std::size_t>(most / 3, 1));
  const std::int64_t part = end.count() / parts + 1;
  std::vector<Point> kept;
  for (std::size_t begin = 0; begin < points.size();) {
    std::size_t next = begin, greatest = begin;
    for (; next < points.size() &&
           points[next].time.count() / part == points[begin].time.count() / part;
         ++next)
      if (size(points[next]) > size(points[greatest])) greatest = next;
    kept.push_back(points[begin]);
    if (greatest > begin) kept.push_back(points[greatest]);
    if (next - 1 > greatest) kept.push_back(points[next - 1]);
    begin = next;
  }
  return kept;
}

/// A slice that may stand for several short ones.
struct ThinSlice {
  TrackSlice slice;
  std::size_t count = 1;
};

/// The slices of a track; runs of them, in one row, that together take no longer than `resolution`
/// as one, of the kind of the longest. O(slices).
[[nodiscard]] std::vector<ThinSlice> thinned(const Track& track, Time resolution);

}  // namespace plimsoll
