#include "scenario/calibration/bounded_least_squares.hpp"

#include <cmath>
#include <optional>
#include <random>

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

double loss_of(const LeastSquares& problem, const std::vector<double>& x) {
  double sum = 0;
  for (const LeastSquares::Row& row : problem.rows) {
    double error = -row.equals;
    for (std::size_t j = 0; j < x.size(); ++j) error += row.of[j] * x[j];
    sum += error * error;
  }
  return sum;
}

double partial(const LeastSquares& problem, const std::vector<double>& x, std::size_t j) {
  double sum = 0;
  for (const LeastSquares::Row& row : problem.rows) {
    double error = -row.equals;
    for (std::size_t k = 0; k < x.size(); ++k) error += row.of[k] * x[k];
    sum += 2 * error * row.of[j];
  }
  return sum;
}

/// One unknown after the other to its own best, until none moves: slow, and sure to arrive where
/// the loss is strictly convex.
std::vector<double> by_coordinates(const LeastSquares& problem) {
  std::vector<double> x = problem.at_least;
  for (int round = 0; round < 200'000; ++round) {
    double moved = 0;
    for (std::size_t j = 0; j < x.size(); ++j) {
      double curvature = 0;
      for (const LeastSquares::Row& row : problem.rows) curvature += 2 * row.of[j] * row.of[j];
      const double next = std::max(problem.at_least[j], x[j] - partial(problem, x, j) / curvature);
      moved = std::max(moved, std::fabs(next - x[j]));
      x[j] = next;
    }
    if (moved < 1e-13) break;
  }
  return x;
}

}  // namespace

TEST_CASE("least squares with bounds: a line through points, free and held") {
  // x + y = 3 and x + 2 y = 5 meet at (1, 2).
  const std::vector<LeastSquares::Row> rows{{{1, 1}, 3}, {{1, 2}, 5}};
  const auto free = solve({rows, {0, 0}});
  CHECK(free[0] == Approx(1));
  CHECK(free[1] == Approx(2));
  // With x >= 2 it is held there: y of least (y - 1)^2 + (2 y - 3)^2 is (1 + 6) / 5.
  const auto held = solve({rows, {2, 0}});
  CHECK(held[0] == 2);
  CHECK(held[1] == Approx(1.4));
}

TEST_CASE("least squares with bounds: an unknown that no row holds stays at its bound") {
  const auto x = solve({{{{2, 0}, 6}}, {1, 1}});
  CHECK(x[0] == Approx(3));
  CHECK(x[1] == 1);
}

TEST_CASE("least squares with bounds: random problems as a search by coordinates solves them") {
  std::mt19937_64 random(20261121);
  std::uniform_real_distribution<double> number(-1, 2);
  int held = 0;
  for (int i = 0; i < 300; ++i) {
    const std::size_t unknowns = 1 + random() % 6;
    LeastSquares problem;
    for (std::size_t j = 0; j < unknowns; ++j) problem.at_least.push_back(number(random));
    for (std::size_t r = 0; r < unknowns + random() % 8; ++r) {
      LeastSquares::Row row{{}, number(random)};
      for (std::size_t j = 0; j < unknowns; ++j) row.of.push_back(number(random));
      problem.rows.push_back(row);
    }
    for (std::size_t j = 0; j < unknowns; ++j) {  // strictly convex
      LeastSquares::Row pull{std::vector<double>(unknowns), number(random)};
      pull.of[j] = 0.5;
      problem.rows.push_back(pull);
    }
    const auto x = solve(problem);
    CAPTURE(i);
    CHECK(loss_of(problem, x) ==
          Approx(loss_of(problem, by_coordinates(problem))).epsilon(1e-9).margin(1e-12));
    for (std::size_t j = 0; j < unknowns; ++j) {
      CHECK(x[j] >= problem.at_least[j]);
      held += x[j] == problem.at_least[j] ? 1 : 0;
      // At the optimum the loss falls along no unknown: flat where it is free.
      const double slope = partial(problem, x, j);
      if (x[j] > problem.at_least[j])
        CHECK(std::fabs(slope) < 1e-8);
      else
        CHECK(slope > -1e-8);
    }
  }
  CHECK(held > 100);
}
