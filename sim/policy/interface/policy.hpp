/// What a policy is: a pure function from (workload, platform, parameters) to a plan, and a
/// registry entry that says what it promises.
#pragma once

#include "base/format.hpp"
#include "base/work.hpp"
#include "plan/core/plan.hpp"
#include "platform/core/topology.hpp"
#include "policy/interface/outline.hpp"
#include "policy/interface/plan_bound.hpp"
#include "workload/chain/chain_view.hpp"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace plimsoll {

struct Problem;

/// What the execution of a plan shows.
struct Judgement {
  bool is_ok = false;            ///< it runs to its end
  Time makespan;                 ///< where it does
  std::vector<Bytes> peak;       ///< requested, by MemoryId
  std::optional<Energy> energy;  ///< where it does and the platform states any
};

/// Executes a plan. Policies cannot call the engine, which is a floor above them: their caller
/// passes it in (execution/judge.hpp). Throws QuantityOverflow.
using Judge = Judgement (*)(const Plan& plan, const Problem& problem);

/// Everything that a policy may look at.
struct Problem {
  const Workload& workload;
  const ChainView& chain;
  const Platform& platform;
  const Topology& topology;
  Judge judge = nullptr;  ///< without one, plans are compared by what they claim
  Work work = Work();     ///< where long searches count their steps
  /// Where there is one, pipelines write here what they would do, and answer with no plan.
  Outline* outline = nullptr;
  PlanBoundRequest* bound = nullptr;  ///< likewise, what that takes at least
};

/// The answer of a planner that has a budget and finds no plan.
struct Infeasible {
  std::string why;
  MemoryId memory{};
  Bytes smallest_budget;
  bool is_found = false;  ///< by a search: a smaller budget may do
};

using Planned = std::variant<Plan, Infeasible>;

/// A policy with its parameters read, ready to plan.
struct BoundPolicy {
  std::string name = {};
  std::int64_t microbatches = 1;  ///< the workload is built for one of them
  bool splits_backward = false;   ///< the workload is built with WorkloadOptions::split_backward
  bool is_pipeline = false;
  /// Of a pipeline: replicas of each stage; 1 where these differ.
  std::int64_t replicas = 1;
  /// Of a pipeline: microbatches that run on one copy of the parameters, of one replica, at most.
  std::int64_t microbatches_of_copy = 1;
  /// After so many of these it updates its parameters, if not after all; 0: one a stage.
  std::optional<std::int64_t> updates_after = {};
  std::vector<std::string> processors = {};  ///< that its parameters name; empty: all there are
  std::optional<Bytes> budget = {};          ///< that they give, of each memory that it works in
  /// Throws InputError where the parameters ask for what the workload or platform does not have.
  std::function<Planned(const Problem&)> plan = {};
  /// The same schedule without recomputation, offload and limits, which its overhead is measured
  /// against; empty where it has neither, and for policies of one processor.
  std::function<Planned(const Problem&)> schedule_alone = {};
};

/// A registry entry; `plimsoll list policies NAME` prints all of it.
struct PolicyInfo {
  std::string name;     ///< "offload/eager"
  std::string summary;  ///< one sentence
  std::string paper;
  std::string assumes;     ///< chain or graph, equal or general costs, ...
  std::string guarantees;  ///< exact, bound, heuristic
  std::string complexity;
  bool is_for_chains = false;          ///< takes stages of the chain as a whole
  bool is_for_compute_graphs = false;  ///< and for nothing else: chains and networks are refused
  /// Decides while it runs. It may fail with more memory where it does not with less, so searches
  /// for a budget try all of them.
  bool is_online = false;
  Shape parameters;  ///< names, units, defaults; also the JSON Schema
  /// Reads the parameters of a `policy:` mapping, its `name` included.
  std::function<std::optional<BoundPolicy>(const Node&, Diagnostics&)> bind;
};

/// All policies, by family and name.
[[nodiscard]] std::span<const PolicyInfo> policies();

/// nullptr if there is none of that name.
[[nodiscard]] const PolicyInfo* find_policy(const std::string& name);

/// Reads a policy given as a name or as a mapping with `name` and parameters.
[[nodiscard]] std::optional<BoundPolicy> bind_policy(const Node& node, Diagnostics& diagnostics);

}  // namespace plimsoll
