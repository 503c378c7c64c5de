#include "base/rounded_text.hpp"

#include "base/quantity_text.hpp"

namespace plimsoll {

bool is_rounded_in_text(Bytes bytes) {
  return parse_quantity<Bytes>(to_text(bytes)).value != bytes;
}

}  // namespace plimsoll
