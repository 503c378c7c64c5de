/// The largest batch, the smallest budget, the slowest link that holds: a search over candidates in
/// order, for what is costly to try and need not be monotone.
///
/// Up to `all` candidates are all tried, and the answer is exact. If there are more, `samples`
/// evenly spaced ones are tried first, both ends included.
/// - If these hold up to some candidate and not beyond, the gap after the last that holds is
///   bisected, and the `neighbours` that follow the answer are tried. If none of them holds either,
///   the response is taken to be monotone, and the answer stands.
/// - Otherwise, or if no sample holds, a bisection could end at any of several borders. All
///   candidates are tried, and the answer is exact; if there are more than `scan`, that many evenly
///   spaced ones are tried, and then the gap after the last that holds is bisected.
/// Where no border is expected (`scans`: a policy that decides while it runs), nothing is bisected:
/// all candidates are tried, or `scan` evenly spaced ones.
/// The answer includes the holes that were met, which are runs of candidates before it that do not
/// hold, with bisected borders unless it scans, and whether it is proven.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace plimsoll {

struct LastSearch {
  std::size_t all = 64, samples = 33, neighbours = 4, scan = 1024;
  bool scans = false;
};

struct LastFound {
  std::optional<std::size_t> last;  ///< the last candidate that holds, of those tried
  /// First and last of each run of candidates that do not hold, ascending, all before `last`. There
  /// may be more between candidates that were not tried.
  std::vector<std::pair<std::size_t, std::size_t>> holes;
  std::size_t tried = 0;
  /// The response is not monotone, and has more candidates than are scanned: another one, between
  /// two that were tried, may be the last that holds.
  bool is_cut_short = false;
  bool is_proven = false;  ///< all candidates behind `last` were tried (all at all, without one)
};

/// Searches candidates 0 to `candidates` - 1. `holds` is called once for each that is tried; what
/// it throws is passed on. O(samples + scan + holes x log candidates) calls.
[[nodiscard]] LastFound find_last(std::size_t candidates,
                                  const std::function<bool(std::size_t)>& holds,
                                  const LastSearch& search = {});

}  // namespace plimsoll
