#include "policy/order/beam.hpp"

#include "base/dense_id.hpp"

#include <algorithm>
#include <utility>

namespace plimsoll {

namespace {

/// Nodes that a state looks at, and chains that it goes on with.
constexpr std::size_t kMostLookedAt = 64, kMostBranches = 6;
/// Copied values and nodes that take as long as a look.
constexpr std::size_t kCopiedInALook = 64;

/// splitmix64 (Steele, Lea, Flood 2014, "Fast Splittable Pseudorandom Number Generators", OOPSLA).
std::uint64_t scrambled(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

Beam::Beam(const OrderGraph& graph, std::size_t width, Ranking first)
    : graph_(graph), width_(width), first_(first), place_(graph.nodes()), look_(kMostLookedAt) {
  for (std::uint32_t place = 0; place < graph.given.size(); ++place)
    place_[graph.given[place]] = place;
}

std::optional<std::vector<std::uint32_t>> Beam::run(std::int64_t room, std::size_t most_looks) {
  fronts_.clear();
  trace_.assign(1, {kNone, kNone});
  const auto first = std::make_shared<State>(State{OrderState(graph_)});
  if (first->at.there() > room) return std::nullopt;
  if (advance(first, room)) return order_of(*first);
  while (!fronts_.empty() && looks() < most_looks) {
    std::vector<Entry> entries = std::move(fronts_.begin()->second);
    fronts_.erase(fronts_.begin());
    keep_best(entries);
    for (Entry& entry : entries) {
      const std::shared_ptr<State> state = state_of(std::move(entry));
      if (advance(state, room)) return order_of(*state);
    }
  }
  return std::nullopt;
}

void Beam::run_chain(State& state, const Chain& chain) {
  for (const std::uint32_t node : chain.all()) {
    state.at.run(node);
    state.hash ^= scrambled(node);
    trace_.push_back({state.trace, node});
    state.trace = static_cast<std::uint32_t>(trace_.size() - 1);
  }
}

/// Only where others refer to the state, too, it is copied.
std::shared_ptr<Beam::State> Beam::state_of(Entry entry) {
  std::shared_ptr<State> state = std::move(entry.state);
  if (state.use_count() > 1) {
    state = std::make_shared<State>(*state);
    copied_ += 1 + (graph_.nodes() + graph_.bytes.size()) / kCopiedInALook;
  }
  run_chain(*state, entry.chain);
  return state;
}

void Beam::keep_best(std::vector<Entry>& entries) const {
  std::ranges::stable_sort(entries, {},
                           [](const Entry& it) { return std::pair(it.there, it.hash); });
  const auto same = [](const Entry& a, const Entry& b) { return a.hash == b.hash; };
  entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
  if (entries.size() > width_) entries.resize(width_);
}

bool Beam::advance(const std::shared_ptr<State>& state, std::int64_t room) {
  while (true) {
    const auto chains = look_.chains(state->at, room);
    if (!look_.is_safe(state->at)) {
      branch(state, chains);
      return state->at.run() == graph_.nodes();
    }
    run_chain(*state, chains.front());
  }
}

bool Beam::is_better(Ranking ranking, const Chain& a, const Chain& b) const {
  switch (ranking) {
    case Ranking::valley:
      return std::pair(a.valley, a.hill) < std::pair(b.valley, b.hill);
    case Ranking::fall:
      return a.hill - a.valley > b.hill - b.valley;
    case Ranking::latest:
      return false;
    case Ranking::given:
      return place_[a.nodes[0]] < place_[b.nodes[0]];
  }
  return false;
}

/// Of chains that are equal in a ranking the latest is best.
void Beam::branch(const std::shared_ptr<State>& state, std::span<const Chain> chains) {
  std::vector<bool> is_taken(chains.size(), false);
  const std::size_t most = std::min({width_, kMostBranches, chains.size()});
  for (std::size_t branch = 0; branch < most; ++branch) {
    const auto ranking =
        static_cast<Ranking>((static_cast<std::size_t>(first_) + branch) % kRankings);
    std::size_t best = chains.size();
    for (std::size_t i = 0; i < chains.size(); ++i)
      if (!is_taken[i] && (best == chains.size() || is_better(ranking, chains[i], chains[best])))
        best = i;
    is_taken[best] = true;
    const Chain& chain = chains[best];
    std::uint64_t hash = state->hash;
    for (const std::uint32_t node : chain.all()) hash ^= scrambled(node);
    fronts_[state->at.run() + chain.length].push_back({chain.valley, hash, state, chain});
  }
}

std::vector<std::uint32_t> Beam::order_of(const State& state) const {
  std::vector<std::uint32_t> order;
  for (std::uint32_t at = state.trace; trace_[at].node != kNone; at = trace_[at].before)
    order.push_back(trace_[at].node);
  std::ranges::reverse(order);
  return order;
}

}  // namespace plimsoll
