/// Networks on meshes of ranks, played: of transformers that are small, but have all of a large one.
#pragma once

#include "plan/build/gathers_ahead.hpp"
#include "plan/build/spread_plan.hpp"
#include "policy/parallel/mesh_options.hpp"
#include "policy/parallel/trainers.hpp"
#include "support/mirrored.hpp"
#include "support/policies.hpp"
#include "workload/sharding/sharded_step.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace plimsoll::test {

/// A mesh of tensor x context x expert x data x pipeline, of a network on it.
struct Mesh {
  std::int64_t tensor = 1, context = 1, expert = 1, data = 1, pipeline = 1;
  bool sequence = false, overlap = false;
  std::int64_t stage = 0;  ///< of sharding
  std::int64_t group = 0;  ///< of sharding; 0: all of the data axis
  const char* collectives = "ring";
  const char* play = "once";
  std::string policy = "none";  ///< a name, with parameters before its last brace, or without

  [[nodiscard]] std::int64_t ranks() const { return tensor * context * expert * data * pipeline; }
  /// Of the data axis, those that divide state.
  [[nodiscard]] std::int64_t sharing() const { return group > 0 ? group : data; }
};

/// A policy of one processor or, of several layers, a pipeline at times; `from(least, most)` is random.
template <class From>
void choose_policy(Mesh& mesh, int layers, const From& from) {
  const char* const policies[] = {"none", "{name: remat/blocks, blocks: [\"block_*\"]}",
                                  "remat/sqrt"};
  mesh.policy = policies[from(0, 2)];
  if (layers < 2 || from(0, 2) > 0) return;
  mesh.pipeline = 2;
  const char* const pipelines[] = {"{name: pipeline/1f1b, microbatches: 3}",
                                   "{name: pipeline/gpipe, microbatches: 2, recompute: full}",
                                   "{name: pipeline/zb-h1, microbatches: 3}",
                                   "{name: pipeline/1f1b, microbatches: 3, recompute: {policy: "
                                   "remat/blocks, blocks: [\"block_*\"]}}"};
  mesh.policy = pipelines[from(0, 3)];
}

inline MeshOptions options_of(const Mesh& mesh) {
  Diagnostics diagnostics;
  const std::string text = fmt::format(
      "{{tensor: {}, context: {}, expert: {}, data: {}, pipeline: {}, sequence: {}, overlap: {}, "
      "collectives: {}, play: {}}}",
      mesh.tensor, mesh.context, mesh.expert, mesh.data, mesh.pipeline,
      mesh.sequence && mesh.tensor > 1, mesh.overlap && mesh.tensor > 1, mesh.collectives,
      mesh.play);
  const auto options = parallel_format().read(parse_document(text, "parallel"), diagnostics);
  diagnostics.throw_if_errors();
  return *options;
}

inline WorkloadOptions trained(const Mesh& mesh, std::int64_t batch = 2) {
  WorkloadOptions options;
  options.dtype = DType::bf16;
  options.batch = batch;
  if (mesh.tensor > 1) options.tensor = {{"scenario.yaml", 1, 1}, mesh.tensor, std::nullopt};
  if (mesh.tensor > 1 && mesh.sequence) options.tensor->sequence = Location{"scenario.yaml", 1, 9};
  if (mesh.tensor > 1) options.tensor->overlaps = mesh.overlap;
  if (mesh.context > 1) options.context = {mesh.context, {"scenario.yaml", 1, 1}};
  if (mesh.expert > 1) options.expert = {mesh.expert, {"scenario.yaml", 1, 1}};
  return options;
}

inline Spreading spreading_of(const Mesh& mesh, const Platform& platform,
                              const MeshOptions& options) {
  Spreading spreading = mesh_of(platform, options);
  spreading.first_bucket = kFirstBucket;
  spreading.bucket = kBucket;
  if (mesh.stage == 1) spreading.of_gradients = CollectiveKind::reduce_scatter;
  if (mesh.stage > 1) spreading.of_gradients = CollectiveKind::none;
  spreading.gathers_parameters = mesh.stage == 1 || mesh.stage == 2;
  if (mesh.stage > 0) divide_into_groups(spreading, options, {mesh.sharing(), {}});
  return spreading;
}

/// The step as a rank runs it; stages of a pipeline gather what the plan then gathers ahead.
inline Workload step_of_rank(const Mesh& mesh, const Workload& step) {
  if (mesh.stage == 0) return step;
  const bool by_stage = mesh.pipeline > 1 && mesh.stage > 1;
  return sharded_step(step, {mesh.stage, mesh.context * mesh.expert * mesh.sharing(),
                             by_stage ? 0 : 1, true, by_stage, mesh.context * mesh.sharing()});
}

inline Played played(const Mesh& mesh, const Workload& step, const Platform& platform) {
  static std::vector<std::unique_ptr<std::pair<Workload, Platform>>> kept;  // Played refers to them
  const auto& [workload, machine] = *kept.emplace_back(
      std::make_unique<std::pair<Workload, Platform>>(step_of_rank(mesh, step), platform));
  const MeshOptions options = options_of(mesh);
  const Spreading spreading = spreading_of(mesh, machine, options);
  std::string devices;
  for (const auto& likes : spreading.likes)
    devices += (devices.empty() ? "" : ", ") + machine[likes.front()].name;
  const bool is_pipeline = mesh.policy.find("pipeline/") != std::string::npos;
  const std::string policy = with_parameters(
      mesh.policy, is_pipeline ? ", devices: [" + devices + "]" : ", on: " + devices);
  const Topology topology(machine);
  const ChainView view = is_pipeline ? pipeline_view(workload) : chain_view(workload);
  const Problem problem{workload, view, machine, topology, judge_by_execution};
  Plan of_one = std::get<Plan>(bound_policy(policy).plan(problem));
  if (is_pipeline && mesh.stage > 1) of_one = with_gathers_ahead(std::move(of_one), workload, 1);
  Played it = play(plan_of_ranks(of_one, problem, options, spreading), workload, machine);
  require_claims_hold(it);
  return it;
}

/// Whether one rank may be played for all: then it has their figures. All run to their end.
inline bool one_stands_for_all(Mesh mesh, const Workload& step, const Platform& platform) {
  mesh.play = "all";
  const Played all = played(mesh, step, platform);
  REQUIRE(all.execution.status == RunStatus::ok);
  mesh.play = "once";
  try {
    require_same_figures(played(mesh, step, platform), all);
    return true;
  } catch (const InputError& error) {
    CHECK(std::string(error.what()).find("cannot be played for all") != std::string::npos);
    return false;
  }
}

/// Megatron's layers; `ends`: between a vocabulary's embedding and its loss.
inline std::string megatron(int layers, std::int64_t sequence, std::int64_t hidden,
                            std::int64_t heads, bool ends = false) {
  return fmt::format(
      "workload: net\nwith: {{heads: {1}}}\ninput: {0}\n{2}blocks:\n  block:\n    layers:\n      - "
      "layer_norm\n      - attention: {{heads: heads}}\n      - dropout\n      - add: {{skip: "
      "input, "
      "name: middle}}\n      - layer_norm\n      - linear: 4 * in\n      - gelu\n      - linear: "
      "in / "
      "4\n      - dropout\n      - add: {{skip: middle}}\nlayers:\n{3}  - block: {{repeat: "
      "{4}}}\n{5}",
      ends ? fmt::format("{{shape: [{}], type: indices}}", sequence)
           : fmt::format("[{}, {}]", sequence, hidden),
      heads, ends ? "" : "loss: sum\n",
      ends ? fmt::format(
                 "  - embedding: {{entries: 96, features: {}}}\n  - position_embedding: {}\n",
                 hidden, sequence)
           : "",
      layers, ends ? "  - layer_norm\n  - linear: {features: 96, bias: false}\n" : "");
}

inline std::string llama(int layers, std::int64_t sequence, std::int64_t kv_heads) {
  return fmt::format(
      "workload: net\nframework: pytorch-2\ninput: {{shape: [{0}], type: indices}}\nblocks:\n  "
      "block:\n    layers:\n      - rms_norm\n      - grouped_attention: {{heads: 12, kv_heads: "
      "{1}, "
      "size: 4, out: 48, norm: true}}\n      - add: {{skip: input, name: middle}}\n      - "
      "rms_norm\n"
      "      - mixture: {{experts: 4, top_k: 2, features: 24, out: 48, name: routed}}\n      - "
      "gated_mlp: {{from: middle, features: 36, out: 48}}\n      - add: {{skip: "
      "routed}}\nlayers:\n  "
      "- embedding: {{entries: 96, features: 48}}\n  - block: {{repeat: {2}}}\n  - rms_norm\n  - "
      "linear: {{features: 96, bias: false}}\n",
      sequence, kv_heads, layers);
}

}  // namespace plimsoll::test
