/// The settings of the BFC allocator.
#pragma once

#include "base/quantity.hpp"

namespace plimsoll {

/// Sources: reference of memory/bfc.hpp.
struct BfcSettings {
  /// Regions are taken as they are needed, each twice as large as the one before, instead of one
  /// region of the whole memory. An unlimited memory always grows.
  bool growth = false;
  Bytes first_region{2 << 20};  ///< with growth; more than 0
  /// Regions that are one free chunk are given back before a last try. Without growth that changes
  /// nothing.
  bool give_back_regions = false;

  bool operator==(const BfcSettings&) const = default;
};

}  // namespace plimsoll
