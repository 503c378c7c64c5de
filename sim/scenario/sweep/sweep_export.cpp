#include "scenario/sweep/sweep_export.hpp"

#include "scenario/sweep/sweep_results.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace plimsoll {

namespace {

/// The rows of one table of parts, walked beside those of the runs.
class PartRows {
 public:
  PartRows(const Database& results, const std::string& table, const std::string& key)
      : names_(all_names(results, table, key)),
        rows_(results, fmt::format("SELECT * FROM {} ORDER BY point, {}", table, key)) {
    next();
    for (const std::string& name : names_)
      for (int c = kFirstNumber; c < rows_.columns(); ++c)
        columns_.push_back(fmt::format("{}.{}.{}", table, name, rows_.column_name(c)));
  }

  [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }

  /// Calls `take(statement, column)` for each column that the point has, `lack()` for the others.
  template <class Take, class Lack>
  void visit(std::int64_t point, Take take, Lack lack) {
    for (const std::string& name : names_) {
      const bool is_there = has_row_ && rows_.integer(0) == point && rows_.text(1) == name;
      for (int c = kFirstNumber; c < rows_.columns(); ++c)
        if (is_there)
          take(rows_, c);
        else
          lack();
      if (is_there) next();
    }
  }

 private:
  static constexpr int kFirstNumber = 2;  // after the point and the name

  static std::vector<std::string> all_names(const Database& results, const std::string& table,
                                            const std::string& key) {
    std::vector<std::string> names;
    Statement statement(results,
                        fmt::format("SELECT DISTINCT {0} FROM {1} ORDER BY {0}", key, table));
    while (statement.step()) names.push_back(statement.text(0));
    return names;
  }

  void next() { has_row_ = rows_.step(); }

  std::vector<std::string> names_, columns_;
  Statement rows_;
  bool has_row_ = false;
};

/// A search has its columns beside those of the run that it found.
std::string runs_sql(const Database& results) {
  const bool has_searches = Statement(results, "SELECT 1 FROM searches LIMIT 1").step();
  return fmt::format("SELECT * FROM results{}",
                     has_searches ? " LEFT JOIN searches USING (point) ORDER BY point" : "");
}

/// Every run with all of its cells, from left to right.
template <class Begin, class Take, class Lack, class End>
void for_rows(const Database& results, Begin begin, Take take, Lack lack, End end) {
  (void)identify_sweep_results(results);  // refuses what is none
  Statement runs(results, runs_sql(results));
  std::array<PartRows, 3> parts{PartRows(results, "memories", "memory"),
                                PartRows(results, "links", "link"),
                                PartRows(results, "processors", "processor")};
  std::vector<std::string> columns;
  for (int c = 0; c < runs.columns(); ++c) columns.push_back(runs.column_name(c));
  for (const PartRows& part : parts)
    columns.insert(columns.end(), part.columns().begin(), part.columns().end());
  begin(columns);
  while (runs.step()) {
    for (int c = 0; c < runs.columns(); ++c) take(runs, c);
    for (PartRows& part : parts) part.visit(runs.integer(0), take, lack);
    end();
  }
}

/// What a spreadsheet would take for a formula is a text to it behind an apostrophe: names of
/// memories and values of sweeps are whatever a file holds.
std::string inert(std::string text) {
  const bool is_formula =
      !text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos;
  return is_formula ? '\'' + text : text;
}

std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

/// The shortest text that reads back as the same number.
std::string cell_text(const Statement& row, int column) {
  switch (row.kind(column)) {
    case Statement::Kind::integer:
      return std::to_string(row.integer(column));
    case Statement::Kind::real:
      return fmt::format("{}", row.real(column));
    case Statement::Kind::text:
      return inert(row.text(column));
    case Statement::Kind::null:
      break;
  }
  return {};
}

}  // namespace

void export_sweep_csv(const Database& results, const TextSink& write) {
  std::string line;
  const auto add = [&](const std::string& cell) { line += csv_text(cell) + ','; };
  const auto end = [&] {
    line.back() = '\n';
    write(line);
    line.clear();
  };
  for_rows(
      results,
      [&](const std::vector<std::string>& columns) {
        for (const std::string& column : columns) add(inert(column));
        end();
      },
      [&](const Statement& row, int column) { add(cell_text(row, column)); }, [&] { line += ','; },
      end);
}

void export_sweep_jsonl(const Database& results, const TextSink& write) {
  using Json = nlohmann::ordered_json;
  std::vector<std::string> names;
  std::size_t next = 0;
  Json object = Json::object();
  const auto take = [&](const Statement& row, int column) {
    Json& cell = object[names[next++]];
    if (row.kind(column) == Statement::Kind::integer) cell = row.integer(column);
    if (row.kind(column) == Statement::Kind::real) cell = row.real(column);
    if (row.kind(column) == Statement::Kind::text) cell = row.text(column);
  };
  for_rows(
      results, [&](std::vector<std::string> columns) { names = std::move(columns); }, take,
      [&] { object[names[next++]] = nullptr; },
      [&] {
        write(object.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n');
        object = Json::object();
        next = 0;
      });
}

}  // namespace plimsoll
