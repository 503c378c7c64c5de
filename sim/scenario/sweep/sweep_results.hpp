/// The results of a sweep: one SQLite file, whose tables docs/sweeps.md describes.
///
/// A run is written as a whole, in one transaction of a write-ahead log. Whenever the process or
/// the machine stops, the file holds complete runs of the shard, each once; at most those in flight
/// are lost. They may arrive in any order, because every table is keyed by the point. Only one process
/// has the file open at a time. Except for the table `planning`, the content does not depend on the
/// number of threads or interruptions.
#pragma once

#include "scenario/sweep/database.hpp"
#include "scenario/sweep/sweep_run.hpp"

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace plimsoll {

/// Every `count`-th point, from `index` on.
struct SweepShard {
  std::size_t index = 0, count = 1;

  [[nodiscard]] std::size_t point(std::size_t number) const { return index + number * count; }
  /// How many of `points` are in it.
  [[nodiscard]] std::size_t size(std::size_t points) const {
    return points > index ? (points - index - 1) / count + 1 : 0;
  }
  bool operator==(const SweepShard&) const = default;
};

class SweepResults {
 public:
  /// Makes a new file. Throws InputError where there is one, or it cannot be written.
  [[nodiscard]] static SweepResults create(const std::filesystem::path& path, const Sweep& sweep,
                                           const SweepShard& shard);
  /// Goes on with a file that create() made for this sweep and shard, or makes it. Throws
  /// InputError for any other file.
  [[nodiscard]] static SweepResults resume(const std::filesystem::path& path, const Sweep& sweep,
                                           const SweepShard& shard);

  SweepResults(SweepResults&&) noexcept;
  SweepResults& operator=(SweepResults&&) = delete;
  ~SweepResults();

  /// How many runs of the shard are there.
  [[nodiscard]] std::size_t done() const { return done_; }

  /// The i-th point of the shard without a run when the file was opened, whatever was added since:
  /// safe for several threads. O(log gaps).
  [[nodiscard]] std::size_t missing_point(std::size_t i) const;

  /// Whether a point's run was there when the file was opened, whatever was added since: safe for
  /// several threads. O(log gaps).
  [[nodiscard]] bool has(std::size_t point) const;
  /// Samples per second that it reached, where it was there and has ended well. O(log runs).
  [[nodiscard]] std::optional<double> throughput(std::size_t point) const;

  /// A run of the shard that is not there yet.
  void add(std::size_t point, const SweepRow& row);

  /// All runs of another file of this sweep, none of which is here.
  void take(const std::filesystem::path& part);

  /// Leaves one file, without a log beside it.
  void finish();

 private:
  struct Writer;
  SweepResults(Database database, const Sweep& sweep, const SweepShard& shard);
  void make_tables();
  void check_tables();
  void find_gaps();

  /// Runs that follow each other in the shard, none of which was there.
  struct Gap {
    std::size_t number;  ///< of the shard: its first
    std::size_t before;  ///< how many are missing before it
  };

  const Sweep& sweep_;
  SweepShard shard_;
  std::unique_ptr<Writer> writer_;
  std::size_t done_ = 0;
  std::vector<Gap> gaps_;
};

/// How a file of results came about, whatever sweep it is of.
struct SweepIdentity {
  std::string sweep;
  std::size_t points = 0;  ///< of all shards
  SweepShard shard;
  std::size_t done = 0;
};

/// Throws InputError for a file that holds no results of a sweep.
[[nodiscard]] SweepIdentity identify_sweep_results(const Database& database);

/// How many of its rows are `error`: points that could not be run.
[[nodiscard]] std::int64_t count_errors(const Database& database);

/// Joins the files of all shards of a sweep to what one process without shards would have written,
/// whole or not at all. Files named *.tmp.* are left out. Throws InputError: parts of another
/// sweep, shards that are missing, there twice, or not finished; a file at `out`.
void merge_sweep_results(const Sweep& sweep, std::span<const std::filesystem::path> parts,
                         const std::filesystem::path& out);

}  // namespace plimsoll
