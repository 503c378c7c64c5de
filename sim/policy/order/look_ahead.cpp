#include "policy/order/look_ahead.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

/// Of the nodes that the last run made ready, the place of the one that adds least.
std::optional<std::size_t> next_in_chain(const OrderState& state, std::size_t ready_before,
                                         std::int64_t room) {
  std::optional<std::size_t> best;
  std::int64_t least = 0;
  for (std::size_t place = ready_before; place < state.ready().size(); ++place) {
    const std::uint32_t node = state.ready()[place];
    if (state.need(node) > room) continue;
    const std::int64_t change = state.change(node);
    if (best && change >= least) continue;
    best = place;
    least = change;
  }
  return best;
}

}  // namespace

std::span<const Chain> LookAhead::chains(OrderState& state, std::int64_t room) {
  chains_.clear();
  const std::size_t ready = state.ready().size(), latest = std::min(ready, most_);
  // Of the others one in `stride`, in the next state others than in this one.
  const std::size_t others = ready - latest, stride = others / most_ + 1;
  for (std::size_t i = 0; i < latest + (others + stride - 1) / stride; ++i) {
    const std::size_t place =
        i < latest ? ready - 1 - i
                   : std::min((i - latest) * stride + state.run() % stride, others - 1);
    ++looks_;
    if (state.need(state.ready()[place]) > room) continue;
    const Chain chain = chain_from(state, place, room);
    if (chain.valley <= state.there()) {
      chains_.assign(1, chain);
      break;
    }
    chains_.push_back(chain);
  }
  return chains_;
}

Chain LookAhead::chain_from(OrderState& state, std::size_t place, std::int64_t room) {
  const std::int64_t begin = state.there();
  Chain chain;
  places_.clear();
  std::int64_t hill = 0;
  for (std::optional<std::size_t> at = place; at && places_.size() < kLongestChain;) {
    const std::uint32_t node = state.ready()[*at];
    ++looks_;
    hill = std::max(hill, state.need(node));
    chain.nodes[places_.size()] = node;
    places_.push_back(*at);
    const std::size_t left = state.ready().size() - 1;
    state.run_at(*at);
    if (chain.length == 0 || state.there() < chain.valley) {
      chain.length = static_cast<std::uint32_t>(places_.size());
      chain.hill = hill;
      chain.valley = state.there();
    }
    if (state.there() <= begin) break;
    at = next_in_chain(state, left, room);
  }
  for (std::size_t i = places_.size(); i-- > 0;) state.take_back(chain.nodes[i], places_[i]);
  return chain;
}

}  // namespace plimsoll
