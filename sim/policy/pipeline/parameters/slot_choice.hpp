/// Which slots of a pipeline something is done to, and for which of their microbatches: how
/// `recompute` and `offload` are written.
#pragma once

#include "base/format.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

struct SlotChoice {
  std::vector<std::int64_t> slots;  ///< along the network, from 0; empty: all of them
  Ratio share = kWhole;             ///< of the microbatches of each, evenly spread; at most all

  [[nodiscard]] bool is_none() const { return share == Ratio{}; }
  [[nodiscard]] bool takes(std::uint32_t slot, std::uint32_t microbatch) const;
};

/// `none`, `full`, or a list of slots.
[[nodiscard]] Format<SlotChoice> recompute_format();

/// `none`, `all`, a list of slots, or a share of the microbatches.
[[nodiscard]] Format<SlotChoice> offload_format();

}  // namespace plimsoll
