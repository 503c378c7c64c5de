/// What is to be said about a run beside its numbers. Internal to this floor.
#pragma once

#include "scenario/run.hpp"

#include <string>
#include <vector>

namespace plimsoll {

/// How far it is from what is proven about plans of its kind, and what its policy planned with; a
/// part of a sentence each.
[[nodiscard]] std::vector<std::string> bound_notes(const RunResult& result);

/// Claims and how they compare, bounds, choices, and what the numbers rest on; a line each.
[[nodiscard]] std::vector<std::string> notes_of(const RunResult& result);

}  // namespace plimsoll
