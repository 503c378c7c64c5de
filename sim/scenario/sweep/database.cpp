#include "scenario/sweep/database.hpp"

#include "base/diagnostic.hpp"

#include <sqlite3.h>

#include <fmt/format.h>

namespace plimsoll {

namespace {

[[noreturn]] void refuse_database(const std::filesystem::path& path, const std::string& message) {
  refuse(Location{path.string(), 0, 0}, message);
}

std::string sentence_for(int code, const char* message) {
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "another process has this file of results open";
    case SQLITE_NOTADB:
      return "found another kind of file; expected results of a sweep";
    case SQLITE_FULL:
      return "cannot be written: the disk is full";
    case SQLITE_CANTOPEN:
      return "cannot be opened";
    default:
      return message;
  }
}

std::string quoted(std::string_view text, char quote) {
  std::string result(1, quote);
  for (const char c : text) {
    if (c == quote) result += quote;
    result += c;
  }
  return result + quote;
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

void Database::Close::operator()(sqlite3* database) const {
  sqlite3_close(database);
}

Statement::Statement(const Database& database, std::string_view sql) : database_(database) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(database.database_.get(), sql.data(),
                                      static_cast<int>(sql.size()), &statement, nullptr);
  statement_.reset(statement);
  check(code);
}

void Statement::check(int code) const {
  database_.check(code);
}

Statement& Statement::bind(std::int64_t value) {
  check(sqlite3_bind_int64(statement_.get(), ++bound_, value));
  return *this;
}

Statement& Statement::bind(double value) {
  check(sqlite3_bind_double(statement_.get(), ++bound_, value));
  return *this;
}

Statement& Statement::bind(std::string_view text) {
  check(sqlite3_bind_text64(statement_.get(), ++bound_, text.data(), text.size(), SQLITE_TRANSIENT,
                            SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind_null() {
  check(sqlite3_bind_null(statement_.get(), ++bound_));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
  bound_ = 0;
  if (code != SQLITE_DONE) check(code);
  return false;
}

void Statement::run() {
  while (step()) {
  }
}

int Statement::columns() const {
  return sqlite3_column_count(statement_.get());
}

std::string Statement::column_name(int column) const {
  return sqlite3_column_name(statement_.get(), column);
}

Statement::Kind Statement::kind(int column) const {
  switch (sqlite3_column_type(statement_.get(), column)) {
    case SQLITE_INTEGER:
      return Kind::integer;
    case SQLITE_FLOAT:
      return Kind::real;
    case SQLITE_NULL:
      return Kind::null;
    default:
      return Kind::text;
  }
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

std::string Statement::text(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return bytes != nullptr ? std::string(bytes, static_cast<std::size_t>(size)) : std::string();
}

Database::Database(std::filesystem::path path, Mode mode) : path_(std::move(path)) {
  int flags = SQLITE_OPEN_NOMUTEX;
  if (mode == Mode::create) flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  if (mode == Mode::read_write) flags |= SQLITE_OPEN_READWRITE;
  if (mode == Mode::read_only) flags |= SQLITE_OPEN_READONLY;
  // A name that begins with `file:` is no URI here.
  const std::string name =
      path_.is_absolute() ? path_.string() : (std::filesystem::path(".") / path_).string();
  sqlite3* database = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &database, flags, nullptr);
  database_.reset(database);
  check(code);
}

void Database::check(int code) const {
  if (code == SQLITE_OK) return;
  refuse_database(path_, sentence_for(code, sqlite3_errmsg(database_.get())));
}

void Database::execute(const std::string& sql) {
  check(sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr));
}

std::string sql_name(std::string_view name) {
  return quoted(name, '"');
}

std::string sql_text(std::string_view text) {
  return quoted(text, '\'');
}

}  // namespace plimsoll
