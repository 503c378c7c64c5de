/// The sentences about what a check found, shared by its reports. Internal to this floor.
#pragma once

#include "scenario/suite/suite_check.hpp"

#include <string>

namespace plimsoll {

inline constexpr const char* kHowToUpdate =
    "if that is meant, `plimsoll check --update` records it";

/// "regression", "improvement", "change", "missing", "stale" or "bounds".
[[nodiscard]] const char* to_text(Finding::Kind kind);

/// The finding to tell first. Precondition: there is one.
[[nodiscard]] const Finding& worst_of(const CheckedRun& run);

/// One line: "makespan +3.1 % (412 ms, was 399.6 ms) and 2 more".
[[nodiscard]] std::string first_findings(const CheckedRun& run);

/// A line each, then the explanation; the problems of a run that could not run.
[[nodiscard]] std::string all_findings(const CheckedRun& run);

}  // namespace plimsoll
