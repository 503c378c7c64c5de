/// Independent jobs on several threads, whose results arrive in the order of their numbers, or as
/// they end.
///
///   in_order<Row>(points, {.jobs = 4}, [&](std::size_t i) { return row_of(i); },
///                 [&](std::size_t i, Row row) { file.add(i, std::move(row)); });
///
/// Jobs are started in the order of their numbers, and no more than `window` results exist at a
/// time: memory is flat, however many jobs there are and however long one of them takes.
///
/// What the consumer of in_order() sees is the same for any number of threads: results 0, 1, 2, ...
/// up to the first job that throws. Then that exception, the one of the least number, is thrown.
/// The price: a job waits while its number is `window` or more beyond the next result to be handed
/// over, so that a slow one holds up the others in the end. as_they_end() hands over what there is:
/// no job waits for another, and of exceptions the first is thrown.
///
/// An exception of the consumer is thrown, too. No new job is started after any, and those in
/// flight are waited for.
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
void run_in_order(std::size_t count, const ParallelOptions& options, const ParallelStep& work,
                  const ParallelStep& consume);
void run_as_they_end(std::size_t count, const ParallelOptions& options, const ParallelStep& work,
                     const ParallelStep& consume);

/// The same for results of a type, in slots that are made here.
template <class Result, class Work, class Consume>
void run_with_slots(decltype(run_in_order) run, std::size_t count, ParallelOptions options,
                    Work& work, Consume& consume) {
  options = resolved(options);
  std::vector<std::optional<Result>> slots(options.window);
  run(
      count, options,
      [&](std::size_t index, std::size_t slot) { slots[slot].emplace(work(index)); },
      [&](std::size_t index, std::size_t slot) {
        Result result = std::move(*slots[slot]);
        slots[slot].reset();
        consume(index, std::move(result));
      });
}

}  // namespace detail

/// Calls `work(i)` for every i below `count` on several threads, and `consume(i, result)` on the
/// calling thread, in the order of i. `work` must be safe to be called from several threads.
template <class Result, class Work, class Consume>
void in_order(std::size_t count, const ParallelOptions& options, Work work, Consume consume) {
  detail::run_with_slots<Result>(detail::run_in_order, count, options, work, consume);
}

/// The same with results in the order in which they come about; with one thread in that of i.
template <class Result, class Work, class Consume>
void as_they_end(std::size_t count, const ParallelOptions& options, Work work, Consume consume) {
  detail::run_with_slots<Result>(detail::run_as_they_end, count, options, work, consume);
}

}  // namespace plimsoll
