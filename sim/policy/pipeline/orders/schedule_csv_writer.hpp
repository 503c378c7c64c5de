/// Schedules written in PyTorch's CSV (schedule_csv.hpp reads it).
#pragma once

#include "policy/pipeline/schedule/schedule.hpp"

#include <string>

namespace plimsoll {

/// The form compute_only: cells stand in the column of the earliest unit-time slot in which their
/// action can run, with empty ones between, for runtimes that go column by column. Rows are as long
/// as each other. O(tasks log tasks). Precondition: orders without sends, moves and recomputation,
/// which do not wait for each other for ever.
[[nodiscard]] std::string compute_csv(const Schedule& schedule);

/// The form compute_comms: a send right after the action that made the value, a receive as late as
/// the order of the sends of that rank to this one allows: before the action that reads it, or
/// before a later-sent value that is read earlier.
[[nodiscard]] std::string communication_csv(const Schedule& schedule);

}  // namespace plimsoll
