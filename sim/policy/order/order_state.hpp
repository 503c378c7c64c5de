/// An order as far as it goes: which nodes have run, which can, and what is there.
#pragma once

#include "policy/order/order_graph.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace plimsoll {

class OrderState {
 public:
  /// Nothing has run. `graph` must outlive it.
  explicit OrderState(const OrderGraph& graph);

  /// Nodes that can run, in an order that depends on what has run alone.
  [[nodiscard]] const std::vector<std::uint32_t>& ready() const { return ready_; }
  [[nodiscard]] bool is_ready(std::uint32_t node) const { return waits_[node] == 0; }
  [[nodiscard]] std::int64_t there() const { return there_; }
  [[nodiscard]] std::size_t run() const { return run_; }  ///< how many have

  /// What is there while a node that can run runs. O(values that it starts).
  [[nodiscard]] std::int64_t need(std::uint32_t node) const;
  /// What is there after it, less what is there now. O(values that it starts and ends).
  [[nodiscard]] std::int64_t change(std::uint32_t node) const;

  /// Runs the node at a place of ready(). O(its values and those after it).
  void run_at(std::size_t place);
  /// Takes back the last run, which was of ready()[place] then. In the same time.
  void take_back(std::uint32_t node, std::size_t place);

  /// Runs a node that can run. O(ready nodes).
  void run(std::uint32_t node);

 private:
  struct Value {
    std::uint32_t started = 0, ending = 0;  ///< starters that have run; enders that have not
  };

  const OrderGraph* graph_;
  std::vector<std::uint32_t> waits_;  ///< by node: for so many
  std::vector<Value> values_;
  std::vector<std::uint32_t> ready_;
  std::int64_t there_ = 0;
  std::size_t run_ = 0;
};

/// What is there while each node of `order` runs, beside what is resident; nothing where the order
/// breaks a rule of the graph. O(size of the graph, and the ready nodes at each).
[[nodiscard]] std::optional<std::vector<std::int64_t>> needs_of(
    const OrderGraph& graph, std::span<const std::uint32_t> order);

/// The most of them. Precondition: the order breaks no rule.
[[nodiscard]] std::int64_t peak_of(const OrderGraph& graph, std::span<const std::uint32_t> order);

}  // namespace plimsoll
