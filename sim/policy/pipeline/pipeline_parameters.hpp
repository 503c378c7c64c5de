/// What every pipeline policy takes.
#pragma once

#include "policy/entry.hpp"

#include <variant>

namespace plimsoll {

/// A named partitioner, or the places to cut: the number of chain stages before each cut.
using PartitionChoice = std::variant<std::string, std::vector<std::int64_t>>;

struct PipelineParameters : CommonParameters {
  std::int64_t microbatches = 1;
  std::optional<std::vector<Located<std::string>>> devices;
  std::int64_t virtual_stages = 1;
  std::optional<Located<PartitionChoice>> partition;
};

/// `virtual_stages` is what the policy takes where the parameters do not say.
[[nodiscard]] Record<PipelineParameters> pipeline_record(const std::string& name,
                                                         std::int64_t virtual_stages = 1);

/// Throws InputError where `virtual_stages` is not 1: for schedules of one stage a device.
void require_one_virtual_stage(const PipelineParameters& parameters);

/// Throws InputError where it is not 2: for schedules on a V.
void require_two_virtual_stages(const PipelineParameters& parameters);

/// The processors of the pipeline, in order; by default all of the platform. Throws InputError
/// where one is unknown or named twice.
[[nodiscard]] std::vector<ProcessorId> pipeline_devices(const Problem& problem,
                                                        const PipelineParameters& parameters);

}  // namespace plimsoll
