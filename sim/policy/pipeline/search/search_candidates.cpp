#include "policy/pipeline/search/search_candidates.hpp"

#include "policy/interface/registry.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

enum class Chunks : std::uint8_t { one, two, any, even };

struct FlushPolicy {
  const char* name;
  Chunks chunks;
  bool splits = false;
  bool takes_limit = false;
  BoundedBy bounded_by = BoundedBy::one_way;
};

constexpr FlushPolicy kPolicies[] = {
    {"pipeline/1f1b", Chunks::one},
    {"pipeline/gpipe", Chunks::one},
    {"pipeline/zb-h1", Chunks::one, true},
    {"pipeline/zb-h2", Chunks::one, true},
    {"pipeline/zb-1p", Chunks::one, true, true},
    {"pipeline/zb-2p", Chunks::one, true, true},
    {"pipeline/zb-v", Chunks::two, true, true},
    {"pipeline/v-half", Chunks::two, true},
    {"pipeline/v-min", Chunks::two, true},
    {"pipeline/1f1b-v", Chunks::two},
    {"pipeline/interleaved-1f1b", Chunks::any},
    {"pipeline/interleaved-zb", Chunks::any, true},
    {"pipeline/looped-bfs", Chunks::any},
    {"pipeline/hanayo", Chunks::even},
    {"pipeline/dualpipe-v", Chunks::two, true, false, BoundedBy::no_limit},
    {"pipeline/bpipe", Chunks::one, false, false, BoundedBy::no_limit},
    {"pipeline/dualpipe", Chunks::one, true, false, BoundedBy::two_ways},
    {"pipeline/chimera", Chunks::one, false, false, BoundedBy::two_ways},
    {"pipeline/gis", Chunks::any, true},
    {"pipeline/gis-h", Chunks::any, true},
};

bool takes(Chunks chunks, std::int64_t count) {
  switch (chunks) {
    case Chunks::one:
      return count == 1;
    case Chunks::two:
      return count == 2;
    case Chunks::even:
      return count % 2 == 0;
    case Chunks::any:
      return true;
  }
  return false;
}

std::string partition_text(const PartitionChoice& choice) {
  if (const auto* name = std::get_if<std::string>(&choice)) return *name;
  return fmt::format("[{}]", fmt::join(std::get<std::vector<std::int64_t>>(choice), ", "));
}

/// As `recompute` and `offload` are written; `all` is the word for all slots.
std::string choice_text(const SlotChoice& choice, const char* all) {
  if (choice.is_none()) return "none";
  if (!choice.slots.empty()) return fmt::format("[{}]", fmt::join(choice.slots, ", "));
  const std::int64_t whole = kWhole.count(), share = choice.share.count();
  return share == whole ? all : fmt::format("{}.{:09}", share / whole, share % whole);
}

std::string savings_text(const PipelineParameters& asked) {
  std::string text;
  if (asked.recompute) text += ", recompute: " + choice_text(asked.recompute->value.slots, "full");
  if (!asked.offload) return text;
  text += fmt::format(", offload: {}, distance: {}", choice_text(asked.offload->value, "all"),
                      asked.distance);
  return asked.to ? text + fmt::format(", to: \"{}\"", asked.to->value) : text;
}

std::string replicas_text(const PipelineParameters& asked) {
  if (asked.equal_replicas() == 1) return {};
  const char* how = asked.data_parallel ? "data_parallel" : "replicas";
  return fmt::format(", {}: {}, all_reduce: {}", how, *asked.equal_replicas(),
                     asked.all_reduce == AllReduce::tree ? "tree" : "ring");
}

Node mapping_for(const FlushPolicy& policy, const SearchTask& task) {
  const PipelineParameters& asked = task.parameters;
  std::string text = fmt::format("{{name: {}, microbatches: {}, virtual_stages: {}", policy.name,
                                 asked.of_mini_batch(), asked.virtual_stages);
  if (asked.devices) {
    std::vector<std::string> names;
    for (const Located<std::string>& device : *asked.devices) names.push_back(device.value);
    text += fmt::format(", devices: [\"{}\"]", fmt::join(names, "\", \""));
  }
  if (asked.partition) text += ", partition: " + partition_text(asked.partition->value);
  text += savings_text(asked) + replicas_text(asked);
  if (policy.takes_limit && !task.limit.is_unlimited())
    text += fmt::format(", memory_limit: {} B, improve: true", task.limit.count());
  return parse_value(text + "}", asked.where.origin);
}

}  // namespace

std::vector<std::string> flush_policies(const SearchTask& task) {
  std::vector<std::string> names;
  for (const FlushPolicy& it : kPolicies)
    if (takes(it.chunks, task.parameters.virtual_stages) && (task.splits || !it.splits))
      names.emplace_back(it.name);
  return names;
}

bool runs_on_a_loop(const std::string& name) {
  const Chunks chunks = std::ranges::find(kPolicies, name, &FlushPolicy::name)->chunks;
  return chunks == Chunks::one || chunks == Chunks::any;
}

BoundedBy bounded_by(const std::string& name) {
  const auto* policy = std::ranges::find(kPolicies, name, &FlushPolicy::name);
  return policy == std::end(kPolicies) ? BoundedBy::one_way : policy->bounded_by;
}

Planned plan_of_flush_policy(const std::string& name, const SearchTask& task) {
  const FlushPolicy& policy = *std::ranges::find(kPolicies, name, &FlushPolicy::name);
  Diagnostics diagnostics;
  const auto bound = find_policy(name)->bind(mapping_for(policy, task), diagnostics);
  diagnostics.throw_if_errors();
  return bound->plan(task.problem);
}

}  // namespace plimsoll
