#include "scenario/parallel.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace plimsoll {

namespace {

constexpr std::size_t kResultsPerThread = 16;

using Step = std::function<void(std::size_t, std::size_t)>;

/// Slot i % window holds result i from the end of its job until it is consumed.
class OrderedJobs {
 public:
  OrderedJobs(std::size_t count, std::size_t window, const Step& work, const Step& consume)
      : count_(count), work_(work), consume_(consume), results_(window) {}

  void run(unsigned threads) {
    std::vector<std::jthread> workers;
    workers.reserve(threads);
    // Before the workers are joined, they are told; also where a thread could not be started.
    struct Stop {
      OrderedJobs& jobs;
      ~Stop() { jobs.stop(); }
    } const stop_at_the_end{*this};
    while (workers.size() < threads) workers.emplace_back([this] { work_on(); });
    for (std::size_t index = 0; index < count_; ++index) {
      if (const std::exception_ptr failure = wait_for(index)) std::rethrow_exception(failure);
      consume_(index, slot_of(index));
      free_slot();
    }
  }

 private:
  struct Result {
    bool is_there = false;
    std::exception_ptr failure;
  };

  [[nodiscard]] std::size_t slot_of(std::size_t index) const { return index % results_.size(); }

  void work_on() {
    while (const auto index = take()) {
      std::exception_ptr failure;
      try {
        work_(*index, slot_of(*index));
      } catch (...) {
        failure = std::current_exception();
      }
      const std::scoped_lock lock(mutex_);
      // Later jobs would be for nothing: the consumer ends here.
      if (failure) is_stopped_ = true;
      results_[slot_of(*index)] = {true, std::move(failure)};
      if (*index == consumed_) has_next_.notify_one();
    }
  }

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

  void stop() {
    const std::scoped_lock lock(mutex_);
    is_stopped_ = true;
    has_room_.notify_all();
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

}  // namespace

ParallelOptions resolved(ParallelOptions options) {
  if (options.jobs == 0) options.jobs = std::max(1U, std::thread::hardware_concurrency());
  if (options.window == 0) options.window = options.jobs * kResultsPerThread;
  return options;
}

namespace detail {

void run_in_order(std::size_t count, const ParallelOptions& options, const Step& work,
                  const Step& consume) {
  const auto [jobs, window] = resolved(options);
  if (jobs > 1 && count > 1) {
    OrderedJobs(count, window, work, consume)
        .run(static_cast<unsigned>(std::min<std::size_t>(jobs, count)));
    return;
  }
  for (std::size_t index = 0; index < count; ++index) {
    work(index, 0);
    consume(index, 0);
  }
}

}  // namespace detail

}  // namespace plimsoll
