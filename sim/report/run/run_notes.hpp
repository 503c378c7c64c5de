/// Notes about a run beside its numbers. Internal to this floor.
#pragma once

#include "execution/held_stages.hpp"
#include "scenario/run/run.hpp"

#include <string>
#include <vector>

namespace plimsoll {

/// How far it is from what is proven about plans of its kind, and what its policy planned with; a
/// part of a sentence each.
[[nodiscard]] std::vector<std::string> bound_notes(const RunResult& result);

/// The processors that hold stages: "gpu0, gpu1 and 6 more" where there are more than `most`.
[[nodiscard]] std::string holders_of(const RunResult& result, const HeldStages& stages,
                                     std::size_t most);

/// Claims and how they compare, bounds, choices, and what the numbers rest on; a line each.
[[nodiscard]] std::vector<std::string> notes_of(const RunResult& result);

/// Where the times of a profile are from, and what they say of this platform. Precondition: it was
/// recorded.
[[nodiscard]] std::string recording_note(const RunResult& result);

}  // namespace plimsoll
