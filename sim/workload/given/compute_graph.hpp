/// A graph of what runs, already unrolled: a training step, an inference, an instance of the
/// literature. Nothing is derived from it: its operators have times, or FLOPs, in the place of forwards
/// and backwards, and run in the order of the file.
///
/// An operator reads the values that it names, and makes its outputs. A value is released after the
/// last operator that reads it; one that nobody reads right after its own operator, or at the end of
/// the run. The inputs of the graph are there throughout.
#pragma once

#include "workload/core/workload.hpp"
#include "workload/core/workload_options.hpp"
#include "workload/given/graph_names.hpp"

#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

struct GraphComputation {
  Location where;
  std::string name;
  std::vector<Located<std::string>> inputs;
  NamedBytes outputs;
  std::optional<Time> time;
  std::optional<Flops> flops;  ///< in the place of a time: the platform says how long they take
  Bytes workspace;
  std::optional<Energy> energy;
  bool recompute = true;  ///< whether it may run again
  bool random = false;    ///< whether it draws random numbers
};

/// What becomes of outputs that nobody reads: free right after their operator, or there to the end.
enum class Unread : std::uint8_t { free, retain };

struct ComputeOperators {
  Unread unread = Unread::free;
  std::vector<GraphComputation> operators;  ///< in a topological order
};

struct ComputeGraphSpec {
  Location where;
  std::string name;
  NamedBytes inputs;
  ComputeOperators graph;
  std::optional<std::int64_t> batch;
};

/// Whether the operators of `graph:` give times or FLOPs, so that it is one.
[[nodiscard]] bool is_compute_graph(const Node& document);

/// How a compute graph is written. Reading checks that names are unique and known, and that every
/// operator comes after those that make what it reads.
[[nodiscard]] Format<ComputeGraphSpec> compute_graph_format();

/// All operators are forwards. O(operators + inputs).
[[nodiscard]] Workload build(const ComputeGraphSpec& graph, const WorkloadOptions& options);

}  // namespace plimsoll
