#include "policy/order/order_graph.hpp"

#include "base/dense_id.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

namespace plimsoll {

namespace {

/// What an operator does with a storage.
enum class Access : std::uint8_t { read, make, change };

/// Operators that may run in any order among each other, as far as one storage goes.
struct Epoch {
  Access access = Access::read;
  std::vector<std::uint32_t> nodes = {};
};

/// Follows each storage through the given order.
class OrderReader {
 public:
  explicit OrderReader(const Workload& workload)
      : workload_(workload),
        is_made_(workload.tensors.size(), false),
        epochs_(workload.tensors.size()) {
    for (const Operator& op : workload.operators)
      for (const TensorId made : workload.list(op.kept)) is_made_[index(made)] = true;
  }

  OrderGraph read() {
    graph_.operators = static_cast<std::uint32_t>(workload_.operators.size());
    for (std::uint32_t op = 0; op < graph_.operators; ++op) add(op);
    add_cache_gate();
    add_pass_gates();
    for (std::uint32_t storage = 0; storage < epochs_.size(); ++storage) finish(storage);
    build_lists();
    graph_.given = given_order();
    return std::move(graph_);
  }

 private:
  void add(std::uint32_t op) {
    const Operator& it = workload_.operators[op];
    graph_.workspace.push_back(it.workspace.count());
    all_ += it.workspace;
    if (it.forward != kNoOperator) edges_.emplace_back(index(it.forward), op);
    accesses_.clear();
    for (const TensorId tensor : workload_.list(it.reads)) note(tensor, Access::read);
    for (const TensorId tensor : workload_.list(it.kept)) note(tensor, Access::make);
    for (const TensorId tensor : workload_.list(it.updates)) note(tensor, Access::change);
    for (const auto& [storage, access] : accesses_) add(op, storage, access);
  }

  /// What is read and made by one operator it changes.
  void note(TensorId tensor, Access access) {
    const TensorId whole = workload_[tensor].inside;
    const bool is_part = whole != kNoTensor && is_made_[index(whole)];
    const std::uint32_t storage = index(is_part ? whole : tensor);
    const auto known =
        std::ranges::find(accesses_, storage, &std::pair<std::uint32_t, Access>::first);
    if (known == accesses_.end())
      accesses_.emplace_back(storage, access);
    else if (known->second != access)
      known->second = Access::change;
  }

  void add(std::uint32_t op, std::uint32_t storage, Access access) {
    std::vector<Epoch>& epochs = epochs_[storage];
    const bool commutes =
        access == Access::read ||
        (access == Access::make && workload_.tensors[storage].lifetime != Lifetime::accumulated);
    if (epochs.empty() || epochs.back().access != access || !commutes)
      epochs.push_back({.access = access});
    epochs.back().nodes.push_back(op);
  }

  std::uint32_t add_gate() {
    graph_.workspace.push_back(0);
    return static_cast<std::uint32_t>(graph_.workspace.size() - 1);
  }

  void order(std::span<const std::uint32_t> first, std::span<const std::uint32_t> second) {
    if (first.size() > 2 && second.size() > 2) {
      const std::uint32_t gate = add_gate();
      order(first, std::span(&gate, 1));
      order(std::span(&gate, 1), second);
      return;
    }
    for (const std::uint32_t before : first)
      for (const std::uint32_t after : second) edges_.emplace_back(before, after);
  }

  /// What is cached goes after the last forward that no backward is before.
  void add_cache_gate() {
    if (std::ranges::none_of(workload_.tensors, &Tensor::cached)) return;
    cache_gate_ = add_gate();
    for (std::uint32_t op = 0; op < graph_.operators; ++op)
      if (workload_.operators[op].phase == Phase::forward)
        edges_.emplace_back(op, cache_gate_);
      else
        edges_.emplace_back(cache_gate_, op);
  }

  /// An operator behind the backwards is in the pass after those of which it uses a gradient, too.
  /// One that uses none is in no pass: what it reads orders it.
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> passes() const {
    std::vector<std::uint32_t> passes(workload_.tensors.size(), 0);
    std::vector<std::vector<std::uint32_t>> of_pass;
    for (std::uint32_t op = workload_.optimizer_begin; op < graph_.operators; ++op) {
      std::uint32_t pass = 0;
      auto gradients =
          workload_.list(workload_.operators[op].reads) | std::views::filter([&](TensorId tensor) {
            return workload_[tensor].lifetime == Lifetime::accumulated;
          });
      if (gradients.begin() == gradients.end()) continue;
      for (const TensorId tensor : gradients) pass = std::max(pass, passes[index(tensor)]);
      for (const TensorId tensor : gradients) passes[index(tensor)] = pass + 1;
      of_pass.resize(std::max(of_pass.size(), pass + std::size_t{1}));
      of_pass[pass].push_back(op);
    }
    return of_pass;
  }

  /// A pass is whole where the given order has none of it behind the begin of a later one. Else, as
  /// where each gradient takes two operators before the next one begins, the two are one pass.
  void add_pass_gates() {
    const std::vector<std::vector<std::uint32_t>> of_pass = passes();
    // Of it and later ones.
    std::vector<std::uint32_t> begins(of_pass.size() + 1, graph_.operators);
    for (std::size_t pass = of_pass.size(); pass-- > 0;)
      begins[pass] = std::min(begins[pass + 1], of_pass[pass].front());
    std::vector<std::uint32_t> before, whole;
    std::uint32_t last = 0;
    for (std::size_t pass = 0; pass < of_pass.size(); ++pass) {
      whole.insert(whole.end(), of_pass[pass].begin(), of_pass[pass].end());
      last = std::max(last, of_pass[pass].back());
      if (last >= begins[pass + 1]) continue;
      order(before, whole);
      before = std::exchange(whole, {});
    }
  }

  void finish(std::uint32_t storage) {
    const std::vector<Epoch>& epochs = epochs_[storage];
    for (std::size_t e = 1; e < epochs.size(); ++e) order(epochs[e - 1].nodes, epochs[e].nodes);
    const Tensor& tensor = workload_.tensors[storage];
    if (!is_made_[storage]) {
      if (!epochs.empty()) graph_.resident += tensor.bytes;
      return;
    }
    if (tensor.bytes == Bytes{}) return;
    all_ += tensor.bytes;
    const auto value = static_cast<std::uint32_t>(graph_.bytes.size());
    graph_.bytes.push_back(tensor.bytes.count());
    for (const std::uint32_t node : epochs.front().nodes) starts_.emplace_back(node, value);
    if (stays(storage)) return;
    for (const std::uint32_t node : epochs.back().nodes) ends_.emplace_back(node, value);
    if (tensor.cached) ends_.emplace_back(cache_gate_, value);
  }

  [[nodiscard]] bool stays(std::uint32_t storage) const {
    const Lifetime lifetime = workload_.tensors[storage].lifetime;
    if (lifetime != Lifetime::accumulated) return lifetime != Lifetime::step;
    return std::ranges::none_of(epochs_[storage], [&](const Epoch& epoch) {
      return std::ranges::any_of(epoch.nodes, [&](std::uint32_t op) {
        return workload_.operators[op].phase == Phase::optimizer;
      });
    });
  }

  void build_lists() {
    const std::size_t nodes = graph_.nodes(), values = graph_.bytes.size();
    graph_.after = NumberLists(nodes, std::move(edges_));
    graph_.before = graph_.after.inverse(nodes);
    graph_.starts = NumberLists(nodes, std::move(starts_));
    graph_.ends = NumberLists(nodes, std::move(ends_));
    graph_.starters = graph_.starts.inverse(values);
    graph_.enders = graph_.ends.inverse(values);
  }

  /// Gates as soon as they can.
  [[nodiscard]] std::vector<std::uint32_t> given_order() const {
    std::vector<std::uint32_t> waits, order;
    for (std::uint32_t node = 0; node < graph_.nodes(); ++node)
      waits.push_back(static_cast<std::uint32_t>(graph_.before.of(node).size()));
    const auto run = [&](auto&& self, std::uint32_t node) -> void {
      order.push_back(node);
      for (const std::uint32_t next : graph_.after.of(node))
        if (--waits[next] == 0 && next >= graph_.operators) self(self, next);
    };
    for (std::uint32_t gate = graph_.operators; gate < graph_.nodes(); ++gate)
      if (waits[gate] == 0) run(run, gate);
    for (std::uint32_t op = 0; op < graph_.operators; ++op) run(run, op);
    return order;
  }

  const Workload& workload_;
  std::vector<bool> is_made_;                               ///< by tensor
  std::vector<std::vector<Epoch>> epochs_;                  ///< by tensor
  std::vector<std::pair<std::uint32_t, Access>> accesses_;  ///< of one operator
  std::vector<NumberLists::Pair> edges_, starts_, ends_;
  std::uint32_t cache_gate_ = kNone;
  Bytes all_;  ///< values and workspaces: their sum must be a number
  OrderGraph graph_;
};

}  // namespace

OrderGraph order_graph(const Workload& workload) {
  return OrderReader(workload).read();
}

OrderGraph reversed(const OrderGraph& graph) {
  OrderGraph back = graph;
  std::swap(back.before, back.after);
  std::swap(back.starts, back.ends);
  std::swap(back.starters, back.enders);
  std::ranges::reverse(back.given);
  return back;
}

}  // namespace plimsoll
