/// What people call policies elsewhere: in PyTorch, DeepSpeed, Megatron-LM and papers.
#pragma once

#include <string>

namespace plimsoll {

/// "did you mean `remat/blocks`?" for `remat/selective`; for what is not simulated, what comes nearest.
/// Any case, `_` for `-`, with or without a family before a slash. Empty for a name that is not
/// known. These names are for suggestions alone: none of them runs a policy.
[[nodiscard]] std::string hint_for_other_name(std::string name);

}  // namespace plimsoll
