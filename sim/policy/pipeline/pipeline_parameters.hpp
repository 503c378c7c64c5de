/// What every pipeline policy takes.
#pragma once

#include "policy/entry.hpp"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace plimsoll {

/// A named partitioner, or the places to cut: the number of chain stages before each cut.
using PartitionChoice = std::variant<std::string, std::vector<std::int64_t>>;

struct PipelineParameters : CommonParameters {
  std::int64_t microbatches = 1;
  std::optional<std::vector<Located<std::string>>> devices;
  std::int64_t virtual_stages = 1;
  std::optional<Located<PartitionChoice>> partition;
};

/// A pipeline's `partition`, as it is written.
[[nodiscard]] Format<PartitionChoice> partition_format();

/// A Record that has all of PipelineParameters; `virtual_stages` is what the policy takes where the
/// parameters do not say.
template <class Parameters = PipelineParameters>
[[nodiscard]] Record<Parameters> pipeline_record(const std::string& name,
                                                 std::int64_t virtual_stages = 1) {
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
          "`1f1b-star` (only pipeline/1f1b-star: the least period under its memory limit), "
          "`madpipe` (only pipeline/periodic: cuts and placement for a short one), or the numbers "
          "of chain stages before each cut; default: one chain stage a slot where the "
          "counts are equal, else balanced")
      .check({"virtual_stages"},
             [virtual_stages](Parameters& parameters, const Node& node, Diagnostics&) {
               if (node.find("virtual_stages") == nullptr)
                 parameters.virtual_stages = virtual_stages;
             });
  return record;
}

/// Throws InputError where `virtual_stages` is not 1: for schedules of one stage a device.
void require_one_virtual_stage(const PipelineParameters& parameters);

/// Throws InputError where it is not 2: for schedules on a V.
void require_two_virtual_stages(const PipelineParameters& parameters);

/// The processors of the pipeline, in order; by default all of the platform. Throws InputError
/// where one is unknown or named twice.
[[nodiscard]] std::vector<ProcessorId> pipeline_devices(const Problem& problem,
                                                        const PipelineParameters& parameters);

/// Throws InputError where the plan would have more than some ten million steps.
void refuse_too_many_steps(const Problem& problem, const PipelineParameters& parameters);

/// Throws InputError where no route joins the memories, which hold `what`, both ways.
void require_link(const Problem& problem, MemoryId a, MemoryId b, const char* what,
                  const Location& where);

}  // namespace plimsoll
