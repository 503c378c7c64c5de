/// An integer program of any kind, and its solution by CBC, on one thread, with settings that depend on
/// nothing.
///
/// Costs are whole numbers of a unit of the caller's. The solver sees them with their sum at 10^5, since
/// its tolerances are absolute: programs in joules end at costs that are not the least.
#pragma once

#include "base/work.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace plimsoll {

struct WholeProgram {
  struct Column {
    double most = 1;  ///< the least is 0
    bool is_whole = true;
    std::int64_t cost = 0;
  };
  /// The sum of `terms` is at least or at most so much; or equal.
  struct Row {
    std::vector<std::pair<int, std::int64_t>> terms;
    std::optional<std::int64_t> least, most;
    std::int64_t unit = 1;  ///< what counts as one in this row
  };
  std::vector<Column> columns;
  std::vector<Row> rows;

  /// The number of a new column.
  int add(const Column& column) {
    columns.push_back(column);
    return static_cast<int>(columns.size()) - 1;
  }
};

struct WholeSolution {
  bool is_impossible = false;  ///< no solution, proven as far as floats prove
  bool is_closed = false;      ///< the search tree was searched to its end
  std::int64_t bound = 0;      ///< on the cost of all solutions, to a millionth
  std::optional<std::vector<double>> columns = {};  ///< of the best solution found
};

/// Whether CBC simplifies the program first. Of programs in which a few columns have both a least and a
/// most sum, that has been seen to lose that columns are whole.
enum class Presolve : std::uint8_t { yes, no };

/// For at most `nodes` of the search tree.
[[nodiscard]] WholeSolution solve(const WholeProgram& program, int nodes, const Work& work,
                                  Presolve presolve = Presolve::yes);

}  // namespace plimsoll
