#include "policy/order/order_bound.hpp"

#include <algorithm>
#include <bit>
#include <ranges>
#include <vector>

namespace plimsoll {

namespace {

/// A bit for each of some nodes.
using Marks = std::uint64_t;
constexpr std::size_t kMarks = 64;

/// What has to be there at each of up to 64 nodes.
class CutsAtOnce {
 public:
  explicit CutsAtOnce(const OrderGraph& graph)
      : graph_(graph), comes_before_(graph.nodes()), comes_after_(graph.nodes()) {}

  /// The most at one of them.
  std::int64_t run(std::span<const std::uint32_t> nodes) {
    reach(nodes);
    std::vector<std::int64_t> bytes;
    for (const std::uint32_t node : nodes) bytes.push_back(graph_.workspace[node]);
    const Marks all = nodes.size() == kMarks ? ~Marks{0} : (Marks{1} << nodes.size()) - 1;
    for (std::uint32_t value = 0; value < graph_.bytes.size(); ++value) {
      Marks at = all & any(graph_.starters.of(value), comes_before_) &
                 any(graph_.enders.of(value), comes_after_);
      for (; at != 0; at &= at - 1)
        bytes[static_cast<std::size_t>(std::countr_zero(at))] += graph_.bytes[value];
    }
    return std::ranges::max(bytes);
  }

 private:
  /// Marks each node at those that it comes before, or is; and after.
  void reach(std::span<const std::uint32_t> nodes) {
    std::ranges::fill(comes_before_, 0);
    std::ranges::fill(comes_after_, 0);
    for (std::size_t i = 0; i < nodes.size(); ++i)
      comes_before_[nodes[i]] = comes_after_[nodes[i]] = Marks{1} << i;
    for (const std::uint32_t node : graph_.given)
      for (const std::uint32_t before : graph_.before.of(node))
        comes_after_[node] |= comes_after_[before];
    for (const std::uint32_t node : graph_.given | std::views::reverse)
      for (const std::uint32_t after : graph_.after.of(node))
        comes_before_[node] |= comes_before_[after];
  }

  /// What has no starters is there from the beginning, what has no enders to the end.
  static Marks any(std::span<const std::uint32_t> nodes, const std::vector<Marks>& marks) {
    if (nodes.empty()) return ~Marks{0};
    Marks marked = 0;
    for (const std::uint32_t node : nodes) marked |= marks[node];
    return marked;
  }

  const OrderGraph& graph_;
  std::vector<Marks> comes_before_, comes_after_;  ///< by node
};

}  // namespace

std::int64_t cut_bound(const OrderGraph& graph, std::span<const std::uint32_t> nodes,
                       const Work& work) {
  CutsAtOnce cuts(graph);
  std::int64_t most = 0;
  for (std::size_t begin = 0; begin < nodes.size(); begin += kMarks) {
    work.add(graph.size());
    most = std::max(most, cuts.run(nodes.subspan(begin, std::min(kMarks, nodes.size() - begin))));
  }
  return most;
}

}  // namespace plimsoll
