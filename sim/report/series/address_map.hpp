/// Where everything lay in a memory with addresses, over time: rectangles of addresses and time.
///
/// The segments of an allocator are stacked in the order in which they were created, each as high as
/// it ever was. An arena is one segment, as large as what plans may use of the memory; of an
/// unlimited one up to the end of the highest block.
#pragma once

#include "execution/recording.hpp"

#include <cstddef>
#include <vector>

namespace plimsoll {

struct AddressMap {
  struct Block {
    Placement placement;
    Bytes address;  ///< in the stack
  };
  /// Addresses that the allocator holds: free where no block is.
  struct Range {
    Bytes address, size;
    Time begin;
    Time end;  ///< unlimited() where it outlives the run
  };
  MemoryId memory{};
  std::vector<Bytes> segments;  ///< where each begins, from 0 on
  std::vector<Range> ranges;    ///< by begin, then address
  std::vector<Block> blocks;    ///< by begin, then address
  std::size_t left_out = 0;     ///< blocks that were thinned away
  Bytes largest_left_out;
  std::size_t ranges_left_out = 0;
};

/// Of memories in which any block lay, in the platform's order. Blocks that come and go in one
/// instant are not in it. O(blocks log blocks).
[[nodiscard]] std::vector<AddressMap> address_maps(const Program& program,
                                                   const Recording& recording);

/// The `most` blocks, and as many ranges, of the largest bytes times time. O(blocks log blocks).
[[nodiscard]] AddressMap thinned(AddressMap map, Time end, std::size_t most);

}  // namespace plimsoll
