/// The registry entries, one from each policy's file.
#pragma once

#include "policy/interface/policy.hpp"

namespace plimsoll {

[[nodiscard]] PolicyInfo hybrid_best_policy();
[[nodiscard]] PolicyInfo hybrid_pofo_policy();
[[nodiscard]] PolicyInfo none_policy();
[[nodiscard]] PolicyInfo offload_all_policy();
[[nodiscard]] PolicyInfo offload_autoswap_policy();
[[nodiscard]] PolicyInfo offload_capuchin_policy();
[[nodiscard]] PolicyInfo offload_dynamic_policy();
[[nodiscard]] PolicyInfo offload_eager_policy();
[[nodiscard]] PolicyInfo offload_exact_policy();
[[nodiscard]] PolicyInfo offload_greedy_policy();
[[nodiscard]] PolicyInfo offload_prefix_policy();
[[nodiscard]] PolicyInfo offload_save_on_cpu_policy();
[[nodiscard]] PolicyInfo offload_superneurons_policy();
[[nodiscard]] PolicyInfo offload_torchtune_policy();
[[nodiscard]] PolicyInfo offload_transformer_engine_policy();
[[nodiscard]] PolicyInfo offload_vdnn_plus_plus_policy();
[[nodiscard]] PolicyInfo offload_vdnn_all_policy();
[[nodiscard]] PolicyInfo offload_vdnn_conv_policy();
[[nodiscard]] PolicyInfo offload_vdnn_dyn_policy();
[[nodiscard]] PolicyInfo pipeline_1f1b_policy();
[[nodiscard]] PolicyInfo pipeline_1f1b_star_policy();
[[nodiscard]] PolicyInfo pipeline_1f1b_v_policy();
[[nodiscard]] PolicyInfo pipeline_bpipe_policy();
[[nodiscard]] PolicyInfo pipeline_chimera_policy();
[[nodiscard]] PolicyInfo pipeline_csv_policy();
[[nodiscard]] PolicyInfo pipeline_dualpipe_policy();
[[nodiscard]] PolicyInfo pipeline_dualpipe_v_policy();
[[nodiscard]] PolicyInfo pipeline_gis_policy();
[[nodiscard]] PolicyInfo pipeline_gis_h_policy();
[[nodiscard]] PolicyInfo pipeline_gpipe_policy();
[[nodiscard]] PolicyInfo pipeline_hanayo_policy();
[[nodiscard]] PolicyInfo pipeline_interleaved_1f1b_policy();
[[nodiscard]] PolicyInfo pipeline_interleaved_zb_policy();
[[nodiscard]] PolicyInfo pipeline_looped_bfs_policy();
[[nodiscard]] PolicyInfo pipeline_periodic_policy();
[[nodiscard]] PolicyInfo pipeline_pipedream_policy();
[[nodiscard]] PolicyInfo pipeline_pipedream_2bw_policy();
[[nodiscard]] PolicyInfo pipeline_pipeoffload_policy();
[[nodiscard]] PolicyInfo pipeline_search_policy();
[[nodiscard]] PolicyInfo pipeline_v_half_policy();
[[nodiscard]] PolicyInfo pipeline_v_min_policy();
[[nodiscard]] PolicyInfo pipeline_zb_1p_policy();
[[nodiscard]] PolicyInfo pipeline_zb_2p_policy();
[[nodiscard]] PolicyInfo pipeline_zb_h1_policy();
[[nodiscard]] PolicyInfo pipeline_zb_h2_policy();
[[nodiscard]] PolicyInfo pipeline_zb_v_policy();
[[nodiscard]] PolicyInfo remat_blocks_policy();
[[nodiscard]] PolicyInfo remat_chen_greedy_policy();
[[nodiscard]] PolicyInfo remat_double_policy();
[[nodiscard]] PolicyInfo remat_every_stage_policy();
[[nodiscard]] PolicyInfo remat_exact_policy();
[[nodiscard]] PolicyInfo remat_mixed_policy();
[[nodiscard]] PolicyInfo remat_nonpersistent_policy();
[[nodiscard]] PolicyInfo remat_revolve_policy();
[[nodiscard]] PolicyInfo remat_rotor_policy();
[[nodiscard]] PolicyInfo remat_select_dp_policy();
[[nodiscard]] PolicyInfo remat_select_linear_policy();
[[nodiscard]] PolicyInfo remat_sqrt_policy();
[[nodiscard]] PolicyInfo remat_two_level_policy();

/// Why there is no policy of that name: with the nearest name.
[[nodiscard]] Diagnostic no_such_policy(const std::string& name, const Location& where);

}  // namespace plimsoll
