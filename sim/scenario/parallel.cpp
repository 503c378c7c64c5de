#include "scenario/parallel.hpp"

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

using Step = detail::ParallelStep;

/// Threads that all do `jobs.work_on()`, beside `lead` on this one. Before they are joined, they
/// are told; also where a thread could not be started.
template <class Jobs, class Lead>
void beside_workers(unsigned threads, Jobs& jobs, Lead lead) {
  std::vector<std::jthread> workers;
  workers.reserve(threads);
  struct Stop {
    Jobs& jobs;
    ~Stop() { jobs.stop(); }
  } const stop_at_the_end{jobs};
  while (workers.size() < threads) workers.emplace_back([&jobs] { jobs.work_on(); });
  lead();
}

/// What it throws, where it does.
std::exception_ptr failure_of(const Step& work, std::size_t index, std::size_t slot) {
  try {
    work(index, slot);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

/// Slot i % window holds result i from the end of its job until it is consumed.
class OrderedJobs {
 public:
  OrderedJobs(std::size_t count, std::size_t window, const Step& work, const Step& consume)
      : count_(count), work_(work), consume_(consume), results_(window) {}

  void run(unsigned threads) {
    beside_workers(threads, *this, [this] {
      for (std::size_t index = 0; index < count_; ++index) {
        if (const std::exception_ptr failure = wait_for(index)) std::rethrow_exception(failure);
        consume_(index, slot_of(index));
        free_slot();
      }
    });
  }

  void work_on() {
    while (const auto index = take()) {
      std::exception_ptr failure = failure_of(work_, *index, slot_of(*index));
      const std::scoped_lock lock(mutex_);
      // Later jobs would be for nothing: the consumer ends here.
      if (failure) is_stopped_ = true;
      results_[slot_of(*index)] = {true, std::move(failure)};
      if (*index == consumed_) has_next_.notify_one();
    }
  }

  void stop() {
    const std::scoped_lock lock(mutex_);
    is_stopped_ = true;
    has_room_.notify_all();
  }

 private:
  struct Result {
    bool is_there = false;
    std::exception_ptr failure;
  };

  [[nodiscard]] std::size_t slot_of(std::size_t index) const { return index % results_.size(); }

  /// The next job, once there is room for its result; nothing where no more are to be started.
  std::optional<std::size_t> take() {
    std::unique_lock lock(mutex_);
    has_room_.wait(lock, [this] {
      return is_stopped_ || taken_ == count_ || taken_ - consumed_ < results_.size();
    });
    if (is_stopped_ || taken_ == count_) {
      has_room_.notify_all();
      return std::nullopt;
    }
    return taken_++;
  }

  std::exception_ptr wait_for(std::size_t index) {
    std::unique_lock lock(mutex_);
    has_next_.wait(lock, [&] { return results_[slot_of(index)].is_there; });
    return results_[slot_of(index)].failure;
  }

  void free_slot() {
    const std::scoped_lock lock(mutex_);
    results_[slot_of(consumed_)] = {};
    ++consumed_;
    has_room_.notify_one();
  }

  const std::size_t count_;
  const Step& work_;
  const Step& consume_;
  std::mutex mutex_;
  std::condition_variable has_room_, has_next_;
  std::vector<Result> results_;
  std::size_t taken_ = 0, consumed_ = 0;
  bool is_stopped_ = false;
};

/// A slot is a job's from its start until its result is consumed.
class JobsAsTheyEnd {
 public:
  JobsAsTheyEnd(std::size_t count, std::size_t window, const Step& work, const Step& consume)
      : count_(count), work_(work), consume_(consume), free_slots_(window) {
    std::iota(free_slots_.begin(), free_slots_.end(), std::size_t{0});
  }

  void run(unsigned threads) {
    beside_workers(threads, *this, [this] {
      for (std::size_t consumed = 0; consumed < count_; ++consumed) {
        const Ended ended = wait_for_one();
        if (ended.failure) std::rethrow_exception(ended.failure);
        consume_(ended.job.index, ended.job.slot);
        free(ended.job.slot);
      }
    });
  }

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

 private:
  struct Job {
    std::size_t index, slot;
  };
  struct Ended {
    Job job;
    std::exception_ptr failure;
  };

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
    return ended;
  }

  void free(std::size_t slot) {
    const std::scoped_lock lock(mutex_);
    free_slots_.push_back(slot);
    has_room_.notify_one();
  }

  const std::size_t count_;
  const Step& work_;
  const Step& consume_;
  std::mutex mutex_;
  std::condition_variable has_room_, has_ended_;
  std::vector<std::size_t> free_slots_;
  std::deque<Ended> ended_;
  std::size_t taken_ = 0;
  bool is_stopped_ = false;
};

template <class Jobs>
void run_jobs(std::size_t count, const ParallelOptions& options, const Step& work,
              const Step& consume) {
  const auto [jobs, window] = resolved(options);
  if (jobs > 1 && count > 1) {
    Jobs(count, window, work, consume)
        .run(static_cast<unsigned>(std::min<std::size_t>(jobs, count)));
    return;
  }
  for (std::size_t index = 0; index < count; ++index) {
    work(index, 0);
    consume(index, 0);
  }
}

}  // namespace

ParallelOptions resolved(ParallelOptions options) {
  if (options.jobs == 0) options.jobs = std::max(1U, std::thread::hardware_concurrency());
  if (options.window == 0) options.window = options.jobs * kResultsPerThread;
  return options;
}

namespace detail {

void run_in_order(std::size_t count, const ParallelOptions& options, const Step& work,
                  const Step& consume) {
  run_jobs<OrderedJobs>(count, options, work, consume);
}

void run_as_they_end(std::size_t count, const ParallelOptions& options, const Step& work,
                     const Step& consume) {
  run_jobs<JobsAsTheyEnd>(count, options, work, consume);
}

}  // namespace detail

}  // namespace plimsoll
