#include "planning.hpp"

#include "report/text/style.hpp"

#include <cstdio>
#include <unistd.h>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::chrono::milliseconds kBeforeFirst{1000}, kBetween{200};
constexpr const char* kClearLine = "\r\033[K";
constexpr std::int64_t kMillion = 1'000'000;

}  // namespace

Planning::Planning(std::string policy, std::int64_t limit)
    : policy_(std::move(policy)), meter_(limit), next_(Clock::now() + kBeforeFirst) {
  if (isatty(STDERR_FILENO) != 0) meter_.watch([this](const WorkMeter&) { show(); });
}

Planning::~Planning() {
  if (is_shown_) std::fputs(kClearLine, stderr);
}

void Planning::show() {
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + kBetween;
  is_shown_ = true;
  fmt::print(stderr, "{}planning with {}: {}", kClearLine, policy_,
             thousands(meter_.steps() / kMillion));
  if (meter_.limit() != WorkMeter::kNoLimit)
    fmt::print(stderr, " of {}", thousands(meter_.limit() / kMillion));
  fmt::print(stderr, " million steps of work; Ctrl-C ends it");
  std::fflush(stderr);
}

}  // namespace plimsoll
