/// The work of the planners of a command: limited, and shown on a terminal.
#pragma once

#include "base/work.hpp"

#include <chrono>
#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace plimsoll {

/// Adds `--limit-work STEPS` to a command: a limit for the planning of each of its runs.
void add_limit_work(CLI::App& command, std::int64_t& limit);

/// The meter of one planner. On a terminal its steps are shown on a line of standard error, from
/// the second second on and a few times a second, that is gone at the end.
class Planning {
 public:
  Planning(std::string policy, std::int64_t limit);
  ~Planning();
  Planning(const Planning&) = delete;
  Planning& operator=(const Planning&) = delete;

  [[nodiscard]] Work work() { return Work(&meter_); }

 private:
  using Clock = std::chrono::steady_clock;
  void show();

  const std::string policy_;
  WorkMeter meter_;
  Clock::time_point next_;
  bool is_shown_ = false;
};

}  // namespace plimsoll
