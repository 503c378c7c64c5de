/// Which slots of a pipeline something is done to, and for which of their microbatches: how
/// `offload` is written, and `recompute` where it is about whole slots.
#pragma once

#include "base/format.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

struct SlotChoice {
  std::vector<std::int64_t> slots;  ///< along the network, from 0; empty: all of them
  Ratio share = kWhole;             ///< of the microbatches of each, evenly spread; at most all

  [[nodiscard]] static SlotChoice none() { return {{}, Ratio{}}; }
  [[nodiscard]] bool is_none() const { return share == Ratio{}; }
  [[nodiscard]] bool takes(std::uint32_t slot, std::uint32_t microbatch) const;
};

/// A list of slots.
[[nodiscard]] Format<SlotChoice> slot_list_format();

/// `none`, `all`, a list of slots, or a share of the microbatches.
[[nodiscard]] Format<SlotChoice> offload_format();

}  // namespace plimsoll
