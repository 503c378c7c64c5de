/// The commands of the program. Each adds its arguments to the parser, and runs after it has
/// parsed.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace plimsoll {

/// Exit codes: 0 fine; 1 a run says no (oom, deadlock, infeasible, regression); 2 bad input or
/// usage.
inline constexpr int kExitFine = 0;
inline constexpr int kExitSaysNo = 1;
inline constexpr int kExitBadInput = 2;

struct Command {
  CLI::App* arguments = nullptr;
  std::function<int()> run;  ///< returns the exit code; may throw InputError
};

[[nodiscard]] Command run_command(CLI::App& program);
[[nodiscard]] Command sweep_command(CLI::App& program);
[[nodiscard]] Command export_command(CLI::App& program);
[[nodiscard]] Command check_command(CLI::App& program);
[[nodiscard]] Command capacity_command(CLI::App& program);
[[nodiscard]] Command calibrate_command(CLI::App& program);
[[nodiscard]] Command place_command(CLI::App& program);
[[nodiscard]] Command replay_command(CLI::App& program);
[[nodiscard]] Command list_command(CLI::App& program);
[[nodiscard]] Command validate_command(CLI::App& program);

}  // namespace plimsoll
