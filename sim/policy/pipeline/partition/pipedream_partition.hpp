/// PipeDream's partition: which layers form a stage, and how many machines replicate it.
///
/// Narayanan et al. 2019, "PipeDream: Generalized Pipeline Parallelism for DNN Training", SOSP, as
/// its published optimizer computes it (github.com/msr-fiddle/pipedream,
/// optimizer_graph_hierarchical), for a chain of states. Per level of the network of machines, the
/// innermost first, with N machines and links of b bytes a second, t(i, j, q) is the time of states
/// i..j on q machines:
///
///   one stage   ( T(i,j) + 4 (q-1) P(i,j) / (b q) / inside ) / q
///   or split    min over k, r of max( t(i, k, q-r), (T(k+1,j) + 4 (r-1) P(k+1,j) / (b r)) / r,
///                                     2 out_k / (b r) / ratio, 2 out_j / (b r) / ratio )
///
/// T, P, A: compute, parameters, activations of a run of states; `inside` is N of the level within
/// (1 at the first); the tail k+1..j has r machines; the last term only where j is not the last
/// state. The next level takes t(i, j, N) for T(i, j). This is the program's cost model, not a
/// bound of any execution: compute and all-reduce are added, and the all-reduce is divided by q
/// once more.
///
/// Departures: times are whole picoseconds, every quotient rounded up, so values may be a few
/// picoseconds above the program's; where splits are equally good the last cut is the latest, and
/// of those the tail has the fewest machines (the program takes whichever its sets yield first).
#pragma once

#include "base/quantity.hpp"
#include "base/work.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll {

/// One state of the chain: what lies between two places where it may be cut.
struct PipedreamState {
  Time compute;       ///< forward and backward
  Bytes activations;  ///< made by the state
  Bytes parameters;
  Bytes output;  ///< what crosses a cut after it
};

struct PipedreamLevel {
  std::uint32_t machines = 1;  ///< or groups of machines of the level within
  ByteRate bandwidth = ByteRate::unlimited();
};

struct PipedreamOptions {
  /// By how much activations are compressed on the links; transfers take no time where absent.
  std::optional<std::int64_t> compression_ratio;
  /// The memory test of the program: a stage on r of the machines left over keeps
  /// ceil((N - q) / r) times its activations and parameters, with q those of the split.
  std::optional<Bytes> memory;
  bool straight = false;  ///< no replication
  Work work = Work();     ///< where the program counts its steps
};

/// States [begin, end) on each of `replicas` machines.
struct ReplicatedStage {
  std::size_t begin = 0, end = 0;
  std::uint32_t replicas = 1;
  friend bool operator==(const ReplicatedStage&, const ReplicatedStage&) = default;
};

struct PipedreamPartition {
  Time stage_time;  ///< of the slowest stage, for one mini-batch
  /// By level, the outermost first: its stages in order; further in, those of every stage of the
  /// level outside, one after the other.
  std::vector<std::vector<ReplicatedStage>> levels;
};

/// nullopt where no partition passes the memory test, or a straight pipeline has fewer states than
/// machines. Exact for the model above. O(states^3 machines^2) a level, the outermost
/// O(states^2 machines^2); O(states^2 machines) memory. Preconditions: states and levels are not
/// empty, machines, bandwidths and ratio are positive. Throws QuantityOverflow.
[[nodiscard]] std::optional<PipedreamPartition> pipedream_partition(
    const std::vector<PipedreamState>& states, const std::vector<PipedreamLevel>& levels,
    const PipedreamOptions& options);

}  // namespace plimsoll
