/// Cuts of a pipeline written as Megatron-LM's layout string (layout.hpp reads it).
#pragma once

#include "policy/pipeline/partition/layout.hpp"

#include <string>
#include <vector>

namespace plimsoll {

/// `cuts` are the numbers of chain stages before each slot, 0 first. Of a network E is what comes
/// before its blocks, L what comes after them; stages of an abstract chain are all `t`. Equal
/// stages and layers that follow each other are written as repeats. Throws InputError at `where`
/// where a cut is inside a layer, which a layout cannot say. O(stages).
[[nodiscard]] std::string layout_text(const Workload& workload, const ChainView& chain,
                                      const std::vector<std::size_t>& cuts, const Location& where);

}  // namespace plimsoll
