#include "policy/pipeline/pipeline_parameters.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// The most steps of a pipeline's plan: a few GB.
constexpr std::size_t kMostSteps = 10'000'000;

}  // namespace

Format<PartitionChoice> partition_format() {
  const auto named = mapped<std::string, PartitionChoice>(
      one_of<std::string>({{"balanced", "balanced"},
                           {"balanced-memory", "balanced-memory"},
                           {"pipedream", "pipedream"},
                           {"1f1b-star", "1f1b-star"},
                           {"madpipe", "madpipe"}}),
      [](std::string s) { return PartitionChoice(s); });
  const auto cuts = mapped<std::vector<std::int64_t>, PartitionChoice>(
      list_of(integer(1, 100'000'000)),
      [](std::vector<std::int64_t> c) { return PartitionChoice(std::move(c)); });
  return either(named, cuts);
}

void require_one_virtual_stage(const PipelineParameters& parameters) {
  if (parameters.virtual_stages != 1)
    refuse_parameter(parameters.where,
                     fmt::format("`{}` holds one stage a device; virtual_stages is {}",
                                 parameters.name, parameters.virtual_stages));
}

void require_two_virtual_stages(const PipelineParameters& parameters) {
  if (parameters.virtual_stages != 2)
    refuse_parameter(parameters.where,
                     fmt::format("`{}` holds two stages a device; virtual_stages is {}",
                                 parameters.name, parameters.virtual_stages));
}

std::vector<ProcessorId> pipeline_devices(const Problem& problem,
                                          const PipelineParameters& parameters) {
  std::vector<ProcessorId> devices;
  if (!parameters.devices) {
    for (std::uint32_t p = 0; p < problem.platform.processors.size(); ++p)
      devices.push_back(ProcessorId{p});
    return devices;
  }
  for (const Located<std::string>& device : *parameters.devices) {
    const ProcessorId processor = processor_named(problem, device);
    if (std::ranges::find(devices, processor) != devices.end())
      refuse_parameter(device.where, fmt::format("device `{}` is named twice", device.value));
    devices.push_back(processor);
  }
  return devices;
}

void refuse_too_many_steps(const Problem& problem, const PipelineParameters& parameters) {
  const std::size_t operators = problem.workload.operators.size();
  if (operators <= kMostSteps / static_cast<std::size_t>(parameters.microbatches)) return;
  refuse_parameter(parameters.where,
                   fmt::format("{} microbatches of {} operators are more than {} steps",
                               parameters.microbatches, operators, kMostSteps));
}

void require_link(const Problem& problem, MemoryId a, MemoryId b, const char* what,
                  const Location& where) {
  if (problem.topology.route(a, b) && problem.topology.route(b, a)) return;
  refuse_parameter(where, fmt::format("no link joins `{}` and `{}`, which hold {}",
                                      problem.platform[a].name, problem.platform[b].name, what));
}

}  // namespace plimsoll
