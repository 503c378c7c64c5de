#include "platform/core/memory_allocator.hpp"

namespace plimsoll {

Allocator make_allocator(const Memory& memory, Bytes usable) {
  const Bytes size = takes_segments(memory.allocator) ? memory.usable() : usable;
  return Allocator::of(size, {.kind = memory.allocator,
                              .alignment = memory.alignment,
                              .caching = memory.caching,
                              .bfc = memory.bfc,
                              .placed = memory.placed});
}

}  // namespace plimsoll
