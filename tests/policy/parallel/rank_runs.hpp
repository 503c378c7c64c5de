/// Plans of one rank on every rank of a mesh, played: chains of stages on clusters of a few links.
#pragma once

#include "plan/build/spread_plan.hpp"
#include "policy/parallel/mesh_options.hpp"
#include "support/mirrored.hpp"
#include "support/policies.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace plimsoll::test {

struct Stage {
  std::int64_t forward = 2, backward = 3;    ///< s
  std::int64_t output = 4, parameters = 12;  ///< B
  std::int64_t step = 0;                     ///< s, of its optimizer
};

inline std::string chain_of(const std::vector<Stage>& stages) {
  std::string text = "workload: chain\ninput: 4 B\noptimizer: sgd\nchain:\n";
  for (std::size_t s = 0; s < stages.size(); ++s)
    text += fmt::format(
        "  - {{name: s{}, forward: {} s, backward: {} s, output: {} B, saved: {} B, parameters: {} "
        "B{}}}\n",
        s, stages[s].forward, stages[s].backward, stages[s].output, stages[s].output + 4,
        stages[s].parameters,
        stages[s].step > 0 ? fmt::format(", optimizer_step: {} s", stages[s].step) : "");
  return text;
}

/// `processor`: further keys of each, with a comma behind.
inline std::string cluster(std::int64_t devices, const std::string& topology,
                           const std::string& link, const std::string& processor = "") {
  return fmt::format(
      "platform: c\nmemories: {{hbm: {{capacity: unlimited}}}}\nprocessors: {{gpu: {{memory: hbm, "
      "{}power: {{idle: 10 W, active: 30 W}}}}}}\ncluster: {{count: {}, topology: {}, link: "
      "{{name: "
      "l, {}}}}}\n",
      processor, devices, topology, link);
}

inline MeshOptions mesh(const std::string& text) {
  Diagnostics diagnostics;
  const auto options = parallel_format().read(parse_document(text, "parallel"), diagnostics);
  diagnostics.throw_if_errors();
  return *options;
}

/// What a run of `policy` on every rank is. `bucket`: of gradients; unlimited: all in one.
struct Ranks {
  std::string parallel;
  std::string policy = "{name: none, on: gpu0}";
  Bytes bucket = Bytes::unlimited();
  bool overlap = true;
};

inline Played played_ranks(const Ranks& ranks, const std::string& chain,
                           const std::string& platform) {
  static std::vector<std::unique_ptr<std::pair<Workload, Platform>>> kept;  // Played refers to them
  const auto& [workload, machine] = *kept.emplace_back(
      std::make_unique<std::pair<Workload, Platform>>(workload_of(chain), platform_of(platform)));
  const MeshOptions options = mesh(ranks.parallel);
  Spreading spreading = mesh_of(machine, options);
  spreading.first_bucket = spreading.bucket = ranks.bucket;
  spreading.overlap = ranks.overlap;
  const Topology topology(machine);
  const ChainView view = chain_view(workload);
  const Problem problem{workload, view, machine, topology, judge_by_execution};
  Plan of_one = std::get<Plan>(bound_policy(ranks.policy).plan(problem));
  Played it = play(plan_of_ranks(of_one, problem, options, spreading), workload, machine);
  require_claims_hold(it);
  return it;
}

inline std::string refusal(const Ranks& ranks, const std::string& chain,
                           const std::string& platform) {
  try {
    (void)played_ranks(ranks, chain, platform);
  } catch (const InputError& error) {
    return error.what();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "(accepted)";
}

/// Machines of `node` processors in a ring, each of which has a link of its own to its like in the
/// next machine: "rails".
inline std::string rails(std::int64_t machines, std::int64_t node) {
  std::string memories, processors, links;
  const auto link = [&](std::int64_t a, std::int64_t b, const char* what) {
    links += fmt::format("  l{0}-{1}: {{between: [m{0}, m{1}], {2}}}\n", a, b, what);
  };
  for (std::int64_t r = 0; r < machines * node; ++r) {
    memories += fmt::format("  m{}: {{capacity: unlimited}}\n", r);
    processors +=
        fmt::format("  gpu{0}: {{memory: m{0}, power: {{idle: 10 W, active: 30 W}}}}\n", r);
    link(r, r / node * node + (r + 1) % node, "bandwidth: 6 B/s, latency: 1 s");
    if (machines > 2 || r < node)
      link(r, (r + node) % (machines * node), "bandwidth: 2 B/s, latency: 3 s");
  }
  return "platform: c\nmemories:\n" + memories + "processors:\n" + processors + "links:\n" + links;
}

/// Machines of `node` processors behind a switch, and a fabric between them: each processor has an adapter
/// of its own there, or all of a machine have one.
inline std::string switched(std::int64_t machines, std::int64_t node, bool has_own_adapter) {
  std::string memories, processors, links, switches = "fabric";
  const char* const adapter = "bandwidth: 2 B/s, latency: 3 s";
  for (std::int64_t r = 0; r < machines * node; ++r) {
    memories += fmt::format("  m{}: {{capacity: unlimited}}\n", r);
    processors +=
        fmt::format("  gpu{0}: {{memory: m{0}, power: {{idle: 10 W, active: 30 W}}}}\n", r);
    links += fmt::format("  l{0}: {{between: [m{0}, s{1}], bandwidth: 6 B/s, latency: 1 s}}\n", r,
                         r / node);
    if (has_own_adapter)
      links += fmt::format("  nic{0}: {{between: [m{0}, fabric], {1}}}\n", r, adapter);
  }
  for (std::int64_t m = 0; m < machines; ++m) {
    switches += fmt::format(", s{}", m);
    if (!has_own_adapter)
      links += fmt::format("  nic{0}: {{between: [s{0}, fabric], {1}}}\n", m, adapter);
  }
  return fmt::format("platform: c\nmemories:\n{}processors:\n{}switches: [{}]\nlinks:\n{}",
                     memories, processors, switches, links);
}

}  // namespace plimsoll::test
