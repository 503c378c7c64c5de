/// PyTorch's schedule CSV (torch/distributed/pipelining/schedules.py).
///
/// No header; row r is rank r; cells in program order: `0F1` forward of stage 0 for microbatch 1,
/// `I` and `W` the halves of its backward, `B` the whole one, `(0F4;7B0)OVERLAP_F_B` a pair, an
/// empty cell nothing (compute_only). A file that has any of `0SEND_F1`, `1RECV_F1`, `SEND_B`,
/// `RECV_B` (the stage is the sender's and the receiver's), `0UNSHARD`, `0RESHARD` or
/// `0REDUCE_GRAD` is in the form compute_comms: it has all messages, and no empty cell.
///
/// Stricter than PyTorch: text after an action, repeated and missing actions and messages, and
/// orders that hang are errors. A send starts when the rank has come to it, and does not hold the
/// rank up; a receive holds the rank up until the value is there, where PyTorch's runtime waits
/// only at the action that reads it: so an order that does not hang here does not hang there.
/// Gathering and dropping parameters and reducing gradients are checked for their order, and cost
/// nothing: a pipeline here is one replica.
#pragma once

#include "policy/pipeline/schedule/schedule.hpp"

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
