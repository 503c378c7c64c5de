/// How far a long command is, on a terminal.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace plimsoll {

/// One line on standard error, drawn anew a few times a second and gone at the end; nothing where
/// standard error is no terminal.
class Progress {
 public:
  /// `before` of `total` were done by another process; of `what`, "runs".
  Progress(std::size_t total, std::size_t before, std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::size_t done);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(std::size_t done, Clock::time_point now);

  const bool is_shown_;
  const std::size_t total_, before_;
  const std::string what_;
  const Clock::time_point start_;
  Clock::time_point drawn_;
};

}  // namespace plimsoll
