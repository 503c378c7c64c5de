/// What became of a trace: steps, peaks, gaps, who kept segments cut, and how other allocators and
/// settings would have done.
#pragma once

#include "report/text/style.hpp"
#include "scenario/replay/replay.hpp"

#include <string>

namespace plimsoll {

[[nodiscard]] std::string replay_text(const ReplayReport& report, const Style& style);
/// An object; sizes are in bytes. Docs: docs/allocators.md.
[[nodiscard]] std::string replay_json(const ReplayReport& report);

[[nodiscard]] const char* to_text(ReplayStep::What what);

}  // namespace plimsoll
