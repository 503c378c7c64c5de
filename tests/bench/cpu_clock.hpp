/// What the benchmarks have in common: CPU time, and numbers from the command line.
#pragma once

#include <cstdlib>
#include <ctime>

namespace bench {

/// Seconds of CPU time of this process, which other load disturbs less than wall time.
inline double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// The argument at `index`, or `otherwise`.
inline long argument(int argc, char** argv, int index, long otherwise) {
  return index < argc ? std::strtol(argv[index], nullptr, 10) : otherwise;
}

}  // namespace bench
