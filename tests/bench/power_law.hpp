/// The growth of a time with a size, for benchmarks.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

namespace bench {

/// The slope of log(seconds) over log(size) by least squares, of points (size, seconds).
inline double exponent(const std::vector<std::pair<double, double>>& points) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const auto& [size, seconds] : points) {
    const double a = std::log(size), b = std::log(seconds);
    n += 1, x += a, y += b, xx += a * a, xy += a * b;
  }
  return (n * xy - x * y) / (n * xx - x * x);
}

}  // namespace bench
