/// Results of a sweep for other programs: one row a run, in the order of the points.
///
/// Columns are those of the view `results`, with a search those of `searches`, then the numbers of
/// every memory, link and processor that any run has, under their path in the JSON of a run:
/// "memories.hbm.peak_allocated_bytes". A value that there is not is empty in CSV, and null in
/// JSON.
#pragma once

#include "scenario/sweep/database.hpp"

#include <functional>
#include <string_view>

namespace plimsoll {

using TextSink = std::function<void(std::string_view)>;

/// RFC 4180, with a line of names first. Memory does not grow with the rows. O(cells).
void export_sweep_csv(const Database& results, const TextSink& write);

/// An object a line (https://jsonlines.org). The same otherwise.
void export_sweep_jsonl(const Database& results, const TextSink& write);

}  // namespace plimsoll
