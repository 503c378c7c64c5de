/// What a scenario says of training on many processors: the axes of the mesh, and what is sharded
/// over the data axis.
#pragma once

#include "base/format.hpp"
#include "base/quantity.hpp"
#include "platform/core/platform.hpp"
#include "workload/core/collective.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plimsoll {

struct Plan;
struct Problem;
struct RankSymmetry;
struct Spreading;

/// Sizes of axes. Ranks are laid on the devices in their order: neighbours on the first axis of
/// `order` are neighbours among the devices.
struct MeshOptions {
  Location where;
  std::optional<Located<std::int64_t>> data, tensor, pipeline, context, expert;
  std::optional<Located<bool>> sequence;
  std::optional<Located<bool>> overlap;  ///< of the tensor axis with gradients of weights
  std::optional<std::vector<Located<std::string>>> devices;
  enum class Axis : std::uint8_t { tensor, context, expert, data, pipeline };
  std::optional<std::vector<Located<Axis>>> order;  ///< default: as they are listed there
  enum class Algorithm : std::uint8_t { ring, tree, hierarchical, automatic };
  Algorithm collectives = Algorithm::ring;
  std::optional<Located<std::int64_t>> node;  ///< ranks of the data axis in one machine
  /// Whether ranks that do the same are played once: where that is exact, or always, or never.
  enum class Play : std::uint8_t { automatic, once, all };
  Located<Play> play;

  [[nodiscard]] static std::int64_t size(const std::optional<Located<std::int64_t>>& axis) {
    return axis ? axis->value : 1;
  }
  [[nodiscard]] std::int64_t product() const;
  /// Ranks that run other samples.
  [[nodiscard]] std::int64_t samples() const { return size(expert) * size(data); }
  /// Ranks that hold the same parameters where these are no experts', and that `sharding` is among.
  [[nodiscard]] std::int64_t alike() const { return size(context) * samples(); }
  [[nodiscard]] std::int64_t size(Axis axis) const;
  /// How many devices lie between neighbours on the axis.
  [[nodiscard]] std::int64_t stride(Axis axis) const;
};

/// The axes by their keys, in the order in which they are laid on the devices: all that write or read their names
/// take them from here.
struct NamedAxis {
  const char* name;
  MeshOptions::Axis axis;
  std::optional<Located<std::int64_t>> MeshOptions::*size;
  std::optional<MeshAxis> along;  ///< of collectives; stages of a pipeline send messages
};
inline constexpr NamedAxis kNamedAxes[] = {
    {"tensor", MeshOptions::Axis::tensor, &MeshOptions::tensor, MeshAxis::tensor},
    {"context", MeshOptions::Axis::context, &MeshOptions::context, MeshAxis::context},
    {"expert", MeshOptions::Axis::expert, &MeshOptions::expert, MeshAxis::expert},
    {"data", MeshOptions::Axis::data, &MeshOptions::data, MeshAxis::data},
    {"pipeline", MeshOptions::Axis::pipeline, &MeshOptions::pipeline, std::nullopt}};

[[nodiscard]] const char* name_of(MeshOptions::Axis axis);
/// Groups of the data axis, which have no key, are "replica".
[[nodiscard]] const char* name_of(MeshAxis axis);

/// Of `collectives`.
struct NamedAlgorithm {
  const char* name;
  MeshOptions::Algorithm algorithm;
};
inline constexpr NamedAlgorithm kNamedAlgorithms[] = {
    {"ring", MeshOptions::Algorithm::ring},
    {"tree", MeshOptions::Algorithm::tree},
    {"hierarchical", MeshOptions::Algorithm::hierarchical},
    {"auto", MeshOptions::Algorithm::automatic}};

[[nodiscard]] const char* name_of(MeshOptions::Algorithm algorithm);

/// ZeRO's stages (S. Rajbhandari et al., "ZeRO: Memory optimizations toward training trillion
/// parameter models", SC 2020, section 5): 0 nothing, 1 optimizer state, 2 gradients, too, 3
/// parameters, too.
struct ShardingOptions {
  Location where;
  std::int64_t stage = 0;
  /// Neighbours on the data axis among which state is in parts; default: all of them.
  std::optional<Located<std::int64_t>> group;
  bool overlap = true;
  std::int64_t prefetch = 1;
  std::optional<Located<bool>> reshard;
  std::optional<Located<bool>> from_master;
  std::optional<Located<Bytes>> bucket;
};

/// torch.nn.parallel.DistributedDataParallel: `bucket_cap_mb` is 25 where it is not given; the first
/// bucket is torch.distributed's _DEFAULT_FIRST_BUCKET_BYTES.
inline constexpr Bytes kBucket{25LL << 20}, kFirstBucket{1LL << 20};

[[nodiscard]] Format<MeshOptions> parallel_format();

/// Switches off what is about ranks of a tensor axis, in a `parallel` without one whose likes have one.
void switch_off_without_tensor(Node& parallel);

[[nodiscard]] Format<ShardingOptions> sharding_format();

/// By rank's place: those that `devices` names, or all but `others`. Throws InputError where a name is
/// unknown, or comes twice.
[[nodiscard]] std::vector<ProcessorId> mesh_devices(const Platform& platform,
                                                    const MeshOptions& parallel,
                                                    std::span<const ProcessorId> others = {});

/// Where the ranks are: Spreading::axes and likes, whose first index is the stage of the pipeline.
/// `others` of the processors are no devices unless they are named. Throws InputError where the sizes
/// are not those of the platform.
[[nodiscard]] Spreading mesh_of(const Platform& platform, const MeshOptions& parallel,
                                std::span<const ProcessorId> others = {});

/// Divides the data axis of a mesh into groups of neighbours, each with a copy of the state in parts
/// (hybrid sharding: Y. Zhao et al., "PyTorch FSDP: Experiences on scaling fully sharded data parallel",
/// VLDB 2023). Throws InputError where `group` does not divide the axis, or its nodes.
void divide_into_groups(Spreading& spreading, const MeshOptions& parallel,
                        const Located<std::int64_t>& group);

/// The plan of the first rank for all of them, with what is claimed of it. Where one rank stands for
/// all, or those of one machine, that is exact (rank_symmetry.hpp); else all are played, and the
/// plan's notes say why. Throws InputError where no links join ranks of a group. `known` is of plans for the
/// same ranks, on platforms that differ in capacities at most.
[[nodiscard]] Plan plan_of_ranks(const Plan& of_one, const Problem& problem,
                                 const MeshOptions& parallel, const Spreading& spreading,
                                 RankSymmetry& known);
[[nodiscard]] Plan plan_of_ranks(const Plan& of_one, const Problem& problem,
                                 const MeshOptions& parallel, const Spreading& spreading);

/// The same without a mesh, of one rank whose state lives elsewhere (Spreading::homes).
[[nodiscard]] Plan plan_of_one_rank(const Plan& plan, const Problem& problem,
                                    const Spreading& spreading);

/// Of two neighbours on an axis, by the memories in which they work.
[[noreturn]] void refuse_missing_way(const Location& where, const std::string& from,
                                     const std::string& to);

}  // namespace plimsoll
