#include "progress.hpp"

#include "base/quantity.hpp"
#include "report/text/style.hpp"

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <unistd.h>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::size_t kBarWidth = 24;
constexpr std::chrono::milliseconds kBetweenDrawings{200};
constexpr const char* kClearLine = "\r\033[K";

std::string time_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace

Progress::Progress(std::size_t total, std::size_t before, std::string what)
    : total_(total), before_(before), what_(std::move(what)), start_(Clock::now()), done_(before) {
  if (isatty(STDERR_FILENO) == 0) return;
  draw();
  drawer_ = std::jthread([this](const std::stop_token& end) { draw_until(end); });
}

Progress::~Progress() {
  if (!drawer_.joinable()) return;
  drawer_.request_stop();
  drawer_.join();
  std::fputs(kClearLine, stderr);
}

void Progress::draw_until(const std::stop_token& end) const {
  std::mutex mutex;
  std::condition_variable_any is_ended;
  std::unique_lock lock(mutex);
  while (!is_ended.wait_for(lock, end, kBetweenDrawings, [&] { return end.stop_requested(); }))
    draw();
}

void Progress::draw() const {
  const std::size_t done = done_;
  const double passed = std::chrono::duration<double>(Clock::now() - start_).count();
  const double rate = passed > 0 ? static_cast<double>(done - before_) / passed : 0;
  const double share = total_ > 0 ? static_cast<double>(done) / static_cast<double>(total_) : 1.0;
  std::string filled = bar(share, kBarWidth);
  filled.append(kBarWidth - width_of(filled), ' ');
  fmt::print(stderr, "{}{} {} of {} {}", kClearLine, filled,
             thousands(static_cast<std::int64_t>(done)),
             thousands(static_cast<std::int64_t>(total_)), what_);
  if (rate > 0)
    fmt::print(stderr, "   {}/s   {} left", decimal(rate),
               time_text(static_cast<double>(total_ - done) / rate));
  std::fflush(stderr);
}

}  // namespace plimsoll
