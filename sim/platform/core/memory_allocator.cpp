#include "platform/core/memory_allocator.hpp"

namespace plimsoll {

Allocator make_allocator(const Memory& memory, Bytes usable) {
  switch (memory.allocator) {
    case AllocatorKind::ideal:
      break;
    case AllocatorKind::best_fit:
      return Allocator::best_fit(usable, memory.alignment);
    case AllocatorKind::caching:
      return Allocator::caching(memory.usable(), memory.caching);
  }
  return Allocator::ideal(usable);
}

}  // namespace plimsoll
