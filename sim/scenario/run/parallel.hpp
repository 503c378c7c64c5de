/// Independent jobs on several threads, whose results arrive as they end.
///
///   as_they_end<Row>(points, {.jobs = 4}, [&](std::size_t i) { return row_of(i); },
///                    [&](std::size_t i, Row row) { file.add(i, std::move(row)); });
///
/// Jobs are started in the order of their numbers, and no more than `window` results exist at a
/// time: memory is flat, however many jobs there are. No job waits for another.
///
/// After an exception no new job is started, and those in flight are waited for; of several
/// exceptions of jobs that of the least number is thrown, whatever the number of threads.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace plimsoll {

struct ParallelOptions {
  /// Threads; with 1, all is done on the calling thread. 0: as many as the machine runs at once.
  unsigned jobs = 0;
  /// Results that may exist at a time. 0: 16 for each thread. Where results are large, say less.
  std::size_t window = 0;
};

/// The number of threads and the window that are meant by 0.
[[nodiscard]] ParallelOptions resolved(ParallelOptions options);

namespace detail {

/// The same without a type for results: `work(i, slot)` leaves its result in a slot below the
/// window that no other result is in, `consume(i, slot)` takes it from there.
using ParallelStep = std::function<void(std::size_t, std::size_t)>;
void run_as_they_end(std::size_t count, const ParallelOptions& options, const ParallelStep& work,
                     const ParallelStep& consume);

}  // namespace detail

/// Calls `work(i)` for every i below `count` on several threads, and `consume(i, result)` on the
/// calling thread, in the order in which results come about; with one thread in that of i. `work`
/// must be safe to be called from several threads.
template <class Result, class Work, class Consume>
void as_they_end(std::size_t count, ParallelOptions options, Work work, Consume consume) {
  options = resolved(options);
  std::vector<std::optional<Result>> slots(options.window);
  detail::run_as_they_end(
      count, options,
      [&](std::size_t index, std::size_t slot) { slots[slot].emplace(work(index)); },
      [&](std::size_t index, std::size_t slot) {
        Result result = std::move(*slots[slot]);
        slots[slot].reset();
        consume(index, std::move(result));
      });
}

/// All results, by the numbers of their jobs; calls `tell(ended)` with the number that have ended.
template <class Result, class Work, class Tell>
[[nodiscard]] std::vector<Result> by_number(std::size_t count, const ParallelOptions& options,
                                            Work work, Tell tell) {
  std::vector<Result> results(count);
  std::size_t ended = 0;
  as_they_end<Result>(count, options, std::move(work), [&](std::size_t index, Result result) {
    results[index] = std::move(result);
    tell(++ended);
  });
  return results;
}

}  // namespace plimsoll
