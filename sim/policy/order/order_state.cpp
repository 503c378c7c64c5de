#include "policy/order/order_state.hpp"

#include <algorithm>

namespace plimsoll {

OrderState::OrderState(const OrderGraph& graph)
    : graph_(&graph), waits_(graph.nodes()), values_(graph.bytes.size()) {
  for (std::uint32_t node = 0; node < graph.nodes(); ++node) {
    waits_[node] = static_cast<std::uint32_t>(graph.before.of(node).size());
    if (waits_[node] == 0) ready_.push_back(node);
  }
  for (std::uint32_t value = 0; value < values_.size(); ++value) {
    values_[value].ending = static_cast<std::uint32_t>(graph.enders.of(value).size());
    if (!graph.starters.of(value).empty()) continue;
    values_[value].started = 1;
    there_ += graph.bytes[value];
  }
}

std::int64_t OrderState::need(std::uint32_t node) const {
  std::int64_t bytes = there_ + graph_->workspace[node];
  for (const std::uint32_t value : graph_->starts.of(node))
    if (values_[value].started == 0) bytes += graph_->bytes[value];
  return bytes;
}

std::int64_t OrderState::change(std::uint32_t node) const {
  std::int64_t bytes = 0;
  for (const std::uint32_t value : graph_->starts.of(node))
    if (values_[value].started == 0) bytes += graph_->bytes[value];
  for (const std::uint32_t value : graph_->ends.of(node))
    if (values_[value].ending == 1) bytes -= graph_->bytes[value];
  return bytes;
}

void OrderState::run_at(std::size_t place) {
  const std::uint32_t node = ready_[place];
  std::swap(ready_[place], ready_.back());
  ready_.pop_back();
  for (const std::uint32_t value : graph_->starts.of(node))
    if (values_[value].started++ == 0) there_ += graph_->bytes[value];
  for (const std::uint32_t value : graph_->ends.of(node))
    if (--values_[value].ending == 0) there_ -= graph_->bytes[value];
  for (const std::uint32_t next : graph_->after.of(node))
    if (--waits_[next] == 0) ready_.push_back(next);
  ++run_;
}

void OrderState::take_back(std::uint32_t node, std::size_t place) {
  --run_;
  for (const std::uint32_t next : graph_->after.of(node))
    if (waits_[next]++ == 0) ready_.pop_back();
  for (const std::uint32_t value : graph_->ends.of(node))
    if (values_[value].ending++ == 0) there_ += graph_->bytes[value];
  for (const std::uint32_t value : graph_->starts.of(node))
    if (--values_[value].started == 0) there_ -= graph_->bytes[value];
  ready_.push_back(node);
  std::swap(ready_[place], ready_.back());
}

void OrderState::run(std::uint32_t node) {
  run_at(static_cast<std::size_t>(std::ranges::find(ready_, node) - ready_.begin()));
}

std::optional<std::vector<std::int64_t>> needs_of(const OrderGraph& graph,
                                                  std::span<const std::uint32_t> order) {
  OrderState state(graph);
  std::vector<bool> has_run(graph.nodes(), false);
  std::vector<std::int64_t> needs;
  for (const std::uint32_t node : order) {
    if (has_run[node] || !state.is_ready(node)) return std::nullopt;
    has_run[node] = true;
    needs.push_back(state.need(node));
    state.run(node);
  }
  if (needs.size() != graph.nodes()) return std::nullopt;
  return needs;
}

std::int64_t peak_of(const OrderGraph& graph, std::span<const std::uint32_t> order) {
  std::int64_t peak = 0;
  const auto needs = needs_of(graph, order);
  for (const std::int64_t need : *needs) peak = std::max(peak, need);
  return peak;
}

}  // namespace plimsoll
