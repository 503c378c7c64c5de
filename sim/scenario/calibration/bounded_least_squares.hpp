/// Least squares with bounds: the x that minimises |A x - b|^2 with no x_j below its bound.
///
/// Non-negative least squares of x - bound by the active-set method of Lawson and Hanson (Solving
/// Least Squares Problems, 1974, chapter 23), on the normal equations: for a few unknowns and rows
/// that are scaled to about one. Floating point, the one place of this floor that computes with it:
/// callers round what comes out far above its error, so that it is the same on every machine.
#pragma once

#include <cstddef>
#include <vector>

namespace plimsoll {

struct LeastSquares {
  struct Row {
    std::vector<double> of;  ///< a number an unknown
    double equals = 0;
  };
  std::vector<Row> rows;
  std::vector<double> at_least;  ///< by unknown
};

/// By unknown. Precondition: the columns of the rows are linearly independent, and the bounds
/// finite. O(unknowns^2 x rows + unknowns^5), and at most 3 unknowns^2 steps, after which the best
/// so far is given; none of it depends on a clock.
[[nodiscard]] std::vector<double> solve(const LeastSquares& problem);

}  // namespace plimsoll
