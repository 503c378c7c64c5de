#include "policy/online/pool_policy.hpp"

#include "engine/wide.hpp"

#include <algorithm>
#include <limits>

namespace plimsoll {

PoolPolicy::PoolPolicy(const StorageGraph& graph, bool in_place, const Work& work)
    : graph_(graph),
      in_place_(in_place),
      work_(work),
      last_access_(graph.storages.size(), 0),
      classes_(graph.storages.size()) {}

bool PoolPolicy::may_release(const StorageGraph& graph, std::uint32_t storage) const {
  return in_place_ || !graph.storages[storage].is_changed;
}

void PoolPolicy::on_operator(const OnlineView& /*view*/, const OperatorRun& run) {
  for (const std::uint32_t read : graph_.nodes[run.node].reads) last_access_[read] = run.began;
  for (const std::uint32_t made : graph_.nodes[run.node].makes) last_access_[made] = run.began;
  for (const std::uint32_t made : run.made)
    if (classes_.has(made)) classes_.leave(made, graph_.cost(made));
}

void PoolPolicy::on_release(const OnlineView& view, std::uint32_t storage) {
  if (!view.is_absent(storage)) return;
  classes_.begin(storage, graph_.cost(storage));
  const auto merge = [&](std::uint32_t neighbour) {
    if (view.is_absent(neighbour)) classes_.merge(storage, neighbour);
  };
  std::ranges::for_each(graph_.parents(storage), merge);
  std::ranges::for_each(graph_.siblings(storage), merge);
}

const std::vector<ScoredPiece>& PoolPolicy::scored(const OnlineView& view) {
  pieces_.clear();
  owners_.clear();
  const OnlinePool& pool = view.pool();
  for (std::uint32_t p = pool.first_piece(); p != kNoPiece; p = pool.next_piece(p)) {
    const std::uint32_t owner = pool.owner_of(p);
    ScoredPiece& piece = pieces_.emplace_back(ScoredPiece{.bytes = pool.bytes_of(p).count()});
    owners_.push_back(owner);
    if (owner == OnlinePool::kFree) {
      piece.kind = ScoredPiece::Kind::free;
    } else if (owner != OnlinePool::kFixed && view.is_candidate(owner)) {
      piece.kind = ScoredPiece::Kind::evictable;
      piece.cost = cost(view, owner);
      piece.staleness = static_cast<std::uint64_t>(view.clock() - last_access_[owner]);
      ++evaluations_;
    }
  }
  work_.add(pieces_.size());
  return pieces_;
}

std::uint64_t PoolPolicy::cost(const OnlineView& view, std::uint32_t storage) {
  Signed128 sum = graph_.cost(storage);
  const auto add = [&](std::uint32_t neighbour) {
    if (!view.is_absent(neighbour)) return;
    const std::uint32_t root = classes_.class_of(neighbour);
    sum += std::max(classes_.sum(root), graph_.cost(neighbour));
  };
  std::ranges::for_each(graph_.parents(storage), add);
  std::ranges::for_each(graph_.siblings(storage), add);
  constexpr Signed128 kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::uint64_t>(std::min(sum, kMost));
}

}  // namespace plimsoll
