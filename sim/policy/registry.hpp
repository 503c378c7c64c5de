/// The entries, one from each policy's file.
#pragma once

#include "policy/policy.hpp"

namespace plimsoll {

[[nodiscard]] PolicyInfo none_policy();
[[nodiscard]] PolicyInfo offload_all_policy();
[[nodiscard]] PolicyInfo offload_autoswap_policy();
[[nodiscard]] PolicyInfo offload_capuchin_policy();
[[nodiscard]] PolicyInfo offload_eager_policy();
[[nodiscard]] PolicyInfo offload_prefix_policy();
[[nodiscard]] PolicyInfo offload_save_on_cpu_policy();
[[nodiscard]] PolicyInfo offload_superneurons_policy();
[[nodiscard]] PolicyInfo offload_torchtune_policy();
[[nodiscard]] PolicyInfo offload_transformer_engine_policy();
[[nodiscard]] PolicyInfo offload_vdnn_all_policy();
[[nodiscard]] PolicyInfo offload_vdnn_conv_policy();
[[nodiscard]] PolicyInfo offload_vdnn_dyn_policy();
[[nodiscard]] PolicyInfo offload_vdnn_plus_plus_policy();
[[nodiscard]] PolicyInfo pipeline_1f1b_policy();
[[nodiscard]] PolicyInfo pipeline_gpipe_policy();
[[nodiscard]] PolicyInfo remat_every_stage_policy();
[[nodiscard]] PolicyInfo remat_sqrt_policy();

}  // namespace plimsoll
