/// The tables of a sweep's results, and how rows are written to them. Internal to this floor.
#pragma once

#include "scenario/sweep/database.hpp"
#include "scenario/sweep/sweep_results.hpp"

#include <string>
#include <vector>

namespace plimsoll {

/// The number of the layout of the tables, `PRAGMA user_version`.
inline constexpr int kSweepLayout = 3;

/// A column of the table `points`.
struct PointColumn {
  std::size_t variable = 0;
  std::string name;        ///< the path; with its unit, "links.pcie.bandwidth [B/s]", for a number
  bool is_number = false;  ///< in SI units; else as written
};

/// A quantity has a column as it is written, and one with its number. What a variable measures is
/// judged by its first value that is not unlimited.
[[nodiscard]] std::vector<PointColumn> point_columns(const Sweep& sweep);

/// Statements that make all tables, and the view `results` of all runs with their points.
[[nodiscard]] std::string make_tables_sql(const std::vector<PointColumn>& columns);

/// The tables that hold rows of runs, in the order in which they are filled.
[[nodiscard]] const std::vector<std::string>& tables_of_runs();

/// Writes rows: one transaction for each.
class SweepRowWriter {
 public:
  SweepRowWriter(Database& database, std::vector<PointColumn> columns);

  void add(std::int64_t point, const SweepRow& row);

 private:
  void add_point(std::int64_t point, const SweepRow& row);
  void add_run(std::int64_t point, const SweepRow& row);
  void add_parts(std::int64_t point, const Metrics& metrics);

  const std::vector<PointColumn> columns_;
  Statement begin_, commit_, point_, run_, memory_, link_, processor_, search_, planning_;
};

}  // namespace plimsoll
