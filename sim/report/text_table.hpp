/// Tables for people: columns as wide as what they hold, a light rule below the header.
///
///   policy       hbm of 16 GiB          step time
///   ───────────  ─────────────────────  ─────────
///   none         ████▌ 9.2 GiB    57 %     413 ms
///   offload/all  ██    3.9 GiB    24 %     822 ms
#pragma once

#include "report/style.hpp"

#include <string>
#include <vector>

namespace plimsoll {

struct Column {
  enum class Align : std::uint8_t { left, right };
  std::string header;
  Align align = Align::left;
  /// Columns of lower importance are left out first where the table is too wide; 0 is never.
  int dispensable = 0;
};

struct Cell {
  std::string text;
  Paint paint = Paint::none;
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Precondition: one cell a column.
  void add(std::vector<Cell> row);

  [[nodiscard]] bool is_empty() const { return rows_.empty(); }

  /// Lines indented by `indent`, each ended by a newline, at most kReportWidth wide: first the most
  /// dispensable columns are left out, then the last column is wrapped. O(cells).
  [[nodiscard]] std::string text(const Style& style, std::size_t indent = 2) const;

 private:
  [[nodiscard]] std::vector<std::size_t> widths() const;
  [[nodiscard]] std::vector<std::size_t> shown_columns(const std::vector<std::size_t>& widths,
                                                       std::size_t room) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace plimsoll
