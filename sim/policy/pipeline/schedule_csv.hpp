/// PyTorch's schedule CSV in its compute_only form (torch/distributed/pipelining/schedules.py).
///
/// No header; row r is rank r; cells in program order: `0F1` forward of stage 0 for microbatch 1,
/// `I` and `W` the halves of its backward, `B` the whole one, `(0F4;7B0)OVERLAP_F_B` a pair, an
/// empty cell nothing. Stricter than PyTorch: text after an action, repeated and missing actions,
/// and orders that hang are errors.
#pragma once

#include "policy/pipeline/schedule.hpp"

#include <filesystem>

namespace plimsoll {

struct CsvSchedule {
  Schedule schedule;
  std::uint32_t microbatches = 0;
  bool splits_backward = false;  ///< some backward runs in halves
};

/// Parses and validates `text`; `origin` names it in messages. O(cells log cells). Throws
/// InputError with all errors at file:line:column, a hang among them with the cycle of ranks that
/// wait.
[[nodiscard]] CsvSchedule parse_schedule_csv(const std::string& text, const std::string& origin);

/// Reads a regular file of at most 32 MiB. Throws InputError.
[[nodiscard]] CsvSchedule read_schedule_csv(const std::filesystem::path& path);

}  // namespace plimsoll
