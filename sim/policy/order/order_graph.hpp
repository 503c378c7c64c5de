/// What the order of a step's operators may be, and what it means for memory.
///
/// Every operator runs once, in the form `keep`, as with `none`. It comes after what makes, changes
/// or completes what it reads in the given order; a change in place comes after all that read the
/// value before it; a backward comes after its forward. Several backwards that add to one gradient
/// of an activation may do so in any order: the first that runs makes it. Those that add to the
/// gradient of a parameter keep their order: all but the first need room of their own. Passes over
/// all gradients before the updates (unscaling, the norm that clips) come whole, one after the
/// other, where the workload has them so.
///
/// Gates are nodes that run in no time and hold nothing: they stand for "all of these before any of
/// those". What a framework caches until the end of the forwards ends with one.
///
/// A value is there from the start of the first of its `starters` to the end of the last of its
/// `enders`; from the beginning without the one, to the end without the other. So the graph that
/// runs backwards in time is of the same kind, and what is there follows from which nodes have run.
/// As a function of that set it is submodular: the later a node runs, the less it adds.
#pragma once

#include "policy/interface/policy.hpp"
#include "policy/order/number_lists.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

struct OrderGraph {
  std::uint32_t operators = 0;          ///< nodes of higher numbers are gates
  std::vector<std::int64_t> workspace;  ///< by node
  std::vector<std::int64_t> bytes;      ///< by value
  NumberLists before, after;            ///< nodes, by node: those next to it
  NumberLists starts, ends;             ///< values, by node
  NumberLists starters, enders;         ///< nodes, by value
  std::vector<std::uint32_t> given;     ///< all nodes, in the order of the workload
  Bytes resident;                       ///< there throughout, of what is read

  [[nodiscard]] std::size_t nodes() const { return workspace.size(); }
  /// Of all lists: what a walk through the graph looks at.
  [[nodiscard]] std::size_t size() const {
    return nodes() + before.size() + starts.size() + ends.size();
  }
};

/// The graph of one microbatch. O(n log n) for n operators, reads and writes. Throws
/// QuantityOverflow where all values together are too many bytes.
[[nodiscard]] OrderGraph order_graph(const Workload& workload);

/// The same with time running backwards: an order and its reverse need the same at each operator.
[[nodiscard]] OrderGraph reversed(const OrderGraph& graph);

}  // namespace plimsoll
