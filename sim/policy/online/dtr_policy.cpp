#include "policy/online/dtr_policy.hpp"

#include <algorithm>

namespace plimsoll {

DtrPolicy::DtrPolicy(const StorageGraph& graph, DtrScore score, DtrCandidates candidates,
                     std::uint64_t seed, const Work& work)
    : graph_(graph),
      score_(score),
      candidates_(candidates),
      work_(work),
      random_(seed),
      last_access_(graph.storages.size(), 0),
      classes_(graph.storages.size()),
      seen_(graph.storages.size(), 0) {}

void DtrPolicy::on_request(const OnlineView& view, std::uint32_t node) {
  for (const std::uint32_t read : graph_.nodes[node].reads) last_access_[read] = view.clock();
}

void DtrPolicy::on_operator(const OnlineView& view, const OperatorRun& run) {
  for (const std::uint32_t made : run.made) {
    if (run.is_first)
      last_access_[made] = view.clock();
    else if (classes_.has(made))
      classes_.leave(made, graph_.cost(made));
  }
}

void DtrPolicy::on_release(const OnlineView& view, std::uint32_t storage) {
  if (score_ != DtrScore::dtr_eq || !view.is_absent(storage)) return;
  classes_.begin(storage, graph_.cost(storage));
  const auto merge = [&](std::uint32_t neighbour) {
    if (view.is_absent(neighbour)) classes_.merge(storage, neighbour);
  };
  std::ranges::for_each(graph_.parents(storage), merge);
  std::ranges::for_each(graph_.storages[storage].children, merge);
}

std::vector<OnlineStep> DtrPolicy::on_pressure(const OnlineView& view) {
  std::uint32_t best = OnlineView::kNone;
  Score least;
  const auto is_last = [&](std::uint32_t storage) {
    const Score it = score(view, storage);
    ++evaluations_;
    if (best == OnlineView::kNone || it <= least) {
      best = storage;
      least = it;
    }
    return it.is_zero();
  };
  if (candidates_ == DtrCandidates::sqrt) {
    for (const std::uint32_t storage : chosen(view))
      if (is_last(storage)) break;
  } else {
    for (std::uint32_t s = view.first_candidate(); s != OnlineView::kNone;
         s = view.next_candidate(s))
      if (is_last(s)) break;
  }
  work_.add(std::int64_t{view.candidates()});
  if (best == OnlineView::kNone) return {};
  return {{.release = best}};
}

Score DtrPolicy::score(const OnlineView& view, std::uint32_t storage) {
  const auto bytes = static_cast<std::uint64_t>(graph_.storages[storage].bytes.count());
  const auto staleness = static_cast<std::uint64_t>(view.clock() - last_access_[storage]);
  const std::int64_t cost = graph_.cost(storage);
  const auto of = [](std::int64_t sum) { return static_cast<std::uint64_t>(sum); };
  switch (score_) {
    case DtrScore::dtr:
      return {of(cost + reached(view, storage, true) + reached(view, storage, false)), bytes,
              staleness};
    case DtrScore::dtr_eq:
      return {of(cost + class_sums(view, storage)), bytes, staleness};
    case DtrScore::local:
      return {of(cost), bytes, staleness};
    case DtrScore::msps:
      return {of(cost + reached(view, storage, true)), bytes, 1};
    case DtrScore::e_star:
      return {of(cost + reached(view, storage, true) + reached(view, storage, false)), bytes, 1};
    case DtrScore::lru:
      return {of(last_access_[storage]), 1, 1};
    case DtrScore::size:
      return {1, bytes, 1};
    case DtrScore::random:
      return {random_(), 1, 1};
  }
  return {};
}

/// The costs of the absent storages that are reached upwards, or downwards, through absent ones.
std::int64_t DtrPolicy::reached(const OnlineView& view, std::uint32_t storage, bool is_up) {
  ++search_;
  std::int64_t sum = 0;
  const auto visit = [&](std::uint32_t neighbour) {
    if (!view.is_absent(neighbour) || seen_[neighbour] == search_) return;
    seen_[neighbour] = search_;
    sum += graph_.cost(neighbour);
    open_.push_back(neighbour);
  };
  const auto visit_neighbours = [&](std::uint32_t of) {
    if (is_up)
      std::ranges::for_each(graph_.parents(of), visit);
    else
      std::ranges::for_each(graph_.storages[of].children, visit);
  };
  visit_neighbours(storage);
  std::size_t steps = 0;
  for (; !open_.empty(); ++steps) {
    const std::uint32_t next = open_.back();
    open_.pop_back();
    visit_neighbours(next);
  }
  work_.add(steps);
  return sum;
}

std::int64_t DtrPolicy::class_sums(const OnlineView& view, std::uint32_t storage) {
  roots_.clear();
  std::int64_t sum = 0;
  const auto visit = [&](std::uint32_t neighbour) {
    if (!view.is_absent(neighbour)) return;
    const std::uint32_t root = classes_.class_of(neighbour);
    if (std::ranges::find(roots_, root) != roots_.end()) return;
    roots_.push_back(root);
    sum += classes_.sum(root);
  };
  std::ranges::for_each(graph_.parents(storage), visit);
  std::ranges::for_each(graph_.storages[storage].children, visit);
  return sum;
}

/// In the order of the candidates.
std::vector<std::uint32_t> DtrPolicy::chosen(const OnlineView& view) {
  std::vector<std::uint32_t> all;
  Bytes bytes;
  for (std::uint32_t s = view.first_candidate(); s != OnlineView::kNone;
       s = view.next_candidate(s)) {
    all.push_back(s);
    bytes += graph_.storages[s].bytes;
  }
  const auto count = static_cast<std::int64_t>(all.size());
  std::erase_if(all, [&](std::uint32_t s) {
    return Signed128{graph_.storages[s].bytes.count()} * 100 * count < bytes.count();
  });
  std::size_t wanted = 0;
  while (wanted * wanted < all.size()) ++wanted;
  // Each of those that are left is taken with the chance that makes `wanted` of them in the end.
  std::vector<std::uint32_t> drawn;
  for (std::size_t i = 0; i < all.size() && drawn.size() < wanted; ++i)
    if (random_() % (all.size() - i) < wanted - drawn.size()) drawn.push_back(all[i]);
  return drawn;
}

}  // namespace plimsoll
