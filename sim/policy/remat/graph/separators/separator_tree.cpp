#include "policy/remat/graph/separators/separator_tree.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace plimsoll {

namespace {

constexpr std::uint32_t kNoPart = std::numeric_limits<std::uint32_t>::max();

class TreeSplitter {
 public:
  explicit TreeSplitter(const TreeDecomposition& tree)
      : tree_(tree),
        weight_(tree.bags.size()),
        largest_(tree.bags.size()),
        number_(tree.bags.size(), kNoPart) {
    separators_.of_vertex.assign(tree.bags.size(), kNoPart);
  }

  SeparatorTree split() {
    std::vector<std::uint32_t> all(tree_.bags.size());
    std::iota(all.begin(), all.end(), 0u);
    if (!all.empty()) split(all);
    return std::move(separators_);
  }

 private:
  using Bags = std::vector<std::uint32_t>;  ///< of one part of the tree, ascending

  [[nodiscard]] bool is_left(std::uint32_t vertex) const {
    return separators_.of_vertex[vertex] == kNoPart;
  }

  /// Returns the number of the part.
  std::uint32_t split(const Bags& bags) {
    const auto part = static_cast<std::uint32_t>(separators_.parts.size());
    separators_.parts.emplace_back();
    const std::uint32_t chosen = best_bag(bags);
    std::vector<std::uint32_t> separator;
    for (const std::uint32_t vertex : tree_.bags[chosen])
      if (is_left(vertex)) separator.push_back(vertex);
    for (const std::uint32_t vertex : separator) separators_.of_vertex[vertex] = part;
    std::ranges::sort(separator);
    separators_.parts[part].separator = std::move(separator);
    for (const Bags& rest : without(bags, chosen)) {
      if (std::ranges::none_of(rest, [&](auto b) { return is_left(tree_.bags[b].front()); }))
        continue;
      const std::uint32_t child = split(rest);
      separators_.parts[part].children.push_back(child);
    }
    separators_.parts[part].end = static_cast<std::uint32_t>(separators_.parts.size());
    return part;
  }

  /// Vertices are counted at the bag with which they go.
  std::uint32_t best_bag(const Bags& bags) {
    for (const std::uint32_t b : bags) {
      weight_[b] = is_left(tree_.bags[b].front()) ? 1 : 0;
      largest_[b] = 0;
    }
    for (const std::uint32_t b : bags) {
      const std::uint32_t parent = tree_.parents[b];
      if (b == bags.back()) continue;
      weight_[parent] += weight_[b];
      largest_[parent] = std::max(largest_[parent], weight_[b]);
    }
    std::uint32_t best = bags.front();
    std::uint32_t least = kNoPart;
    for (const std::uint32_t b : bags) {
      std::uint32_t beyond = weight_[bags.back()] - weight_[b];
      for (std::size_t i = 1; i < tree_.bags[b].size(); ++i)
        if (is_left(tree_.bags[b][i])) --beyond;
      const std::uint32_t most = std::max(largest_[b], beyond);
      if (most < least) best = b;
      least = std::min(least, most);
    }
    return best;
  }

  [[nodiscard]] std::vector<Bags> without(const Bags& bags, std::uint32_t chosen) {
    std::vector<Bags> rest;
    for (auto b = bags.rbegin(); b != bags.rend(); ++b) {
      if (*b == chosen) continue;
      const std::uint32_t parent = tree_.parents[*b];
      if (*b == bags.back() || parent == chosen) {
        number_[*b] = static_cast<std::uint32_t>(rest.size());
        rest.emplace_back();
      } else {
        number_[*b] = number_[parent];
      }
      rest[number_[*b]].push_back(*b);
    }
    for (Bags& part : rest) std::ranges::reverse(part);
    return rest;
  }

  const TreeDecomposition& tree_;
  SeparatorTree separators_;
  // By bag, of the part that is looked at:
  std::vector<std::uint32_t> weight_, largest_, number_;
};

}  // namespace

std::size_t SeparatorTree::depth() const {
  std::vector<std::size_t> depths(parts.size(), 1);
  std::size_t most = 0;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    most = std::max(most, depths[part]);
    for (const std::uint32_t child : parts[part].children) depths[child] = depths[part] + 1;
  }
  return most;
}

SeparatorTree separator_tree(const TreeDecomposition& tree) {
  return TreeSplitter(tree).split();
}

}  // namespace plimsoll
