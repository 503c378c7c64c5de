#include "interrupt.hpp"

#include <string_view>
#include <unistd.h>

namespace plimsoll {

namespace {

/// Nothing but what a signal handler may call.
void end_now(int /*signal*/) {
  constexpr std::string_view kOnTerminal = "\r\033[Kplimsoll: interrupted\n";
  constexpr std::string_view kElsewhere = "plimsoll: interrupted\n";
  const std::string_view text = isatty(STDERR_FILENO) != 0 ? kOnTerminal : kElsewhere;
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  ::_exit(kExitInterrupted);
}

sigset_t interrupts() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  return set;
}

}  // namespace

void end_on_interrupt() {
  struct sigaction before = {};
  if (sigaction(SIGINT, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) return;
  struct sigaction action = {};
  action.sa_handler = end_now;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

WritingFiles::WritingFiles() {
  const sigset_t set = interrupts();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
}

WritingFiles::~WritingFiles() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace plimsoll
