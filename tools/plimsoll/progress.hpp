/// How far a long command is, on a terminal.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>

namespace plimsoll {

/// One line on standard error, there at once, drawn anew a few times a second however long nothing
/// ends, and gone at the end; nothing where standard error is no terminal.
class Progress {
 public:
  /// `before` of `total` were done by another process; of `what`, "runs".
  Progress(std::size_t total, std::size_t before, std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::size_t done) { done_ = done; }

 private:
  using Clock = std::chrono::steady_clock;
  void draw() const;
  void draw_until(const std::stop_token& end) const;

  const std::size_t total_, before_;
  const std::string what_;
  const Clock::time_point start_;
  std::atomic<std::size_t> done_;
  std::jthread drawer_;  // the last: it ends before what it reads
};

}  // namespace plimsoll
