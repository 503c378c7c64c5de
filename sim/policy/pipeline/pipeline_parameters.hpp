/// What every pipeline policy takes.
#pragma once

#include "plan/collective.hpp"
#include "policy/entry.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace plimsoll {

/// A named partitioner, or the places to cut: the number of chain stages before each cut.
using PartitionChoice = std::variant<std::string, std::vector<std::int64_t>>;

/// As many replicas of every stage, or of each by itself.
using ReplicaChoice = std::variant<std::int64_t, std::vector<std::int64_t>>;

struct PipelineParameters : CommonParameters {
  std::int64_t microbatches = 1;  ///< of one replica, where every stage has as many
  std::optional<std::vector<Located<std::string>>> devices;
  std::int64_t virtual_stages = 1;
  std::optional<Located<PartitionChoice>> partition;
  std::optional<Located<std::int64_t>> data_parallel;
  std::optional<Located<ReplicaChoice>> replicas;
  AllReduce all_reduce = AllReduce::ring;

  /// How many replicas every stage has; nothing where they may differ.
  [[nodiscard]] std::optional<std::int64_t> equal_replicas() const;
  /// Microbatches of the whole mini-batch, as they are written.
  [[nodiscard]] std::int64_t of_mini_batch() const;
};

/// A pipeline's `partition`, as it is written.
[[nodiscard]] Format<PartitionChoice> partition_format();

[[nodiscard]] Format<ReplicaChoice> replicas_format();

/// Deals the mini-batch out to replicas of which every stage has as many.
void deal_out(PipelineParameters& parameters, const Node& node, Diagnostics& diagnostics);

/// Adds `data_parallel`, `replicas` and `all_reduce` to the record of a schedule that ends with a
/// flush and holds one copy of the parameters.
template <class Parameters>
void add_replicas(Record<Parameters>& record) {
  std::optional<Located<std::int64_t>> Parameters::*data_parallel = &Parameters::data_parallel;
  std::optional<Located<ReplicaChoice>> Parameters::*replicas = &Parameters::replicas;
  AllReduce Parameters::*all_reduce = &Parameters::all_reduce;
  record
      .optional("data_parallel", data_parallel, located(integer(1, 65'536)),
                "replicas of the whole pipeline, which share the microbatches and reduce their "
                "gradients; one is played for all of them, which must be alike and disjoint; "
                "`devices` holds the replicas of the first stage, then those of the second, and so "
                "on; default 1")
      .optional("replicas", replicas, located(replicas_format()),
                "the same with every replica played, over links of any kind: a number, or (only "
                "pipeline/gpipe, pipeline/1f1b) one for each stage, to which microbatches go in "
                "turn; default 1")
      .optional("all_reduce", all_reduce,
                one_of<AllReduce>({{"ring", AllReduce::ring}, {"tree", AllReduce::tree}}),
                "`ring`, or `tree`: recursive halving and doubling, of 2, 4, 8, .. replicas; "
                "default ring")
      .check({"data_parallel", "replicas", "microbatches"},
             [](Parameters& parameters, const Node& node, Diagnostics& diagnostics) {
               deal_out(parameters, node, diagnostics);
             });
}

/// Whether stages may have replicas.
enum class Replicable : std::uint8_t { yes, no };

/// A Record that has all of PipelineParameters; `virtual_stages` is what the policy takes where the
/// parameters do not say.
template <class Parameters = PipelineParameters>
[[nodiscard]] Record<Parameters> pipeline_record(const std::string& name,
                                                 std::int64_t virtual_stages = 1,
                                                 Replicable replicable = Replicable::yes) {
  Record<Parameters> record("policy " + name, "Parameters of " + name + ".");
  std::int64_t Parameters::*microbatches = &Parameters::microbatches;
  std::optional<std::vector<Located<std::string>>> Parameters::*devices = &Parameters::devices;
  std::int64_t Parameters::*stages = &Parameters::virtual_stages;
  std::optional<Located<PartitionChoice>> Parameters::*partition = &Parameters::partition;
  record
      .optional("microbatches", microbatches, integer(1, 1'000'000),
                "microbatches of one mini-batch; default 1")
      .optional("devices", devices, list_of(located(plimsoll::name()), 1, 65'536),
                "processors in pipeline order; default: all of the platform")
      .optional("virtual_stages", stages, integer(1, 1'000'000),
                "stages held by one device; default " + std::to_string(virtual_stages))
      .optional(
          "partition", partition, located(partition_format()),
          "`balanced` (by time, exact), `balanced-memory` (the least greatest memory of a device, "
          "exact), `pipedream` (PipeDream's program without replicas, with transfers), "
          "`pipedream-replicated` (only pipeline/gpipe, pipeline/1f1b: the program with replicas, "
          "which `devices` takes stage by stage), "
          "`1f1b-star` (only pipeline/1f1b-star: the least period under its memory limit), "
          "`madpipe` (only pipeline/periodic: cuts and placement for a short one), or the numbers "
          "of chain stages before each cut; default: one chain stage a slot where the "
          "counts are equal, else balanced")
      .check({"virtual_stages"},
             [virtual_stages](Parameters& parameters, const Node& node, Diagnostics&) {
               if (node.find("virtual_stages") == nullptr)
                 parameters.virtual_stages = virtual_stages;
             });
  if (replicable == Replicable::yes) add_replicas(record);
  return record;
}

/// Throws InputError where `virtual_stages` is not 1: for schedules of one stage a device.
void require_one_virtual_stage(const PipelineParameters& parameters);

/// Throws InputError where it is not 2: for schedules on a V.
void require_two_virtual_stages(const PipelineParameters& parameters);

/// The processors of the pipeline, in order; by default all of the platform. Of every stage with
/// replicas the first. Throws InputError where one is unknown or named twice, or the replicas are
/// not as many as the processors.
[[nodiscard]] std::vector<ProcessorId> pipeline_devices(const Problem& problem,
                                                        const PipelineParameters& parameters);

/// The replicas of each device of the pipeline, itself the first. Throws InputError likewise.
[[nodiscard]] std::vector<std::vector<ProcessorId>> replica_groups(
    const Problem& problem, const PipelineParameters& parameters);

/// Throws InputError where the plan would have more than some ten million steps.
void refuse_too_many_steps(const Problem& problem, const PipelineParameters& parameters);

/// Throws InputError where no route joins the memories, which hold `what`, both ways.
void require_link(const Problem& problem, MemoryId a, MemoryId b, const char* what,
                  const Location& where);

}  // namespace plimsoll
