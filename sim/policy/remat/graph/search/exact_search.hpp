/// The fastest sequences of computations of small graphs within a budget, by shortest paths.
///
/// A state is which values are there and which nodes have run; a node may run when all that it reads
/// is there, and any value may be dropped at any time. A run needs, beside what is there, what it
/// makes and its workspace. The first run of a random node may keep the state of its generator, a
/// later one needs it (OperatorGraph::Node::generator). Where the order is that of the file, the first runs of nodes come in
/// that order, and before each of them earlier nodes may run once more, in the same order: the
/// staged plans of Checkmate (Jain et al. 2020, MLSys, arXiv:1910.02653, section 3).
#pragma once

#include "base/work.hpp"
#include "policy/graph/operator_graph.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll {

enum class FirstRuns : std::uint8_t {
  free,     ///< in any order that the graph allows
  in_order  ///< in that of the file
};

/// So many nodes and values fit in a state, those of generators among the values.
inline constexpr std::size_t kMostExactNodes = 20, kMostExactValues = 32;

/// Whether a node may keep the state of its generator.
[[nodiscard]] bool keeps_generator(const OperatorGraph::Node& node);

/// Whether its nodes and values are no more than these. O(nodes).
[[nodiscard]] bool is_within_exact_limits(const OperatorGraph& graph);

struct ExactSequence {
  std::vector<std::uint32_t> computations;  ///< nodes
  Time time;
  Bytes peak;  ///< of values and workspaces, what is resident aside
};

/// A sequence of least time among those within `room`, beside what is resident; nothing where there
/// is none. Exponential in nodes and values: O(2^values states) of 40 B. Preconditions: at most
/// kMostExactNodes and kMostExactValues.
[[nodiscard]] std::optional<ExactSequence> fastest_sequence(const OperatorGraph& graph, Bytes room,
                                                            FirstRuns order, const Work& work);

/// The least room within which there is a sequence.
[[nodiscard]] Bytes least_room(const OperatorGraph& graph, FirstRuns order, const Work& work);

/// Which plans are looked at, and how long.
struct ExactLimits {
  FirstRuns order = FirstRuns::free;
  bool may_rerun = true;    ///< else every node runs once
  std::int64_t states = 0;  ///< looked at, at most
};

/// States that are looked at in tenths of a second.
inline constexpr std::int64_t kQuickStates = 100'000;

/// What a search that may end early found.
struct ExactOutcome {
  std::optional<ExactSequence> sequence;
  bool is_closed = false;  ///< no other is faster; without a sequence: there is none
};

/// fastest_sequence(), as far as the limits let it.
[[nodiscard]] ExactOutcome fastest_sequence_within(const OperatorGraph& graph, Bytes room,
                                                   const ExactLimits& limits, const Work& work);

/// least_room(), where none is below `from`; nothing where a room takes too many states.
[[nodiscard]] std::optional<Bytes> least_room_within(const OperatorGraph& graph, Bytes from,
                                                     const ExactLimits& limits, const Work& work);

}  // namespace plimsoll
