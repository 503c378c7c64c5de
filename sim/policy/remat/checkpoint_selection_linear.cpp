#include "policy/remat/checkpoint_selection.hpp"

#include <algorithm>
#include <limits>

namespace plimsoll {
namespace {

constexpr std::int64_t kNothing = std::numeric_limits<std::int64_t>::min();

/// The largest of values[k], k in (i, j], while i and j fall.
class FallingMaximum {
 public:
  explicit FallingMaximum(const std::vector<std::int64_t>& values) : values_(values) {}

  void add(std::uint32_t k) {
    while (queue_.size() > far_ && values_[queue_.back()] <= values_[k]) queue_.pop_back();
    queue_.push_back(k);
  }
  std::int64_t up_to(std::uint32_t j) {
    while (queue_[far_] > j) ++far_;
    return values_[queue_[far_]];
  }

 private:
  const std::vector<std::int64_t>& values_;
  std::vector<std::uint32_t> queue_;
  std::size_t far_ = 0;
};

/// M(0) without `forward_need`, in O(n). Candidates j are queued nearest last, M falling with j,
/// since a nearer one with M no larger is no worse for ever. For the two farthest the window of the
/// maximum is kept; its ends only fall. Dropping the farthest is final: all U grow as i falls.
std::int64_t least_value(const SelectionChain& chain) {
  const auto n = static_cast<std::uint32_t>(chain.size());
  std::vector<std::int64_t> value(n);
  std::vector<std::uint32_t> queue;
  std::size_t far = 0;
  FallingMaximum first(chain.need), second(chain.need);
  value[n - 1] = chain.last;
  for (std::uint32_t i = n - 1; i-- > 0;) {
    while (queue.size() > far && value[queue.back()] >= value[i + 1]) queue.pop_back();
    queue.push_back(i + 1);
    first.add(i + 1);
    second.add(i + 1);
    for (;; ++far) {
      const std::uint32_t j = queue[far];
      const std::int64_t needed = chain.end[j] + first.up_to(j) - chain.before[i];
      value[i] = chain.own[i] + std::max(value[j], needed);
      if (needed <= value[j] || far + 1 == queue.size()) break;
      const std::uint32_t nearer = queue[far + 1];
      if (value[nearer] > needed ||
          chain.end[nearer] + second.up_to(nearer) - chain.before[i] > needed)
        break;
    }
  }
  return value[0];
}

/// Finds, for j = 1, 2, ..., the checkpoint i before j with the fewest bytes whose segment (i, j)
/// keeps to a peak. `room` of i is what need_k may be: peak - (bytes up to i) + before_i. An i
/// whose room a need exceeds is over for good; a nearer i with no more bytes has no less room, so
/// that the candidates are a queue with bytes rising, and the oldest that fits is the best.
class OldestCandidate {
 public:
  OldestCandidate(const SelectionChain& chain, const std::vector<std::int64_t>& kept)
      : chain_(chain), kept_(kept), room_(chain.size()) {}

  void add(std::uint32_t i, std::int64_t room) {
    while (queue_.size() > old_ && kept_[queue_.back()] >= kept_[i]) queue_.pop_back();
    queue_.push_back(i);
    room_[i] = room;
  }

  std::optional<std::uint32_t> before(std::uint32_t j) {
    while (maxima_.size() > oldest_ && chain_.need[maxima_.back()] <= chain_.need[j])
      maxima_.pop_back();
    maxima_.push_back(j);
    for (; old_ < queue_.size(); ++old_) {
      const std::uint32_t i = queue_[old_];
      while (maxima_[oldest_] <= i) ++oldest_;
      if (chain_.end[j] + chain_.need[maxima_[oldest_]] <= room_[i]) return i;
    }
    return std::nullopt;
  }

 private:
  const SelectionChain& chain_;
  const std::vector<std::int64_t>& kept_;
  std::vector<std::int64_t> room_;
  std::vector<std::uint32_t> queue_, maxima_;
  std::size_t old_ = 0, oldest_ = 0;
};

/// max values[k], k in (i, j], for any i and growing j: a stack of falling values.
class GrowingMaximum {
 public:
  explicit GrowingMaximum(const std::vector<std::int64_t>& values) : values_(values) {}

  /// The first i whose maximum changes.
  std::uint32_t add(std::uint32_t j) {
    while (!stack_.empty() && values_[stack_.back()] <= values_[j]) stack_.pop_back();
    const std::uint32_t from = stack_.empty() ? 0 : stack_.back();
    stack_.push_back(j);
    return from;
  }
  [[nodiscard]] std::int64_t after(std::uint32_t i) const {
    return values_[*std::ranges::upper_bound(stack_, i)];
  }

 private:
  const std::vector<std::int64_t>& values_;
  std::vector<std::uint32_t> stack_;
};

/// Slack of each i = room_i - level_i, where levels are set over ranges and rooms one by one; finds
/// the first i of at least a given slack. A segment tree; every operation is O(log n).
class SlackTree {
 public:
  explicit SlackTree(std::uint32_t size) {
    while (leaves_ < size) leaves_ *= 2;
    nodes_.resize(2 * std::size_t{leaves_});
  }

  void set_room(std::uint32_t i, std::int64_t room) {
    change(1, 0, leaves_, i, i + 1, &Node::room, room);
  }
  void set_level(std::uint32_t begin, std::uint32_t end, std::int64_t level) {
    change(1, 0, leaves_, begin, end, &Node::level, level);
  }

  std::optional<std::uint32_t> first_of(std::int64_t slack) {
    if (nodes_[1].slack < slack) return std::nullopt;
    std::uint32_t node = 1;
    while (node < leaves_) {
      push(node);
      node *= 2;
      if (nodes_[node].slack < slack) ++node;
    }
    return node - leaves_;
  }

 private:
  struct Node {
    std::int64_t room = kNothing;   ///< the largest below
    std::int64_t slack = kNothing;  ///< the largest below
    std::int64_t level = 0;         ///< of all below, where not kNothing
  };

  void set(std::uint32_t node, std::int64_t Node::*what, std::int64_t value) {
    Node& it = nodes_[node];
    it.*what = value;
    it.slack = it.room == kNothing ? kNothing : it.room - it.level;
  }

  void push(std::uint32_t node) {
    if (nodes_[node].level == kNothing) return;
    set(2 * node, &Node::level, nodes_[node].level);
    set(2 * node + 1, &Node::level, nodes_[node].level);
    nodes_[node].level = kNothing;
  }

  void change(std::uint32_t node, std::uint32_t low, std::uint32_t high, std::uint32_t begin,
              std::uint32_t end, std::int64_t Node::*what, std::int64_t value) {
    if (end <= low || high <= begin) return;
    if (begin <= low && high <= end) return set(node, what, value);
    push(node);
    const std::uint32_t middle = low + (high - low) / 2;
    const std::uint32_t left = 2 * node, right = left + 1;
    change(left, low, middle, begin, end, what, value);
    change(right, middle, high, begin, end, what, value);
    nodes_[node].room = std::max(nodes_[left].room, nodes_[right].room);
    nodes_[node].slack = std::max(nodes_[left].slack, nodes_[right].slack);
  }

  std::uint32_t leaves_ = 1;
  std::vector<Node> nodes_;
};

/// As OldestCandidate, where a forward's workspace must fit as well: waiting_j may fall with j, so
/// that what does not fit for one j may fit for the next. Candidates are still those that no nearer
/// one with no more bytes dominates; of them the tree finds the first that fits the forwards.
class FittingCandidate {
 public:
  FittingCandidate(const SelectionChain& chain, const std::vector<std::int64_t>& kept)
      : chain_(chain),
        kept_(kept),
        room_(chain.size()),
        needs_(chain.need),
        forward_needs_(chain.forward_need),
        tree_(static_cast<std::uint32_t>(chain.size())) {}

  void add(std::uint32_t i, std::int64_t room) {
    while (!stack_.empty() && kept_[stack_.back()] >= kept_[i]) {
      tree_.set_room(stack_.back(), kNothing);
      stack_.pop_back();
    }
    stack_.push_back(i);
    room_[i] = room;
    tree_.set_room(i, room);
  }

  std::optional<std::uint32_t> before(std::uint32_t j) {
    needs_.add(j);
    tree_.set_level(forward_needs_.add(j), j, chain_.forward_need[j]);
    while (const auto i = tree_.first_of(chain_.waiting[j])) {
      if (chain_.end[j] + needs_.after(*i) <= room_[*i]) return i;
      tree_.set_room(*i, kNothing);
    }
    return std::nullopt;
  }

 private:
  const SelectionChain& chain_;
  const std::vector<std::int64_t>& kept_;
  std::vector<std::int64_t> room_;
  std::vector<std::uint32_t> stack_;
  GrowingMaximum needs_, forward_needs_;
  SlackTree tree_;
};

/// U(i, n-1) of every i.
std::vector<std::int64_t> to_the_end(const SelectionChain& chain) {
  const std::size_t n = chain.size();
  std::vector<std::int64_t> needed(n);
  std::int64_t need = 0, forward_need = 0;
  for (std::size_t i = n - 1; i-- > 0;) {
    need = std::max(need, chain.need[i + 1] + chain.end[n - 1]);
    if (!chain.forward_need.empty())
      forward_need = std::max(forward_need, chain.forward_need[i + 1] + chain.waiting[n - 1]);
    needed[i] = std::max(need, forward_need) - chain.before[i];
  }
  return needed;
}

template <class Candidates>
std::optional<std::vector<std::uint32_t>> within(const SelectionChain& chain, std::int64_t peak) {
  const auto n = static_cast<std::uint32_t>(chain.size());
  const std::vector<std::int64_t> rest = to_the_end(chain);
  std::vector<std::int64_t> kept(n);
  std::vector<std::uint32_t> previous(n, 0);
  Candidates candidates(chain, kept);
  kept[0] = chain.own[0];
  for (std::uint32_t i = 0; i + 1 < n; ++i) {
    if (i > 0) {
      const auto from = candidates.before(i);
      if (!from) continue;
      previous[i] = *from;
      kept[i] = kept[*from] + chain.own[i];
    }
    if (kept[i] + std::max(rest[i], chain.last) <= peak) {
      std::vector<std::uint32_t> chosen{i};
      while (chosen.back() > 0) chosen.push_back(previous[chosen.back()]);
      std::ranges::reverse(chosen);
      return chosen;
    }
    candidates.add(i, peak - kept[i] + chain.before[i]);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<std::uint32_t>> select_within(const SelectionChain& chain,
                                                        std::int64_t peak) {
  return chain.forward_need.empty() ? within<OldestCandidate>(chain, peak)
                                    : within<FittingCandidate>(chain, peak);
}

Selection select_near_linear(const SelectionChain& chain) {
  std::int64_t value = least_value(chain);
  if (!chain.forward_need.empty()) {
    SelectionChain relaxed = chain;
    relaxed.forward_need.clear();
    relaxed.waiting.clear();
    std::int64_t high = value_of(chain, *select_within(relaxed, value));
    while (value < high) {
      const std::int64_t middle = value + (high - value) / 2;
      if (select_within(chain, middle))
        high = middle;
      else
        value = middle + 1;
    }
  }
  return {value, *select_within(chain, value)};
}

}  // namespace plimsoll
