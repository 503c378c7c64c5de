/// Prices, as a user gives them: "1800 EUR", "0.44 EUR/h", "0.31 EUR/kWh".
#pragma once

#include "base/format.hpp"

#include <cstdint>
#include <string>

namespace plimsoll {

/// Millionths of a currency that is named by three capital letters. Currencies are not converted.
struct Money {
  std::int64_t micros = 0;
  std::string currency;
  bool operator==(const Money&) const = default;
};

/// An amount with its currency and `per` behind it: "", "/h", "/kWh". At most nine digits and six
/// decimals.
[[nodiscard]] Format<Money> money(const std::string& per);

}  // namespace plimsoll
