/// Which values of the forwards are kept for the backwards: the min-cut of PyTorch's partitioner
/// (torch/_functorch/partitioners.py; He and Yu 2023, "Transcending Runtime-Memory Tradeoffs in
/// Checkpointing by being Fusion Aware", MLSys).
///
/// Each value is an edge of a network whose capacity is the price of keeping it; what must not run
/// again hangs on the source, what a backward reads on the sink. The cut nearest to the sink is kept,
/// and backwards make the rest again from it. What is resident (parameters, inputs) costs nothing to
/// keep. Operators run again in groups (rerun_groups.hpp): where one of a group must not, none does.
#pragma once

#include "policy/graph/rerun_groups.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

/// What hangs on the source, beside operators that are random, compute-intensive or that reduce.
struct RerunBans {
  /// What would not be joined with its neighbours in one kernel: values that a backward reads as
  /// they are, readers far from a value, chains of more than 100 operators.
  bool for_fusion = true;
  bool for_list = true;      ///< whatever is not is_fusible() (workload/core/operator_traits.hpp)
  std::vector<bool> lifted;  ///< groups that may run again all the same; empty: none
};

struct ForwardCut {
  std::vector<bool> is_kept;    ///< by value
  std::vector<bool> is_banned;  ///< by group
};

class ForwardNetwork {
 public:
  /// The arguments must outlive it. O(nodes + reads).
  ForwardNetwork(const Problem& problem, const OperatorGraph& graph, const RerunGroups& groups);

  /// The maximum flow is Boost.Graph's, of Boykov and Kolmogorov; bans take O(groups + reads) but
  /// those for fusion, which take O(groups (groups + reads)) at most.
  [[nodiscard]] ForwardCut cut(const RerunBans& bans) const;

  /// Of the values that are kept.
  [[nodiscard]] Bytes kept_bytes(const ForwardCut& cut) const;
  /// What backwards may need of the values that a group makes.
  [[nodiscard]] Bytes needed_bytes(std::uint32_t group) const;
  /// Banned groups that a backward needs and that could run again.
  [[nodiscard]] std::vector<std::uint32_t> liftable(const ForwardCut& cut) const;

 private:
  /// A group of forwards as a compiler sees it.
  struct Kernel {
    std::vector<std::uint32_t> readers = {};  ///< groups of forwards that read it, ascending
    Bytes read, made;
    bool runs_once = false, computes = false, is_random = false, is_fusible = true;
    bool is_read_as_it_is = false;  ///< by a backward that it is not joined with
  };

  void add_nodes();
  void add_readers();
  void measure_distances();
  [[nodiscard]] bool is_forward(std::uint32_t group) const;
  [[nodiscard]] bool are_joined(std::uint32_t group, std::uint32_t node) const;
  [[nodiscard]] std::int64_t price(std::uint32_t value) const;
  [[nodiscard]] std::vector<bool> banned_groups(const RerunBans& bans) const;
  [[nodiscard]] bool is_banned(std::uint32_t group, const RerunBans& bans) const;
  [[nodiscard]] std::uint32_t first_apart(std::uint32_t group) const;
  void ban_far_readers(std::vector<bool>& banned, const RerunBans& bans) const;
  void ban_long_chains(std::vector<bool>& banned, const RerunBans& bans) const;

  const Problem& problem_;
  const OperatorGraph& graph_;
  const RerunGroups& groups_;
  const std::uint32_t forwards_;
  std::vector<Kernel> kernels_;           ///< by group
  std::vector<std::uint32_t> distances_;  ///< by value: of reads to the nearest backward
};

}  // namespace plimsoll
