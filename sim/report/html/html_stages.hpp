/// POET's three pictures of a plan (Patil et al. 2022): which outputs are in RAM, which on storage, and
/// what is computed, by stage and operator.
///
/// Stage t ends with the first run of the t-th operator; what runs again before it belongs to it. Memory
/// is shown as it is when that run begins. Of more than kMostSide operators neighbours share a cell.
#pragma once

#include "report/html/html_data.hpp"

namespace plimsoll {

inline constexpr std::size_t kMostSide = 40;

/// Of a run of a `hybrid/` policy on one stream that ended well, with up to 2000 operators; else none.
[[nodiscard]] std::vector<HtmlHeatmap> stage_maps(const Scenario& scenario, const RunResult& run);

}  // namespace plimsoll
