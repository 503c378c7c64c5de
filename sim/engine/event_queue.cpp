#include "engine/event_queue.hpp"

#include <algorithm>
#include <limits>

namespace plimsoll {

void EventQueue::renumber() {
  // A sorted array is a heap, and stays one when the sequence numbers follow its order.
  auto& keys = heap_.items();
  std::sort(keys.begin(), keys.end());
  constexpr Key kSequence = Key{std::numeric_limits<std::uint32_t>::max()} << 32;
  sequence_ = 0;
  for (Key& key : keys) key = (key & ~kSequence) | Key{sequence_++} << 32;
}

}  // namespace plimsoll
