/// The entries, one from each policy's file.
#pragma once

#include "policy/policy.hpp"

namespace plimsoll {

[[nodiscard]] PolicyInfo none_policy();
[[nodiscard]] PolicyInfo offload_all_policy();
[[nodiscard]] PolicyInfo offload_eager_policy();
[[nodiscard]] PolicyInfo pipeline_1f1b_policy();
[[nodiscard]] PolicyInfo pipeline_chimera_policy();
[[nodiscard]] PolicyInfo pipeline_csv_policy();
[[nodiscard]] PolicyInfo pipeline_dualpipe_policy();
[[nodiscard]] PolicyInfo pipeline_dualpipe_v_policy();
[[nodiscard]] PolicyInfo pipeline_gpipe_policy();
[[nodiscard]] PolicyInfo pipeline_hanayo_policy();
[[nodiscard]] PolicyInfo pipeline_interleaved_1f1b_policy();
[[nodiscard]] PolicyInfo pipeline_looped_bfs_policy();
[[nodiscard]] PolicyInfo pipeline_zb_h1_policy();
[[nodiscard]] PolicyInfo pipeline_zb_h2_policy();
[[nodiscard]] PolicyInfo remat_every_stage_policy();
[[nodiscard]] PolicyInfo remat_sqrt_policy();

/// Names that the design gives to policies which this version does not have, by family.
[[nodiscard]] std::span<const std::string> policies_to_come();

/// Why there is no policy of that name, and what there is.
[[nodiscard]] Diagnostic no_such_policy(const std::string& name, const Location& where);

}  // namespace plimsoll
