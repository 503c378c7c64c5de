#include "base/rounded_text.hpp"

#include "base/quantity_text.hpp"

namespace plimsoll {

namespace {

std::string all_digits(Bytes bytes) {
  return std::to_string(bytes.count()) + " B";
}

}  // namespace

std::string text_beside(Bytes bytes, Bytes other) {
  const bool reads_alike = bytes != other && to_text(bytes) == to_text(other);
  return reads_alike ? all_digits(bytes) : to_text(bytes);
}

std::string exact_text(Bytes bytes) {
  return is_rounded_in_text(bytes) ? all_digits(bytes) : to_text(bytes);
}

bool is_rounded_in_text(Bytes bytes) {
  return parse_quantity<Bytes>(to_text(bytes)).value != bytes;
}

}  // namespace plimsoll
