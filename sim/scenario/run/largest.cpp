#include "scenario/run/largest.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace plimsoll {

namespace {

class Searcher {
 public:
  Searcher(std::size_t candidates, const std::function<bool(std::size_t)>& holds,
           const LastSearch& search)
      : candidates_(candidates), holds_(holds), search_(search) {}

  LastFound run() {
    if (candidates_ <= search_.all) {
      try_all(0, candidates_);
    } else if (search_.scans) {
      scan();
    } else {
      try_evenly(0, candidates_ - 1, search_.samples);
      narrow();
    }
    return answer();
  }

 private:
  bool holds(std::size_t candidate) {
    const auto known = tried_.find(candidate);
    if (known != tried_.end()) return known->second;
    return tried_[candidate] = holds_(candidate);
  }

  void try_all(std::size_t begin, std::size_t end) {
    for (std::size_t c = begin; c < end; ++c) (void)holds(c);
  }

  /// `count` candidates from `first` to `last`, both included; `count` is at least 2.
  void try_evenly(std::size_t first, std::size_t last, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      (void)holds(first + (last - first) / (count - 1) * i +
                  (last - first) % (count - 1) * i / (count - 1));
  }

  [[nodiscard]] std::optional<std::size_t> last() const {
    const auto found = std::find_if(tried_.rbegin(), tried_.rend(),
                                    [](const auto& candidate) { return candidate.second; });
    return found != tried_.rend() ? std::optional(found->first) : std::nullopt;
  }

  /// The first that was tried behind `candidate`, which does not hold; or the end.
  [[nodiscard]] std::size_t next_tried(std::size_t candidate) const {
    const auto next = tried_.upper_bound(candidate);
    return next != tried_.end() ? next->first : candidates_;
  }

  /// Whether no candidate that was tried fails before one that holds.
  [[nodiscard]] bool is_monotone() const {
    return std::ranges::all_of(
        tried_, [end = last()](const auto& it) { return it.second == (it.first <= *end); });
  }

  void narrow() {
    if (last() && is_monotone()) {
      bisect(*last(), next_tried(*last()));
      try_all(*last() + 1, std::min(*last() + 1 + search_.neighbours, candidates_));
    }
    if (!last() || !is_monotone()) scan();
  }

  void scan() {
    if (candidates_ <= search_.scan) return try_all(0, candidates_);
    is_cut_short_ = true;
    try_evenly(0, candidates_ - 1, search_.scan);
    if (last() && !search_.scans) bisect(*last(), next_tried(*last()));
  }

  /// Finds a border between `begin` and `end`, of which one holds and one does not.
  void bisect(std::size_t begin, std::size_t end) {
    for (const bool as_begin = holds(begin); end - begin > 1;) {
      const std::size_t middle = begin + (end - begin) / 2;
      (holds(middle) == as_begin ? begin : end) = middle;
    }
  }

  /// Borders between neighbours that were tried, one holding and one not.
  void find_borders() {
    const std::map<std::size_t, bool> met = tried_;
    for (auto it = met.begin(); it != met.end(); ++it) {
      const auto next = std::next(it);
      if (next != met.end() && it->second != next->second && next->first <= *last())
        bisect(it->first, next->first);
    }
  }

  LastFound answer() {
    LastFound found;
    found.last = last();
    if (found.last) {
      if (!search_.scans) find_borders();
      std::optional<std::size_t> hole;
      std::size_t before = 0;
      for (const auto& [candidate, holds_there] : tried_) {
        if (candidate > *found.last) break;
        if (!holds_there && !hole) hole = candidate;
        if (holds_there && hole) found.holes.emplace_back(*std::exchange(hole, {}), before);
        before = candidate;
      }
    }
    const std::size_t behind = found.last ? candidates_ - 1 - *found.last : candidates_;
    const auto tried_behind = std::ranges::count_if(
        tried_, [&](const auto& it) { return !found.last || it.first > *found.last; });
    found.tried = tried_.size();
    found.is_cut_short = is_cut_short_;
    found.is_proven = static_cast<std::size_t>(tried_behind) == behind;
    return found;
  }

  const std::size_t candidates_;
  const std::function<bool(std::size_t)>& holds_;
  const LastSearch& search_;
  std::map<std::size_t, bool> tried_;
  bool is_cut_short_ = false;
};

}  // namespace

LastFound find_last(std::size_t candidates, const std::function<bool(std::size_t)>& holds,
                    const LastSearch& search) {
  return Searcher(candidates, holds, search).run();
}

}  // namespace plimsoll
