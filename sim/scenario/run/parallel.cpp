#include "scenario/run/parallel.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

namespace plimsoll {

namespace {

constexpr std::size_t kResultsPerThread = 16;

using detail::ParallelStep;

/// What it throws, where it does.
std::exception_ptr failure_of(const ParallelStep& work, std::size_t index, std::size_t slot) {
  try {
    work(index, slot);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

/// A slot is a job's from its start until its result is consumed.
class JobsAsTheyEnd {
 public:
  JobsAsTheyEnd(std::size_t count, std::size_t window, const ParallelStep& work,
                const ParallelStep& consume)
      : count_(count), work_(work), consume_(consume), free_slots_(window) {
    std::iota(free_slots_.begin(), free_slots_.end(), std::size_t{0});
  }

  void run(unsigned threads) {
    std::vector<std::jthread> workers;
    workers.reserve(threads);
    // Before they are joined; also where a thread could not be started.
    struct Stop {
      JobsAsTheyEnd& jobs;
      ~Stop() { jobs.stop(); }
    } const stop_at_the_end{*this};
    while (workers.size() < threads) workers.emplace_back([this] { work_on(); });
    for (std::size_t consumed = 0; consumed < count_; ++consumed) {
      const Ended ended = wait_for_one();
      if (ended.failure) throw_the_first(ended);
      consume_(ended.job.index, ended.job.slot);
      free(ended.job.slot);
    }
  }

 private:
  struct Job {
    std::size_t index, slot;
  };
  struct Ended {
    Job job;
    std::exception_ptr failure;
  };

  void work_on() {
    while (const auto job = take()) {
      std::exception_ptr failure = failure_of(work_, job->index, job->slot);
      const std::scoped_lock lock(mutex_);
      if (failure) is_stopped_ = true;
      ended_.push_back({*job, std::move(failure)});
      has_ended_.notify_one();
    }
  }

  void stop() {
    const std::scoped_lock lock(mutex_);
    is_stopped_ = true;
    has_room_.notify_all();
  }

  /// The next job, once there is room for its result; nothing where no more are to be started.
  std::optional<Job> take() {
    std::unique_lock lock(mutex_);
    has_room_.wait(lock,
                   [this] { return is_stopped_ || taken_ == count_ || !free_slots_.empty(); });
    if (is_stopped_ || taken_ == count_) {
      has_room_.notify_all();
      return std::nullopt;
    }
    const std::size_t slot = free_slots_.back();
    free_slots_.pop_back();
    return Job{taken_++, slot};
  }

  Ended wait_for_one() {
    std::unique_lock lock(mutex_);
    has_ended_.wait(lock, [this] { return !ended_.empty(); });
    Ended ended = std::move(ended_.front());
    ended_.pop_front();
    ++handed_over_;
    return ended;
  }

  /// Jobs are taken in the order of their numbers, so that any before this one is at least in
  /// flight.
  [[noreturn]] void throw_the_first(Ended first) {
    stop();
    while (are_some_left()) {
      Ended other = wait_for_one();
      if (other.failure && other.job.index < first.job.index) first = std::move(other);
    }
    std::rethrow_exception(first.failure);
  }

  [[nodiscard]] bool are_some_left() {
    const std::scoped_lock lock(mutex_);
    return handed_over_ < taken_;
  }

  void free(std::size_t slot) {
    const std::scoped_lock lock(mutex_);
    free_slots_.push_back(slot);
    has_room_.notify_one();
  }

  const std::size_t count_;
  const ParallelStep& work_;
  const ParallelStep& consume_;
  std::mutex mutex_;
  std::condition_variable has_room_, has_ended_;
  std::vector<std::size_t> free_slots_;
  std::deque<Ended> ended_;
  std::size_t taken_ = 0, handed_over_ = 0;
  bool is_stopped_ = false;
};

}  // namespace

ParallelOptions resolved(ParallelOptions options) {
  if (options.jobs == 0) options.jobs = std::max(1U, std::thread::hardware_concurrency());
  if (options.window == 0) options.window = options.jobs * kResultsPerThread;
  return options;
}

void detail::run_as_they_end(std::size_t count, const ParallelOptions& options,
                             const ParallelStep& work, const ParallelStep& consume) {
  const auto [jobs, window] = resolved(options);
  if (jobs > 1 && count > 1) {
    JobsAsTheyEnd(count, window, work, consume)
        .run(static_cast<unsigned>(std::min<std::size_t>(jobs, count)));
    return;
  }
  for (std::size_t index = 0; index < count; ++index) {
    work(index, 0);
    consume(index, 0);
  }
}

}  // namespace plimsoll
