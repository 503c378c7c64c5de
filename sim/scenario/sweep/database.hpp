/// One SQLite file, as much of it as results need. Every failure is an InputError at the file's
/// path, in a sentence.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace plimsoll {

class Database;

/// A prepared statement: bind values in order, then step; ready to be bound again after the last
/// row.
class Statement {
 public:
  Statement(const Database& database, std::string_view sql);

  Statement& bind(std::int64_t value);
  Statement& bind(double value);
  Statement& bind(std::string_view text);
  Statement& bind_null();
  template <class T>
  Statement& bind(const std::optional<T>& value) {
    return value ? bind(*value) : bind_null();
  }

  /// Whether there is a row; without one the statement begins again, with nothing bound.
  bool step();
  /// For statements without rows.
  void run();

  [[nodiscard]] int columns() const;
  [[nodiscard]] std::string column_name(int column) const;
  enum class Kind : std::uint8_t { null, integer, real, text };
  [[nodiscard]] Kind kind(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] std::string text(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  void check(int code) const;

  const Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bound_ = 0;
};

class Database {
 public:
  enum class Mode : std::uint8_t { create, read_write, read_only };

  /// `create` makes the file or opens one; the others want it to be there.
  Database(std::filesystem::path path, Mode mode);

  /// One or several statements without results.
  void execute(const std::string& sql);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  friend class Statement;
  struct Close {
    void operator()(sqlite3* database) const;
  };
  void check(int code) const;

  std::filesystem::path path_;
  std::unique_ptr<sqlite3, Close> database_;
};

/// `name` as a name in SQL: "links.pcie.bandwidth" with its quotes.
[[nodiscard]] std::string sql_name(std::string_view name);

/// `text` as a text in SQL.
[[nodiscard]] std::string sql_text(std::string_view text);

}  // namespace plimsoll
