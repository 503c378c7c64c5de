/// What can run next without a loss, and what is promising where there is no such thing.
///
/// A chain is a node that can run and, after it, nodes each of which waits for the one before. It
/// ends where least is there. A chain that fits in the room and at whose end no more is there than
/// before is safe: of all orders that fit, one begins with it. For what is there is a submodular
/// function of what has run, and of a chain any part that is not empty leaves more than all of it.
/// (For single nodes and for chains cut into hills and valleys: Liu 1987, "An Application of
/// Generalized Tree Pebbling to Sparse Matrix Factorization", SIAM J. Alg. Disc. Meth. 8(3).)
#pragma once

#include "policy/order/order_state.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

/// The longest chain that is looked at.
inline constexpr std::size_t kLongestChain = 12;

struct Chain {
  std::array<std::uint32_t, kLongestChain> nodes{};
  std::uint32_t length = 0;  ///< up to where least is there
  std::int64_t hill = 0;     ///< the most that it needs
  std::int64_t valley = 0;   ///< what is there at its end

  [[nodiscard]] std::span<const std::uint32_t> all() const {
    return std::span(nodes).first(length);
  }
};

class LookAhead {
 public:
  /// Looks at so many of the nodes that have been able to run for the shortest time, and at so many
  /// of the others.
  explicit LookAhead(std::size_t most_looked_at) : most_(most_looked_at) {}

  /// A safe chain where one is found, alone; else a chain of each node that is looked at and that
  /// fits in `room`. `state` is as it was afterwards. O(nodes looked at, with chains).
  [[nodiscard]] std::span<const Chain> chains(OrderState& state, std::int64_t room);

  [[nodiscard]] bool is_safe(const OrderState& state) const {
    return chains_.size() == 1 && chains_.front().valley <= state.there();
  }
  /// Nodes looked at so far, those of chains included.
  [[nodiscard]] std::size_t looks() const { return looks_; }

 private:
  [[nodiscard]] Chain chain_from(OrderState& state, std::size_t place, std::int64_t room);

  std::size_t most_, looks_ = 0;
  std::vector<Chain> chains_;
  std::vector<std::size_t> places_;
};

}  // namespace plimsoll
