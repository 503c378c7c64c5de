#include "planning.hpp"

#include "report/text/style.hpp"

#include <cstdio>
#include <unistd.h>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::chrono::milliseconds kBeforeFirst{1000}, kBetweenShown{200};
constexpr const char* kEraseLine = "\r\033[K";
constexpr std::int64_t kStepsShown = 1'000'000;

}  // namespace

void add_limit_work(CLI::App& command, std::int64_t& limit) {
  command
      .add_option("--limit-work", limit,
                  "the most steps of work that planning one run may take; a run that needs more is "
                  "refused. A step takes about a nanosecond, or a few, and the steps are the same "
                  "on every machine")
      ->check(CLI::Range(std::int64_t{1}, WorkMeter::kNoLimit, "POSITIVE"))
      ->type_name("STEPS");
}

Planning::Planning(std::string policy, std::int64_t limit)
    : policy_(std::move(policy)), meter_(limit), next_(Clock::now() + kBeforeFirst) {
  if (isatty(STDERR_FILENO) != 0) meter_.watch([this](const WorkMeter&) { show(); });
}

Planning::~Planning() {
  if (is_shown_) std::fputs(kEraseLine, stderr);
}

void Planning::show() {
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + kBetweenShown;
  is_shown_ = true;
  fmt::print(stderr, "{}planning with {}: {}", kEraseLine, policy_,
             thousands(meter_.steps() / kStepsShown));
  if (meter_.limit() != WorkMeter::kNoLimit)
    fmt::print(stderr, " of {}", thousands(meter_.limit() / kStepsShown));
  fmt::print(stderr, " million steps of work; Ctrl-C ends it");
  std::fflush(stderr);
}

}  // namespace plimsoll
