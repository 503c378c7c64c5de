/// What an online policy may look at while it runs. OnlineRun changes it; policies see it const.
#pragma once

#include "policy/online/run/online_pool.hpp"
#include "policy/online/run/storage_graph.hpp"

#include <cstdint>
#include <vector>

namespace plimsoll {

class OnlineView {
 public:
  static constexpr std::uint32_t kNone = StorageGraph::kNone;

  enum class Place : std::uint8_t {
    unmade,
    present,
    absent,  ///< it was there, and its group can make it again
    gone     ///< for good
  };

  /// Both must outlive it.
  OnlineView(const StorageGraph& graph, const OnlinePool& pool)
      : graph_(graph),
        pool_(pool),
        places_(graph.storages.size(), Place::unmade),
        locks_(graph.storages.size(), 0),
        next_(graph.storages.size() + 1, end()),
        previous_(graph.storages.size() + 1, end()),
        is_listed_(graph.storages.size(), false) {}

  [[nodiscard]] const StorageGraph& graph() const { return graph_; }
  [[nodiscard]] const OnlinePool& pool() const { return pool_; }

  /// 1 at the start, and the times of all operators that have run, in ps.
  [[nodiscard]] std::int64_t clock() const { return clock_; }
  [[nodiscard]] Place place(std::uint32_t storage) const { return places_[storage]; }
  [[nodiscard]] bool is_present(std::uint32_t storage) const {
    return places_[storage] == Place::present;
  }
  [[nodiscard]] bool is_absent(std::uint32_t storage) const {
    return places_[storage] == Place::absent;
  }
  /// What asks for room: the bytes of the allocation that fails.
  [[nodiscard]] Bytes need() const { return need_; }

  /// Whether it may be released: it is there, can be made again, and no operator that is about to
  /// run reads it.
  [[nodiscard]] bool is_candidate(std::uint32_t storage) const { return is_listed_[storage]; }
  /// All of those, in the order in which they became it, from first_candidate() to kNone.
  [[nodiscard]] std::uint32_t first_candidate() const { return candidate(next_[end()]); }
  [[nodiscard]] std::uint32_t next_candidate(std::uint32_t storage) const {
    return candidate(next_[storage]);
  }
  [[nodiscard]] std::uint32_t candidates() const { return listed_; }

  // --- for OnlineRun
  void advance(std::int64_t time) { clock_ += time; }
  void set_need(Bytes need) { need_ = need; }
  void set_place(std::uint32_t storage, Place place) {
    places_[storage] = place;
    relist(storage);
  }
  /// Each lock keeps it from being a candidate; the last one that goes puts it at the end of them.
  void lock(std::uint32_t storage) {
    ++locks_[storage];
    relist(storage);
  }
  void unlock(std::uint32_t storage) {
    --locks_[storage];
    relist(storage);
  }

 private:
  [[nodiscard]] std::uint32_t end() const {
    return static_cast<std::uint32_t>(graph_.storages.size());
  }
  [[nodiscard]] std::uint32_t candidate(std::uint32_t entry) const {
    return entry == end() ? kNone : entry;
  }
  void relist(std::uint32_t storage) {
    const bool is_one = is_present(storage) && locks_[storage] == 0;
    if (is_one == is_listed_[storage]) return;
    is_listed_[storage] = is_one;
    if (is_one) {
      previous_[storage] = previous_[end()];
      next_[storage] = end();
      ++listed_;
    } else {
      --listed_;
    }
    next_[previous_[storage]] = is_one ? storage : next_[storage];
    previous_[next_[storage]] = is_one ? storage : previous_[storage];
  }

  const StorageGraph& graph_;
  const OnlinePool& pool_;
  std::int64_t clock_ = 1;
  Bytes need_;
  std::vector<Place> places_;
  std::vector<std::uint32_t> locks_;
  std::vector<std::uint32_t> next_, previous_;  ///< of candidates, a ring through end()
  std::vector<bool> is_listed_;
  std::uint32_t listed_ = 0;
};

}  // namespace plimsoll
