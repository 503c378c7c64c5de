#include "policy/pipeline/parameters/pipeline_parameters.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

template Record<PipelineParameters> pipeline_record<PipelineParameters>(const std::string&,
                                                                        std::int64_t);
template PolicyInfo make_policy<PipelineParameters>(
    PolicyText, Record<PipelineParameters>,
    std::function<Planned(const Problem&, const PipelineParameters&)>);

namespace {

/// The most steps of a pipeline's plan: a few GB.
constexpr std::size_t kMostSteps = 10'000'000;

}  // namespace

Format<PartitionChoice> partition_format() {
  const auto named = mapped<std::string, PartitionChoice>(
      one_of<std::string>({{"balanced", "balanced"},
                           {"balanced-memory", "balanced-memory"},
                           {"pipedream", "pipedream"},
                           {"pipedream-replicated", "pipedream-replicated"},
                           {"1f1b-star", "1f1b-star"},
                           {"madpipe", "madpipe"}}),
      [](std::string s) { return PartitionChoice(s); });
  const auto cuts = mapped<std::vector<std::int64_t>, PartitionChoice>(
      list_of(integer(1, 100'000'000)),
      [](std::vector<std::int64_t> c) { return PartitionChoice(std::move(c)); });
  return either(named, cuts);
}

Format<ReplicaChoice> replicas_format() {
  const auto count = integer(1, 65'536);
  const auto equal =
      mapped<std::int64_t, ReplicaChoice>(count, [](std::int64_t n) { return ReplicaChoice(n); });
  const auto each = mapped<std::vector<std::int64_t>, ReplicaChoice>(
      list_of(count, 1, 65'536),
      [](std::vector<std::int64_t> counts) { return ReplicaChoice(std::move(counts)); });
  return either(equal, each);
}

bool PipelineParameters::drop_savings() {
  const bool had_any = recomputes_slots() || operator_reruns() != nullptr || offloads();
  recompute.reset();
  offload.reset();
  return had_any;
}

bool PipelineParameters::recomputes(std::size_t slot) const {
  return recompute && recompute->value.slots.takes(static_cast<std::uint32_t>(slot), 0);
}

bool PipelineParameters::asks_for_partition(std::string_view partitioner) const {
  if (!partition) return false;
  const auto* choice = std::get_if<std::string>(&partition->value);
  return choice != nullptr && *choice == partitioner;
}

std::optional<std::int64_t> PipelineParameters::equal_replicas() const {
  if (finds_replicas()) return std::nullopt;
  if (data_parallel) return data_parallel->value;
  if (!replicas) return 1;
  if (const auto* count = std::get_if<std::int64_t>(&replicas->value)) return *count;
  const auto& counts = std::get<std::vector<std::int64_t>>(replicas->value);
  const bool equal = std::ranges::all_of(counts, [&](auto n) { return n == counts.front(); });
  return equal ? std::optional(counts.front()) : std::nullopt;
}

std::int64_t PipelineParameters::inputs_there(std::int64_t in_flight, std::int64_t all) const {
  return load_from ? std::min(all, in_flight + load_ahead) : all;
}

std::int64_t PipelineParameters::of_mini_batch() const {
  return microbatches * equal_replicas().value_or(1);
}

bool check_replicas(const PipelineParameters& parameters, Diagnostics& diagnostics) {
  const auto& [folded, played] = std::tie(parameters.data_parallel, parameters.replicas);
  if (folded && played) {
    diagnostics.error(played->where,
                      "`replicas` plays every replica and `data_parallel` one for all of them; "
                      "expected one of the two");
    return false;
  }
  if (parameters.finds_replicas() && (folded || played)) {
    diagnostics.error(folded ? folded->where : played->where,
                      "the partition `pipedream-replicated` finds the replicas itself");
    return false;
  }
  return true;
}

void deal_out(PipelineParameters& parameters, const Node&, Diagnostics& diagnostics) {
  if (!check_replicas(parameters, diagnostics)) return;
  const std::int64_t each = parameters.equal_replicas().value_or(1);
  if (parameters.microbatches % each != 0)
    return diagnostics.error(
        where_replicated(parameters),
        fmt::format("{} replicas do not divide {} microbatches; expected as many for each", each,
                    parameters.microbatches));
  parameters.microbatches /= each;
}

void check_belonging(const Node& node, std::initializer_list<const char*> keys, const char* with,
                     Diagnostics& diagnostics) {
  if (node.find(with) != nullptr) return;
  for (const char* key : keys)
    if (const Node* given = node.find(key))
      diagnostics.error(given->where(),
                        fmt::format("`{}` belongs to `{}`, which is not given", key, with));
}

void require_equal_replicas(const PipelineParameters& parameters) {
  if (!parameters.equal_replicas())
    refuse(where_replicated(parameters),
           fmt::format("`{}` takes as many replicas of every stage", parameters.name));
}

void require_one_virtual_stage(const PipelineParameters& parameters) {
  if (parameters.virtual_stages != 1)
    refuse(parameters.where, fmt::format("`{}` holds one stage a device; virtual_stages is {}",
                                         parameters.name, parameters.virtual_stages));
}

void require_two_virtual_stages(const PipelineParameters& parameters) {
  if (parameters.virtual_stages != 2)
    refuse(parameters.where, fmt::format("`{}` holds two stages a device; virtual_stages is {}",
                                         parameters.name, parameters.virtual_stages));
}

std::vector<ProcessorId> all_devices(const Problem& problem, const PipelineParameters& parameters) {
  std::vector<ProcessorId> devices;
  if (!parameters.devices) {
    for (std::uint32_t p = 0; p < problem.platform.processors.size(); ++p)
      devices.push_back(ProcessorId{p});
    return devices;
  }
  for (const Located<std::string>& device : *parameters.devices) {
    const ProcessorId processor = processor_named(problem, device);
    if (std::ranges::find(devices, processor) != devices.end())
      refuse(device.where, fmt::format("device `{}` is named twice", device.value));
    devices.push_back(processor);
  }
  return devices;
}

namespace {

/// Of each stage, as the parameters give them for so many devices. Throws InputError.
std::vector<std::size_t> replica_counts(const PipelineParameters& parameters, std::size_t devices) {
  if (const auto equal = parameters.equal_replicas()) {
    const auto each = static_cast<std::size_t>(*equal);
    if (devices % each == 0) return std::vector(devices / each, each);
    refuse(
        where_replicated(parameters),
        fmt::format("{} devices are not {} replicas of the same number of stages", devices, each));
  }
  std::vector<std::size_t> counts;
  std::size_t sum = 0;
  for (const std::int64_t count : std::get<std::vector<std::int64_t>>(parameters.replicas->value)) {
    counts.push_back(static_cast<std::size_t>(count));
    sum += counts.back();
  }
  if (sum != devices)
    refuse(parameters.replicas->where,
           fmt::format("the stages have {} replicas for {} devices; expected one a device", sum,
                       devices));
  return counts;
}

}  // namespace

std::vector<std::vector<ProcessorId>> replica_groups(const Problem& problem,
                                                     const PipelineParameters& parameters) {
  if (parameters.finds_replicas()) require_equal_replicas(parameters);
  const std::vector<ProcessorId> devices = all_devices(problem, parameters);
  std::vector<std::vector<ProcessorId>> groups;
  auto next = devices.begin();
  for (const std::size_t count : replica_counts(parameters, devices.size())) {
    groups.emplace_back(next, next + static_cast<std::ptrdiff_t>(count));
    next += static_cast<std::ptrdiff_t>(count);
  }
  return groups;
}

std::vector<ProcessorId> pipeline_devices(const Problem& problem,
                                          const PipelineParameters& parameters) {
  std::vector<ProcessorId> first;
  for (const auto& group : replica_groups(problem, parameters)) first.push_back(group.front());
  return first;
}

const Location& where_replicated(const PipelineParameters& parameters) {
  if (parameters.data_parallel) return parameters.data_parallel->where;
  if (parameters.replicas) return parameters.replicas->where;
  return parameters.partition ? parameters.partition->where : parameters.where;
}

void refuse_too_many_steps(const Problem& problem, const PipelineParameters& parameters) {
  const std::size_t operators = problem.workload.operators.size();
  const std::int64_t played =
      parameters.replicas ? parameters.of_mini_batch() : parameters.microbatches;
  if (operators <= kMostSteps / static_cast<std::size_t>(played)) return;
  refuse(parameters.where, fmt::format("{} microbatches of {} operators are more than {} steps",
                                       played, operators, kMostSteps));
}

void require_link(const Problem& problem, MemoryId a, MemoryId b, const char* what,
                  const Location& where) {
  if (problem.topology.route(a, b) && problem.topology.route(b, a)) return;
  refuse(where, fmt::format("no link joins `{}` and `{}`, which hold {}", problem.platform[a].name,
                            problem.platform[b].name, what));
}

void require_links_of_stages(const Problem& problem, std::span<const MemoryId> by_slot,
                             const Location& where) {
  for (std::size_t slot = 1; slot < by_slot.size(); ++slot)
    require_link(problem, by_slot[slot - 1], by_slot[slot], "neighbouring stages", where);
}

}  // namespace plimsoll
