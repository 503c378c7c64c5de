#include "scenario/calibration/bounded_least_squares.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace plimsoll {
namespace {

using Vector = std::vector<double>;

/// Of a gain that is nothing but rounding, relative to the scale of the equations.
constexpr double kTolerance = 1e-12;

class ActiveSet {
 public:
  explicit ActiveSet(const LeastSquares& problem)
      : unknowns_(problem.at_least.size()),
        normal_(unknowns_, Vector(unknowns_)),
        right_(unknowns_),
        is_free_(unknowns_),
        above_(unknowns_) {
    for (const LeastSquares::Row& row : problem.rows) {
      double rest = row.equals;
      for (std::size_t j = 0; j < unknowns_; ++j) rest -= row.of[j] * problem.at_least[j];
      for (std::size_t j = 0; j < unknowns_; ++j) {
        right_[j] += row.of[j] * rest;
        for (std::size_t k = 0; k < unknowns_; ++k) normal_[j][k] += row.of[j] * row.of[k];
      }
    }
  }

  /// How far each unknown is above its bound.
  Vector run() {
    for (std::size_t left = 3 * unknowns_ * unknowns_; left > 0; --left) {
      const std::optional<std::size_t> next = most_gain();
      if (!next) break;
      is_free_[*next] = true;
      while (left > 1 && !move_to_optimum()) --left;
    }
    return above_;
  }

 private:
  /// The bound unknown that is best let go, if any is.
  [[nodiscard]] std::optional<std::size_t> most_gain() const {
    std::optional<std::size_t> best;
    double most = 0;
    for (std::size_t j = 0; j < unknowns_; ++j) {
      if (is_free_[j] || normal_[j][j] <= 0) continue;
      double gain = right_[j];
      for (std::size_t k = 0; k < unknowns_; ++k) gain -= normal_[j][k] * above_[k];
      gain /= normal_[j][j];
      if (gain <= std::max(most, kTolerance)) continue;
      most = gain;
      best = j;
    }
    return best;
  }

  /// Goes as far as the bounds let it towards the optimum over the free unknowns; whether it got
  /// there. Where it did not, another unknown is at its bound.
  bool move_to_optimum() {
    const Vector wanted = optimum();
    double share = 1;
    std::optional<std::size_t> stops;
    for (std::size_t j = 0; j < unknowns_; ++j) {
      if (!is_free_[j] || wanted[j] > 0) continue;
      const double until = above_[j] > 0 ? above_[j] / (above_[j] - wanted[j]) : 0;
      if (stops && until >= share) continue;
      share = until;
      stops = j;
    }
    for (std::size_t j = 0; j < unknowns_; ++j)
      if (is_free_[j]) above_[j] += share * (wanted[j] - above_[j]);
    if (!stops) return true;
    is_free_[*stops] = false;
    above_[*stops] = 0;
    return false;
  }

  /// Gaussian elimination over the free unknowns; the matrix is positive definite.
  [[nodiscard]] Vector optimum() const {
    std::vector<std::size_t> free;
    for (std::size_t j = 0; j < unknowns_; ++j)
      if (is_free_[j]) free.push_back(j);
    std::vector<Vector> rows;
    for (const std::size_t j : free) {
      Vector row;
      for (const std::size_t k : free) row.push_back(normal_[j][k]);
      row.push_back(right_[j]);
      rows.push_back(std::move(row));
    }
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::size_t below = i + 1; below < rows.size(); ++below) {
        const double factor = rows[below][i] / rows[i][i];
        for (std::size_t k = i; k <= rows.size(); ++k) rows[below][k] -= factor * rows[i][k];
      }
    Vector wanted(unknowns_);
    for (std::size_t i = rows.size(); i-- > 0;) {
      double rest = rows[i].back();
      for (std::size_t k = i + 1; k < rows.size(); ++k) rest -= rows[i][k] * wanted[free[k]];
      wanted[free[i]] = rest / rows[i][i];
    }
    return wanted;
  }

  std::size_t unknowns_;
  std::vector<Vector> normal_;  ///< A^T A
  Vector right_;                ///< A^T (b - A bound)
  std::vector<bool> is_free_;
  Vector above_;
};

}  // namespace

std::vector<double> solve(const LeastSquares& problem) {
  Vector x = ActiveSet(problem).run();
  for (std::size_t j = 0; j < x.size(); ++j) x[j] += problem.at_least[j];
  return x;
}

}  // namespace plimsoll
