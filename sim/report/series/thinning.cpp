#include "report/series/thinning.hpp"

namespace plimsoll {

std::vector<ThinSlice> thinned(const Track& track, Time resolution) {
  std::vector<ThinSlice> all;
  std::vector<std::size_t> last(track.rows, track.slices.size());  ///< of each row, in `all`
  std::vector<Time> longest(track.rows);
  for (const TrackSlice& slice : track.slices) {
    std::size_t& open = last[slice.row];
    const Time length = slice.end - slice.start;
    if (open < all.size() && slice.end - all[open].slice.start <= resolution) {
      ThinSlice& it = all[open];
      it.slice.end = slice.end;
      ++it.count;
      if (length > longest[slice.row]) {
        longest[slice.row] = length;
        it.slice.kind = slice.kind;
        it.slice.step = slice.step;
        it.slice.microbatch = slice.microbatch;
      }
      continue;
    }
    open = all.size();
    longest[slice.row] = length;
    all.push_back({slice});
  }
  return all;
}

}  // namespace plimsoll
