/// Expandable segments once more, as simply as they can be said: which pages are mapped, and what
/// is in use; all else is worked out anew each time.
#pragma once

#include "memory/naive_cache.hpp"

namespace plimsoll::test {

/// One expandable segment for each stream and pool: which pages are mapped, and what is in use.
class NaiveExpandable {
 public:
  NaiveExpandable(std::int64_t capacity, const CachingSettings& settings)
      : capacity_(capacity), divisions_(settings.roundup_power2_divisions) {}

  /// `segment` of the place is the pool.
  std::optional<NaivePlace> allocate(std::int64_t n, std::size_t stream) {
    const std::int64_t size = naive_round(n, divisions_);
    const std::size_t pool = 2 * stream + (size <= kMiB ? 0 : 1);
    if (pool >= pools_.size()) pools_.resize(pool + 1);
    auto offset = find(pools_[pool], size);
    if (!offset) offset = grow(pool, size);
    if (!offset) {
      events_complete();
      release_cached();
      offset = grow(pool, size);
    }
    if (!offset) return std::nullopt;
    pools_[pool].used.push_back({*offset, size, n});
    return NaivePlace{pool, *offset, size};
  }
  void used_on(const NaivePlace& place, std::size_t stream) {
    if (place.segment / 2 != stream) block(place).shared = true;
  }
  void free(const NaivePlace& place) {
    if (block(place).shared)
      block(place).awaited = true;
    else
      std::erase_if(pools_[place.segment].used,
                    [&](const Used& it) { return it.offset == place.offset; });
  }
  void events_complete() {
    for (Pool& pool : pools_) std::erase_if(pool.used, [](const Used& it) { return it.awaited; });
  }
  void release_cached() {
    for (std::size_t p = 0; p < pools_.size(); ++p)
      for (std::size_t i = 0; i < pools_[p].mapped.size(); ++i)
        if (pools_[p].mapped[i] && is_free(pools_[p], static_cast<std::int64_t>(i) * page(p),
                                           static_cast<std::int64_t>(i + 1) * page(p)))
          pools_[p].mapped[i] = false;
  }

  NaiveCounts counts() const {
    NaiveCounts counts;
    for (std::size_t p = 0; p < pools_.size(); ++p) {
      const auto pages = std::ranges::count(pools_[p].mapped, true);
      counts.reserved += pages * page(p);
      counts.segments += pages > 0 ? 1 : 0;
      for (const Used& it : pools_[p].used) {
        if (!it.awaited) counts.allocated += it.size;
        counts.active += it.size;
        counts.requested += it.requested;
      }
    }
    return counts;
  }

 private:
  struct Used {
    std::int64_t offset = 0, size = 0, requested = 0;
    bool shared = false, awaited = false;
  };
  struct Pool {
    std::vector<bool> mapped;
    std::vector<Used> used;
  };
  struct Range {
    std::int64_t begin = 0, end = 0;
    bool mapped = false;
  };

  static std::int64_t page(std::size_t pool) { return pool % 2 == 0 ? 2 * kMiB : 20 * kMiB; }
  Used& block(const NaivePlace& place) {
    return *std::ranges::find(pools_[place.segment].used, place.offset, &Used::offset);
  }
  static bool is_free(const Pool& pool, std::int64_t begin, std::int64_t end) {
    return std::ranges::none_of(
        pool.used, [&](const Used& it) { return it.offset < end && it.offset + it.size > begin; });
  }

  /// What is not in use, in the order of addresses: mapped or not, as large as it can be.
  std::vector<Range> ranges(const Pool& pool, std::int64_t page) const {
    std::vector<Range> all;
    std::vector<Used> used = pool.used;
    std::ranges::sort(used, {}, &Used::offset);
    std::size_t u = 0;
    for (std::size_t i = 0; i < pool.mapped.size(); ++i) {
      std::int64_t at = static_cast<std::int64_t>(i) * page;
      const std::int64_t end = at + page;
      while (at < end) {
        while (u < used.size() && used[u].offset + used[u].size <= at) ++u;
        if (u < used.size() && used[u].offset <= at) {
          at = std::min(end, used[u].offset + used[u].size);
          continue;
        }
        const std::int64_t until = u < used.size() ? std::min(end, used[u].offset) : end;
        if (!all.empty() && all.back().end == at && all.back().mapped == pool.mapped[i])
          all.back().end = until;
        else
          all.push_back({at, until, pool.mapped[i]});
        at = until;
      }
    }
    return all;
  }

  std::optional<std::int64_t> find(const Pool& pool, std::int64_t size) const {
    const std::int64_t bytes = page(static_cast<std::size_t>(&pool - pools_.data()));
    const std::vector<Range> all = ranges(pool, bytes);
    std::optional<std::int64_t> best;
    std::int64_t least = 0;
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (!all[r].mapped || all[r].end - all[r].begin < size) continue;
      std::int64_t reach = all[r].end - all[r].begin;
      if (r + 1 < all.size() && !all[r + 1].mapped && all[r + 1].begin == all[r].end)
        reach += all[r + 1].end - all[r + 1].begin;
      if (best && reach >= least) continue;
      best = all[r].begin;
      least = reach;
    }
    return best;
  }

  std::optional<std::int64_t> grow(std::size_t p, std::int64_t size) {
    Pool& pool = pools_[p];
    const std::int64_t bytes = page(p);
    if (pool.mapped.empty())
      pool.mapped.resize(static_cast<std::size_t>((capacity_ + capacity_ / 8 + bytes - 1) / bytes));
    const std::vector<Range> all = ranges(pool, bytes);
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (all[r].mapped) continue;
      const bool follows = r > 0 && all[r - 1].mapped && all[r - 1].end == all[r].begin;
      const std::int64_t begin = follows ? all[r - 1].begin : all[r].begin;
      if (all[r].end - begin < size) continue;
      const std::int64_t pages = (begin + size - all[r].begin + bytes - 1) / bytes;
      if (counts().reserved + pages * bytes > capacity_) return std::nullopt;
      for (std::int64_t i = 0; i < pages; ++i)
        pool.mapped[static_cast<std::size_t>(all[r].begin / bytes + i)] = true;
      return begin;
    }
    return std::nullopt;
  }

  std::int64_t capacity_, divisions_;
  std::vector<Pool> pools_;
};

}  // namespace plimsoll::test
