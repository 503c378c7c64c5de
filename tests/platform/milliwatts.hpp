#pragma once

#include "base/quantity.hpp"

namespace plimsoll::test {

inline Power milliwatts(std::int64_t count) {
  return Power{count * 1'000'000};
}

}  // namespace plimsoll::test
