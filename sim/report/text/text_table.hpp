/// Text tables: columns as wide as their content, a light rule below the header.
///
///   policy       hbm of 16 GiB          step time
///   ───────────  ─────────────────────  ─────────
///   none         ████▌ 9.2 GiB    57 %     413 ms
///   offload/all  ██    3.9 GiB    24 %     822 ms
///
/// What does not fit into the width of a report stands in a second block below the first, beside
/// the same names of its rows: nothing is left out, and the width is the same wherever the text
/// goes.
#pragma once

#include "report/text/style.hpp"

#include <string>
#include <vector>

namespace plimsoll {

struct Column {
  enum class Align : std::uint8_t { left, right };
  std::string header;
  Align align = Align::left;
};

struct Cell {
  std::string text;
  Paint paint = Paint::none;
};

class TextTable {
 public:
  /// The first `keys` columns name a row; every block has them. Precondition: at least one.
  explicit TextTable(std::vector<Column> columns, std::size_t keys = 1)
      : columns_(std::move(columns)), keys_(keys) {}

  /// Precondition: one cell a column.
  void add(std::vector<Cell> row);

  [[nodiscard]] bool is_empty() const { return rows_.empty(); }

  /// Lines indented by `indent`, each ended by a newline, at most kReportWidth wide unless the
  /// names of a row and one column are wider. A last column of words is wrapped. O(cells).
  [[nodiscard]] std::string text(const Style& style, std::size_t indent = 2) const;

 private:
  [[nodiscard]] std::vector<std::size_t> widths() const;
  /// The columns of each block.
  [[nodiscard]] std::vector<std::vector<std::size_t>> blocks(const std::vector<std::size_t>& widths,
                                                             std::size_t room) const;
  [[nodiscard]] std::string block_text(const std::vector<std::size_t>& shown,
                                       std::vector<std::size_t> width, const Style& style,
                                       std::size_t indent) const;

  std::vector<Column> columns_;
  std::size_t keys_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace plimsoll
