/// What Ctrl-C does: the program ends at once, with exit code 130, and leaves no file half-written.
#pragma once

#include <csignal>

namespace plimsoll {

inline constexpr int kExitInterrupted = 130;

/// From now on an interrupt ends the program with a word on standard error; unless interrupts are
/// ignored, as those of a background job are.
void end_on_interrupt();

/// While it lives, interrupts wait: files are being written.
class WritingFiles {
 public:
  WritingFiles();
  ~WritingFiles();
  WritingFiles(const WritingFiles&) = delete;
  WritingFiles& operator=(const WritingFiles&) = delete;

 private:
  sigset_t before_;
};

}  // namespace plimsoll
