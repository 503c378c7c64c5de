#include "scenario/sweep/sweep_fastest.hpp"

#include "scenario/run/parallel.hpp"

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

namespace plimsoll {

namespace {

class Fastest {
 public:
  Fastest(const Sweep& sweep, unsigned jobs, SweepResults& results, const SweepProgress& progress,
          std::int64_t limit_work)
      : sweep_(sweep),
        jobs_(resolved({.jobs = jobs}).jobs),
        results_(results),
        progress_(progress),
        runs_(sweep, limit_work) {}

  void run() {
    look_at_all();
    std::ranges::sort(candidates_, [](const Candidate& a, const Candidate& b) {
      return a.throughput != b.throughput ? a.throughput > b.throughput : a.point < b.point;
    });
    const std::size_t run = run_first();
    const double reached = least_of_fastest();
    as_they_end<SweepRow>(
        candidates_.size() - run, {.jobs = jobs_},
        [&](std::size_t i) {
          const Candidate& it = candidates_[run + i];
          return runs_.slower(it.point, it.throughput, reached);
        },
        [&](std::size_t i, const SweepRow& row) { keep(candidates_[run + i].point, row); });
  }

 private:
  struct Candidate {
    double throughput = 0;  ///< at most
    std::size_t point = 0;
  };

  void keep(std::size_t point, const SweepRow& row) {
    if (!results_.has(point)) results_.add(point, row);
    progress_(results_.done());
  }

  void look_at_all() {
    as_they_end<SweepProspect>(
        sweep_.points(), {.jobs = jobs_}, [&](std::size_t point) { return runs_.prospect(point); },
        [&](std::size_t point, const SweepProspect& prospect) {
          if (prospect.row)
            keep(point, *prospect.row);
          else
            candidates_.push_back({prospect.throughput, point});
        });
  }

  /// Runs as many as may be among the fastest; how many those are. What threads have run beyond is
  /// dropped.
  std::size_t run_first() {
    for (std::size_t next = 0; next < candidates_.size();) {
      const std::size_t count = std::min<std::size_t>(jobs_, candidates_.size() - next);
      const std::vector<SweepRow> rows = by_number<SweepRow>(
          count, {.jobs = jobs_}, [&](std::size_t i) { return row_of(candidates_[next + i]); },
          [](std::size_t) {});
      for (const SweepRow& row : rows) {
        const Candidate& candidate = candidates_[next];
        if (candidate.throughput < least_of_fastest()) return next;
        const auto known = results_.throughput(candidate.point);
        add(known ? known : row.run.metrics.throughput);
        keep(candidate.point, row);
        ++next;
      }
    }
    return candidates_.size();
  }

  /// Of one that may be among the fastest and is not there yet; else nothing.
  SweepRow row_of(const Candidate& candidate) const {
    const bool is_needed =
        candidate.throughput >= least_of_fastest() && !results_.has(candidate.point);
    return is_needed ? runs_.run(candidate.point) : SweepRow();
  }

  void add(const std::optional<double>& throughput) {
    if (!throughput) return;
    const auto place = std::ranges::lower_bound(fastest_, *throughput, std::ranges::greater{});
    fastest_.insert(place, *throughput);
    if (fastest_.size() > *sweep_.fastest) fastest_.pop_back();
  }

  /// 0 while there are fewer.
  [[nodiscard]] double least_of_fastest() const {
    return fastest_.size() < *sweep_.fastest ? 0 : fastest_.back();
  }

  const Sweep& sweep_;
  const unsigned jobs_;
  SweepResults& results_;
  const SweepProgress& progress_;
  const SweepRuns runs_;
  std::vector<Candidate> candidates_;
  std::vector<double> fastest_;  ///< throughputs, the highest first
};

}  // namespace

void run_fastest(const Sweep& sweep, unsigned jobs, SweepResults& results,
                 const SweepProgress& progress, std::int64_t limit_work) {
  Fastest(sweep, jobs, results, progress, limit_work).run();
}

}  // namespace plimsoll
