/// What a planner of graphs looks at: operators with times, the values that they read and make, and
/// what of each occupies memory. Of compute graphs (workload/given/compute_graph.hpp) and of the
/// training steps of chains and networks, operator by operator.
///
/// A value is a tensor that an operator makes; a storage that operators change in place is one
/// value in several states. A forward that runs again makes all its values again, those that only
/// backwards read where one of them will: the form of a run (workload.hpp) follows from what reads
/// it. Backwards and optimizers run once.
#pragma once

#include "policy/interface/policy.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace plimsoll {

class PlanBuilder;

/// Values are numbered in the order in which operators make them; what is there throughout
/// (parameters, inputs) is none.
struct OperatorGraph {
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  struct Node {
    Time time;
    Bytes workspace;
    std::vector<std::uint32_t> reads, makes;  ///< values
    std::vector<std::uint32_t> changes;       ///< those of `reads` that it changes in place
    /// Of the state of the random generator, there from the start of the first run to the end of the
    /// last where there are several (Operator::generator).
    Bytes generator;
    bool runs_once = false;
  };
  struct Value {
    TensorId tensor = kNoTensor;
    Bytes bytes;
    std::uint32_t maker = 0;
    std::vector<std::uint32_t> readers = {};  ///< nodes, ascending
    bool stays = false;                       ///< has to be there at the end
    bool is_kept_only = false;                ///< its maker leaves it in the form `keep` alone
    /// The value of the same maker that it is a part of in the form `keep`, or kNone.
    std::uint32_t inside = kNone;
    /// The first run of its maker leaves it until this node has run, at least; or kNone.
    std::uint32_t held_until = kNone;
  };
  std::vector<Node> nodes;  ///< by operator
  std::vector<Value> values;
  Bytes resident;  ///< there throughout, of what is read

  [[nodiscard]] Time time() const;  ///< of all nodes, each once
  /// Whether no value is changed in place and all forms of all nodes leave the same.
  [[nodiscard]] bool is_plain() const;
};

/// The graph of one microbatch, with times on `processor`. O(operators + reads).
[[nodiscard]] OperatorGraph operator_graph(const Problem& problem, ProcessorId processor);

/// Of the budget, beside what is resident; without a budget more than any plan needs.
[[nodiscard]] std::int64_t room_within(Bytes budget, const OperatorGraph& graph);

/// Before a run of the form `bare`: what an earlier run left in the form `keep` goes, as it would be
/// read in the place of its part. O(values that the operator makes).
void release_wholes(PlanBuilder& builder, const Workload& workload, OperatorId op,
                    std::uint32_t microbatch, MemoryId memory);

/// The plan that runs `computations`, nodes in an order in which everything read is there, each as
/// often as it is named and in the form that its readers need; what stays is that of the last run
/// of its maker. Precondition: judge_computations() has a cost for it. O(computations + reads).
[[nodiscard]] Plan plan_of_computations(const Problem& problem, const OperatorGraph& graph,
                                        ProcessorId processor, const std::string& policy,
                                        std::span<const std::uint32_t> computations);

}  // namespace plimsoll
