#include "policy/interface/registry.hpp"

#include "policy/interface/policy.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

std::span<const PolicyInfo> policies() {
  static const std::vector<PolicyInfo> all{
      hybrid_best_policy(),                 //
      hybrid_pofo_policy(),                 //
      none_policy(),                        //
      offload_all_policy(),                 //
      offload_autoswap_policy(),            //
      offload_capuchin_policy(),            //
      offload_dynamic_policy(),             //
      offload_eager_policy(),               //
      offload_exact_policy(),               //
      offload_greedy_policy(),              //
      offload_prefix_policy(),              //
      offload_save_on_cpu_policy(),         //
      offload_superneurons_policy(),        //
      offload_torchtune_policy(),           //
      offload_transformer_engine_policy(),  //
      offload_vdnn_plus_plus_policy(),      //
      offload_vdnn_all_policy(),            //
      offload_vdnn_conv_policy(),           //
      offload_vdnn_dyn_policy(),            //
      pipeline_1f1b_policy(),               //
      pipeline_1f1b_star_policy(),          //
      pipeline_1f1b_v_policy(),             //
      pipeline_bpipe_policy(),              //
      pipeline_chimera_policy(),            //
      pipeline_csv_policy(),                //
      pipeline_dualpipe_policy(),           //
      pipeline_dualpipe_v_policy(),         //
      pipeline_gis_policy(),                //
      pipeline_gis_h_policy(),              //
      pipeline_gpipe_policy(),              //
      pipeline_hanayo_policy(),             //
      pipeline_interleaved_1f1b_policy(),   //
      pipeline_interleaved_zb_policy(),     //
      pipeline_looped_bfs_policy(),         //
      pipeline_periodic_policy(),           //
      pipeline_pipedream_policy(),          //
      pipeline_pipedream_2bw_policy(),      //
      pipeline_pipeoffload_policy(),        //
      pipeline_search_policy(),             //
      pipeline_v_half_policy(),             //
      pipeline_v_min_policy(),              //
      pipeline_zb_1p_policy(),              //
      pipeline_zb_2p_policy(),              //
      pipeline_zb_h1_policy(),              //
      pipeline_zb_h2_policy(),              //
      pipeline_zb_v_policy(),               //
      remat_blocks_policy(),                //
      remat_chen_greedy_policy(),           //
      remat_double_policy(),                //
      remat_every_stage_policy(),           //
      remat_exact_policy(),                 //
      remat_mixed_policy(),                 //
      remat_nonpersistent_policy(),         //
      remat_revolve_policy(),               //
      remat_rotor_policy(),                 //
      remat_select_dp_policy(),             //
      remat_select_linear_policy(),         //
      remat_sqrt_policy(),                  //
      remat_two_level_policy(),             //
  };
  return all;
}

Diagnostic no_such_policy(const std::string& name, const Location& where) {
  std::vector<std::string> names;
  for (const PolicyInfo& known : policies()) names.push_back(known.name);
  return {Severity::error, where, fmt::format("unknown policy `{}`", name),
          did_you_mean(name, names)};
}

const PolicyInfo* find_policy(const std::string& name) {
  const auto found = std::ranges::find(policies(), name, &PolicyInfo::name);
  return found == policies().end() ? nullptr : &*found;
}

std::optional<BoundPolicy> bind_policy(const Node& node, Diagnostics& diagnostics) {
  const Node* name = node.is_mapping() ? node.find("name") : &node;
  if (!name || !name->is_scalar()) {
    diagnostics.error(
        node.where(),
        fmt::format("a policy is a name or a mapping with `name`; found {}", node.describe()));
    return std::nullopt;
  }
  const PolicyInfo* policy = find_policy(name->scalar());
  if (!policy) {
    Diagnostic problem = no_such_policy(name->scalar(), name->where());
    diagnostics.error(problem.where, std::move(problem.message), std::move(problem.hint));
    return std::nullopt;
  }
  if (node.is_mapping()) return policy->bind(node, diagnostics);
  Node mapping = parse_value("{}", node.where().origin);
  mapping.set("name", node, diagnostics);
  return policy->bind(mapping, diagnostics);
}

}  // namespace plimsoll
