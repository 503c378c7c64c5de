/// The room of a storage as a policy hands it out, tensor by tensor. All that leaves in a step is
/// there at once at the loss, so that nothing is given back.
#pragma once

#include "policy/interface/policy.hpp"

namespace plimsoll {

class StorageRoom {
 public:
  StorageRoom(const Problem& problem, MemoryId storage)
      : left_(problem.platform[storage].usable()) {}

  [[nodiscard]] bool has(Bytes bytes) const { return bytes <= left_; }
  /// Whether there was room.
  bool take(Bytes bytes) {
    if (!has(bytes)) return false;
    if (!left_.is_unlimited()) left_ -= bytes;
    return true;
  }

 private:
  Bytes left_;
};

}  // namespace plimsoll
