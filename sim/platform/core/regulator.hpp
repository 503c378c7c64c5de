/// What the source of a platform's regulator delivers for a load: load / efficiency, rounded alike
/// wherever that is charged.
#pragma once

#include "platform/core/platform.hpp"

namespace plimsoll {

[[nodiscard]] inline Energy at_source(const Platform& platform, Energy load) {
  const Ratio efficiency = platform.regulator_efficiency;
  return load + Energy{load.count() / efficiency.count() * (kWhole - efficiency).count()};
}

[[nodiscard]] inline Power at_source(const Platform& platform, Power load) {
  const Energy in_one_second = load * Time{kWhole.count() * 1000};
  return Power{static_cast<std::int64_t>(in_one_second.count() /
                                         platform.regulator_efficiency.count() / 1000)};
}

}  // namespace plimsoll
