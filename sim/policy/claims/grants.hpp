/// When a memory grants a request, computed without the engine.
///
/// The model: requests come in issue order; each is granted at the first moment, not before the
/// one before it, at which its bytes are free. What is free is known ahead: every release has its
/// moment before the first request that may wait for it. A progressive release
/// (engine/progressive_release.hpp) gives back byte by byte.
///
/// Times within one instant are told apart by rounds, since steps of zero duration end in the round
/// after the one in which they start.
#pragma once

#include "engine/progressive_release.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace plimsoll {

/// A time, and the round of the engine's loop within it.
struct Moment {
  Time time;
  std::uint32_t round = 0;
  auto operator<=>(const Moment&) const = default;
};

/// The end of what starts at `start` and lasts `duration`.
[[nodiscard]] inline Moment after(Moment start, Time duration) {
  return duration == Time{} ? Moment{start.time, start.round + 1}
                            : Moment{start.time + duration, 0};
}

/// A value; copies are cheap enough for a search to branch on.
class GrantLedger {
 public:
  explicit GrantLedger(Bytes usable) : usable_(usable) {}

  /// Takes `bytes` without asking: what is there from the start.
  void place(Bytes bytes) { used_ += bytes; }

  /// Grants `demand` at the first moment not before `ready`; nothing if no known release frees
  /// enough. A demand of nothing neither waits nor delays others. O(log releases),
  /// with progressive releases O(those x log time) for each moment tried.
  [[nodiscard]] std::optional<Moment> grant(Bytes demand, Moment ready);

  void free_at(Moment when, Bytes bytes);

  /// `bytes` leave from `begin` to `end`, but none before the release is open, which is told by
  /// open_release(), at the latest before the first request that may wait for it. Its id.
  std::uint32_t release_progressively(Time begin, Moment end, Bytes bytes);
  void open_release(std::uint32_t release, Moment when);

  /// Progressive releases that a request looks at, and those with all others that a copy takes.
  [[nodiscard]] std::size_t under_way() const { return pending_.size(); }
  [[nodiscard]] std::size_t held() const { return pending_.size() + frees_.size(); }

  /// Of the last grant of some bytes.
  [[nodiscard]] Moment last_grant() const { return last_grant_; }

  /// Whether a release was told after a request that waited beyond it, which may have had its bytes
  /// sooner: a step without a demand overtakes one that waits.
  [[nodiscard]] bool was_told_late() const { return was_told_late_; }

 private:
  struct PendingRelease {
    std::uint32_t id;
    ProgressiveRelease release;
    Moment open_from, end;
    bool has_opened = false;  ///< open_from is known

    [[nodiscard]] Moment over() const { return std::max(open_from, end); }
  };
  using Free = std::pair<Moment, Bytes>;

  void settle(Moment now);
  [[nodiscard]] bool fits(Bytes demand) const {
    return usable_.is_unlimited() || used_ + demand <= usable_;
  }
  [[nodiscard]] std::optional<Moment> next_change(Moment now) const;
  [[nodiscard]] Time first_fit(Bytes demand, Moment now) const;

  Bytes usable_, used_;
  Moment last_grant_;
  Moment last_wait_;  ///< the end of the last wait for bytes
  bool was_told_late_ = false;
  std::vector<Free> frees_;  ///< a heap, the earliest on top
  std::vector<PendingRelease> pending_;
  std::uint32_t releases_ = 0;
};

}  // namespace plimsoll
