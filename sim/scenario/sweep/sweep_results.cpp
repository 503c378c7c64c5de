#include "scenario/sweep/sweep_results.hpp"

#include "base/gather.hpp"
#include "scenario/sweep/sweep_tables.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuse_results(const fs::path& path, const std::string& message,
                                 const std::string& hint = {}) {
  refuse(Location{path.string(), 0, 0}, message, hint);
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

std::int64_t number_of(const Database& database, const std::string& sql) {
  Statement statement(database, sql);
  return statement.step() ? statement.integer(0) : 0;
}

std::string value_of(const Database& database, const std::string& key) {
  Statement statement(database, "SELECT value FROM sweep WHERE key = ?");
  statement.bind(std::string_view(key));
  return statement.step() ? statement.text(0) : std::string();
}

bool has_tables(const Database& database) {
  return number_of(database, "SELECT count(*) FROM sqlite_schema") > 0;
}

/// Of the layout that is written here; a later program may write another.
void check_layout(const Database& database) {
  const bool is_of_sweep =
      number_of(database, "SELECT count(*) FROM sqlite_schema WHERE name = 'sweep'") > 0;
  if (!is_of_sweep)
    refuse_results(database.path(), "found another database; expected results of a sweep");
  const std::int64_t layout = number_of(database, "PRAGMA user_version");
  if (layout != kSweepLayout)
    refuse_results(database.path(),
                   fmt::format("its tables have layout {}; expected {}: another version "
                               "of plimsoll wrote it",
                               layout, kSweepLayout));
}

void check_is_of(const Database& database, const Sweep& sweep) {
  check_layout(database);
  if (value_of(database, "digest") == sweep.digest) return;
  const std::string name = value_of(database, "sweep");
  refuse_results(
      database.path(),
      name == sweep.name
          ? fmt::format("holds results of sweep `{}` as it was before its files changed", name)
          : fmt::format("holds results of sweep `{}`; expected those of `{}`", name, sweep.name));
}

SweepShard shard_of(const Database& database) {
  const auto number = [&](const char* key) {
    return static_cast<std::size_t>(
        number_of(database, fmt::format("SELECT value FROM sweep WHERE key = '{}'", key)));
  };
  return {number("shard"), number("shards")};
}

/// How many runs there are; all must be of the shard.
std::size_t runs_of(const Database& database, const Sweep& sweep, const SweepShard& shard) {
  const std::int64_t strangers = number_of(
      database, fmt::format("SELECT count(*) FROM runs WHERE point NOT BETWEEN {} AND {} OR "
                            "(point - {}) % {} != 0",
                            shard.index, sweep.points() - 1, shard.index, shard.count));
  if (strangers > 0)
    refuse_results(database.path(), "holds runs that this sweep or shard does not have");
  return static_cast<std::size_t>(number_of(database, "SELECT count(*) FROM runs"));
}

}  // namespace

SweepIdentity identify_sweep_results(const Database& database) {
  check_layout(database);
  return {
      value_of(database, "sweep"),
      static_cast<std::size_t>(number_of(database, "SELECT value FROM sweep WHERE key = 'points'")),
      shard_of(database),
      static_cast<std::size_t>(number_of(database, "SELECT count(*) FROM runs"))};
}

struct SweepResults::Writer {
  Database database;
  std::unique_ptr<SweepRowWriter> rows;
};

SweepResults SweepResults::create(const fs::path& path, const Sweep& sweep,
                                  const SweepShard& shard) {
  if (is_there(path))
    refuse_results(path,
                   "is there already; expected a new file, or `--resume` to go on with this one");
  return {Database(path, Database::Mode::create), sweep, shard};
}

SweepResults SweepResults::resume(const fs::path& path, const Sweep& sweep,
                                  const SweepShard& shard) {
  return {Database(path, Database::Mode::create), sweep, shard};
}

SweepResults::SweepResults(Database database, const Sweep& sweep, const SweepShard& shard)
    : sweep_(sweep), shard_(shard), writer_(new Writer{std::move(database), nullptr}) {
  Database& file = writer_->database;
  // Held by this process alone, the log needs no memory shared with others: that also does on a
  // network's file system.
  file.execute(
      "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; "
      "PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE; COMMIT");
  if (has_tables(file))
    check_tables();
  else
    make_tables();
  find_gaps();
  writer_->rows = std::make_unique<SweepRowWriter>(file, point_columns(sweep_));
}

SweepResults::SweepResults(SweepResults&&) noexcept = default;
SweepResults::~SweepResults() = default;

void SweepResults::make_tables() {
  std::string sql = fmt::format("BEGIN; PRAGMA user_version = {};\n", kSweepLayout) +
                    make_tables_sql(point_columns(sweep_));
  const auto keep = [&](const char* key, const std::string& value) {
    sql += fmt::format("INSERT INTO sweep VALUES ('{}', {});\n", key, value);
  };
  keep("sweep", sql_text(sweep_.name));
  keep("digest", sql_text(sweep_.digest));
  keep("points", std::to_string(sweep_.points()));
  keep("shard", std::to_string(shard_.index));
  keep("shards", std::to_string(shard_.count));
  if (sweep_.fastest) keep("fastest", std::to_string(*sweep_.fastest));
  std::vector<std::string> units(sweep_.variables.size());
  for (const PointColumn& column : point_columns(sweep_))
    if (column.is_number)
      units[column.variable] = column.name.substr(column.name.rfind('[') + 1,
                                                  column.name.size() - 2 - column.name.rfind('['));
  const std::size_t derived_end = sweep_.variables.size() - (sweep_.search ? 1 : 0);
  const std::size_t derived_begin = derived_end - sweep_.derived.size();
  for (std::size_t v = 0; v < sweep_.variables.size(); ++v)
    sql += fmt::format("INSERT INTO variables VALUES ({}, {}, '{}', {});\n", v,
                       sql_text(sweep_.variables[v]),
                       v < derived_begin ? "varied"
                       : v < derived_end ? "derived"
                                         : "searched",
                       units[v].empty() ? "NULL" : sql_text(units[v]));
  writer_->database.execute(sql + "COMMIT");
}

void SweepResults::check_tables() {
  const Database& file = writer_->database;
  check_is_of(file, sweep_);
  const SweepShard shard = shard_of(file);
  if (shard != shard_)
    refuse_results(file.path(), fmt::format("holds shard {}/{}; expected shard {}/{}", shard.index,
                                            shard.count, shard_.index, shard_.count));
  done_ = runs_of(file, sweep_, shard_);
}

void SweepResults::find_gaps() {
  Statement points(writer_->database, "SELECT point FROM runs ORDER BY point");
  std::size_t next = 0, missing = 0;
  while (points.step()) {
    const std::size_t number =
        (static_cast<std::size_t>(points.integer(0)) - shard_.index) / shard_.count;
    if (number > next) gaps_.push_back({next, missing});
    missing += number - next;
    next = number + 1;
  }
  gaps_.push_back({next, missing});
}

std::size_t SweepResults::missing_point(std::size_t i) const {
  const Gap& gap = *std::prev(std::ranges::upper_bound(gaps_, i, {}, &Gap::before));
  return shard_.point(gap.number + i - gap.before);
}

bool SweepResults::has(std::size_t point) const {
  const std::size_t number = (point - shard_.index) / shard_.count;
  const auto after = std::ranges::upper_bound(gaps_, number, {}, &Gap::number);
  if (after == gaps_.begin()) return true;
  // Of the gap that begins before it: how many are missing there.
  const Gap& gap = *std::prev(after);
  const std::size_t missing =
      after == gaps_.end() ? std::numeric_limits<std::size_t>::max() : after->before - gap.before;
  return number - gap.number >= missing;
}

std::optional<double> SweepResults::throughput(std::size_t point) const {
  if (!has(point)) return std::nullopt;
  Statement statement(writer_->database,
                      "SELECT throughput_samples_per_s FROM runs WHERE point = ?");
  statement.bind(static_cast<std::int64_t>(point));
  if (!statement.step() || statement.kind(0) == Statement::Kind::null) return std::nullopt;
  return statement.real(0);
}

void SweepResults::add(std::size_t point, const SweepRow& row) {
  writer_->rows->add(static_cast<std::int64_t>(point), row);
  ++done_;
}

void SweepResults::take(const fs::path& part) {
  Database& file = writer_->database;
  file.execute(fmt::format("ATTACH {} AS part; BEGIN", sql_text(part.string())));
  for (const std::string& table : tables_of_runs())
    file.execute(fmt::format("INSERT INTO main.{0} SELECT * FROM part.{0}", table));
  file.execute("COMMIT; DETACH part");
}

void SweepResults::finish() {
  writer_->rows.reset();  // its statements would keep the log
  writer_->database.execute("PRAGMA journal_mode = DELETE");
}

namespace {

/// A part as it is, for errors; and where it will be joined.
struct ShardResults {
  fs::path path;
  SweepShard shard;
};

/// Throws InputError for what is no part at all; one that is not finished is told, and is one.
ShardResults read_part(const fs::path& path, const Sweep& sweep, Diagnostics& diagnostics) {
  if (!is_there(path)) refuse_results(path, "is not there; expected the results of a shard");
  const Database database(path, Database::Mode::read_write);
  check_is_of(database, sweep);
  const SweepShard shard = shard_of(database);
  if (shard.index >= shard.count) refuse_results(path, "does not say which shard it holds");
  const std::size_t runs = runs_of(database, sweep, shard), all = shard.size(sweep.points());
  if (runs != all)
    diagnostics.error(
        {path.string(), 0, 0},
        fmt::format("shard {}/{} has {} of {} runs", shard.index, shard.count, runs, all),
        "`--resume` goes on with it");
  return {path, shard};
}

/// "shard 1/4 is missing"; of more than a few only how many. Nothing where none is.
std::string missing_of(const std::vector<ShardResults>& parts, std::size_t count) {
  constexpr std::size_t kMostNamed = 8;
  std::set<std::size_t> there;
  for (const ShardResults& part : parts) there.insert(part.shard.index);
  const std::size_t missing = count - there.size();
  if (missing == 0) return {};
  std::vector<std::string> names;
  for (std::size_t index = 0; index < count && names.size() < kMostNamed; ++index)
    if (!there.contains(index)) names.push_back(fmt::format("{}/{}", index, count));
  if (missing == 1) return fmt::format("shard {} is missing", names.front());
  return fmt::format(
      "shards {}{} are missing", fmt::join(names, ", "),
      missing > names.size() ? fmt::format(" and {} more", missing - names.size()) : std::string());
}

/// Each shard once, of one sweep cut into as many.
void check_shards(const std::vector<ShardResults>& parts, bool are_all_read,
                  Diagnostics& diagnostics) {
  const std::size_t count = parts.front().shard.count;
  std::vector<ShardResults> of_these;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const auto& [path, shard] = parts[p];
    if (shard.count == count) of_these.push_back(parts[p]);
    if (shard.count != count)
      diagnostics.error({path.string(), 0, 0},
                        fmt::format("is one of {} shards; `{}` is one of {}", shard.count,
                                    parts.front().path.string(), count));
    else if (p > 0 && shard == parts[p - 1].shard)
      diagnostics.error({path.string(), 0, 0},
                        fmt::format("shard {}/{} is there twice, in `{}` too", shard.index, count,
                                    parts[p - 1].path.string()));
  }
  const std::string missing = missing_of(of_these, count);
  // A file that cannot be read may be the one that is missing.
  if (!missing.empty() && are_all_read) diagnostics.error({"--merge", 0, 0}, missing);
}

/// In the order of their shards. Throws InputError with all that is wrong.
std::vector<ShardResults> parts_of(const Sweep& sweep, std::span<const fs::path> paths,
                                   const fs::path& out) {
  Diagnostics diagnostics;
  std::vector<ShardResults> parts;
  std::size_t files = 0;
  for (const fs::path& path : paths) {
    if (path.filename().string().find(".tmp.") != std::string::npos) continue;
    ++files;
    gather(diagnostics, [&] { parts.push_back(read_part(path, sweep, diagnostics)); });
  }
  if (files == 0)
    diagnostics.error({"--merge", 0, 0}, "no part to merge; expected the results of every shard");
  std::ranges::stable_sort(parts, {}, [](const ShardResults& part) { return part.shard.index; });
  if (!parts.empty()) check_shards(parts, parts.size() == files, diagnostics);
  if (is_there(out))
    diagnostics.error({out.string(), 0, 0}, "is there already; expected a new file");
  diagnostics.throw_if_errors();
  return parts;
}

}  // namespace

std::int64_t count_errors(const Database& database) {
  Statement errors(database, "SELECT count(*) FROM runs WHERE status = 'error'");
  return errors.step() ? errors.integer(0) : 0;
}

void merge_sweep_results(const Sweep& sweep, std::span<const fs::path> paths, const fs::path& out) {
  const std::vector<ShardResults> parts = parts_of(sweep, paths, out);
  fs::path whole = out;
  whole += fmt::format(".tmp.{}", getpid());
  std::error_code ignored;
  fs::remove(whole, ignored);
  try {
    SweepResults merged = SweepResults::create(whole, sweep, {});
    for (const ShardResults& part : parts) merged.take(part.path);
    merged.finish();
    fs::rename(whole, out);
  } catch (const fs::filesystem_error& error) {
    fs::remove(whole, ignored);
    refuse_results(out, "cannot be written: " + error.code().message());
  } catch (const InputError&) {
    fs::remove(whole, ignored);
    throw;
  }
}

}  // namespace plimsoll
