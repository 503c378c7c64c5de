/// Why a run did not end well, in the words that rows, reasons, hints and reports share.
#pragma once

#include "scenario/run/run.hpp"

#include <string>
#include <string_view>

namespace plimsoll {

/// "s2.forward asks for 3 MiB of sram, where 1 MiB of 6 MiB is free, in blocks of at most 512 KiB";
/// the blocks where they are smaller. "s1.forward asks for 8 MiB of sram, which has only 6 MiB".
[[nodiscard]] std::string request_in_words(const OutOfMemory& oom);

/// "4.31 GiB (4627795968 B)": the bytes where the words before them are rounded, so that less or
/// more would be asked for with them.
[[nodiscard]] std::string budget_in_words(Bytes budget);

/// "the smallest budget that it could meet in sram is 8 MiB", or what its search found. Precondition:
/// there is one. `memory` may be empty.
[[nodiscard]] std::string smallest_budget_in_words(const Infeasible& infeasible,
                                                   std::string_view memory);

/// One line, to stand beside the status; empty for a run that ended well. Of a cycle of waits the
/// first ones.
[[nodiscard]] std::string why_it_failed(const RunResult& result);

/// The same, to stand alone: "out of memory: s2.forward asks for ...".
[[nodiscard]] std::string failure_in_words(const RunResult& result);

}  // namespace plimsoll
