/// The entries, one from each policy's file.
#pragma once

#include "policy/policy.hpp"

namespace plimsoll {

[[nodiscard]] PolicyInfo none_policy();
[[nodiscard]] PolicyInfo offload_all_policy();
[[nodiscard]] PolicyInfo offload_dynamic_policy();
[[nodiscard]] PolicyInfo offload_eager_policy();
[[nodiscard]] PolicyInfo offload_exact_policy();
[[nodiscard]] PolicyInfo offload_greedy_policy();
[[nodiscard]] PolicyInfo pipeline_1f1b_policy();
[[nodiscard]] PolicyInfo pipeline_gpipe_policy();
[[nodiscard]] PolicyInfo remat_every_stage_policy();
[[nodiscard]] PolicyInfo remat_sqrt_policy();

}  // namespace plimsoll
