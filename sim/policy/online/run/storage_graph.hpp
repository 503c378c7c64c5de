/// A workload as an online policy sees it: storages, which are there or not, and the operators that
/// make them.
///
/// A storage is a tensor with all states that in-place changes give it, and with the parts that lie
/// inside it. Operators that run again run in groups (policy/graph/rerun_groups.hpp): a group makes
/// its storages in their final state. Every forward runs in the form `keep`, as in a framework,
/// which does not know what will be read.
#pragma once

#include "policy/graph/rerun_groups.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

struct StorageGraph {
  static constexpr std::uint32_t kNone = OperatorGraph::kNone;

  struct Storage {
    TensorId tensor = kNoTensor;
    Bytes bytes;
    std::uint32_t group = 0;              ///< that makes it
    std::vector<std::uint32_t> children;  ///< storages whose groups read it, ascending
    std::uint32_t released_after = 0;  ///< the node whose first run is its last use; kNone: stays
    std::uint32_t held_until = kNone;  ///< OperatorGraph::Value::held_until
    bool is_changed = false;           ///< in place
    /// It records what random numbers decided: the mask of a dropout, from which its output can be
    /// made again without drawing; where an operator keeps no record, all that its group makes.
    bool is_drawn = false;
  };
  struct Node {
    Time time;
    Bytes workspace;
    std::vector<std::uint32_t> reads, makes;  ///< storages
    std::uint32_t group = 0;
    Bytes generator;         ///< OperatorGraph::Node::generator
    bool is_costly = false;  ///< a convolution, a product of matrices, attention; gradients of one
  };
  struct Group {
    std::vector<std::uint32_t> nodes;    ///< ascending
    std::vector<std::uint32_t> makes;    ///< storages, in the order in which they are made
    std::vector<std::uint32_t> parents;  ///< storages that it reads and does not make
    std::int64_t cost = 0;               ///< ps: of all nodes
    bool runs_once = false;
  };
  std::vector<Storage> storages;
  std::vector<Node> nodes;  ///< by operator
  std::vector<Group> groups;
  std::vector<Bytes> resident;  ///< there throughout, in the order in which it is first read
  Time time;                    ///< of all nodes, each once

  [[nodiscard]] std::int64_t cost(std::uint32_t storage) const {
    return groups[storages[storage].group].cost;
  }
  [[nodiscard]] std::span<const std::uint32_t> parents(std::uint32_t storage) const {
    return groups[storages[storage].group].parents;
  }
  /// What the same group makes, itself included.
  [[nodiscard]] std::span<const std::uint32_t> siblings(std::uint32_t storage) const {
    return groups[storages[storage].group].makes;
  }
};

/// Of one microbatch, with times on `processor`. O(operators + reads), nearly.
[[nodiscard]] StorageGraph storage_graph(const Problem& problem, ProcessorId processor);

}  // namespace plimsoll
