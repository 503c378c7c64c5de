#include "progress.hpp"

#include "base/quantity.hpp"
#include "report/style.hpp"

#include <cstdio>
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
    : is_shown_(isatty(STDERR_FILENO) != 0),
      total_(total),
      before_(before),
      what_(std::move(what)),
      start_(Clock::now()) {}

Progress::~Progress() {
  if (is_shown_) std::fputs(kClearLine, stderr);
}

void Progress::update(std::size_t done) {
  if (!is_shown_) return;
  const Clock::time_point now = Clock::now();
  if (now - drawn_ >= kBetweenDrawings) draw(done, now);
}

void Progress::draw(std::size_t done, Clock::time_point now) {
  drawn_ = now;
  const double passed = std::chrono::duration<double>(now - start_).count();
  const double rate = passed > 0 ? static_cast<double>(done - before_) / passed : 0;
  const double share = total_ > 0 ? static_cast<double>(done) / static_cast<double>(total_) : 1.0;
  std::string filled = bar(share, kBarWidth);
  filled.append(kBarWidth - width_of(filled), ' ');
  fmt::print(stderr, "{}{} {} of {} {}   {}/s   {} left", kClearLine, filled,
             thousands(static_cast<std::int64_t>(done)),
             thousands(static_cast<std::int64_t>(total_)), what_, decimal(rate),
             rate > 0 ? time_text(static_cast<double>(total_ - done) / rate) : "?");
  std::fflush(stderr);
}

}  // namespace plimsoll
