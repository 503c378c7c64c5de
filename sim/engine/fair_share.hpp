/// One capacity shared equally by the flows in progress: a `fair` link's direction, alone.
///
/// Model: of F flows each receives C / F. One VirtualClock with reference rate C and share 1 / F
/// gives every end in O(log F), where recomputing all rates would take O(F).
///
/// Worked example, C = 1 GB/s (1 B takes 1,000 ps), flow a of 4,000 B from t = 0, b of 1,000 B from
/// t = 1 us:
///
///   t = 0      V = 0      a starts: v_a = 4 us. Alone (F = 1), its end is due at 4 us.
///   t = 1 us   V = 1 us   b starts: v_b = 1 us + 1 us = 2 us. F = 2: V runs at half speed, so the
///                         head b is due at 1 us + (2 - 1) us * 2 = 3 us.
///   t = 3 us   V = 2 us   b ends. F = 1: a is due at 3 us + (4 - 2) us = 5 us.
///   t = 5 us   V = 4 us   a ends: 5,000 B in 5 us, the capacity was never idle.
///
/// V is an integer of picoseconds with 32 fractional bits (virtual_clock.hpp): an end is less than
/// 1 ps late, errors do not add up, and the bits are the same on every machine. Latency is not
/// known here: a flow that has one joins when it has passed. Measured (tests/bench/bench_fair_link,
/// one core of a shared Xeon): 50 million flows a second where one is in progress, 15 million where
/// 1,024 are.
#pragma once

#include "base/quantity.hpp"
#include "engine/virtual_clock.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plimsoll {

/// start and advance O(log flows); no allocation once warm.
class FairShare {
 public:
  /// Precondition: capacity > 0; at an unlimited one every flow ends as it starts.
  explicit FairShare(ByteRate capacity) : capacity_(capacity) {}

  void reserve(std::size_t flows) { clock_.reserve(flows); }

  /// `flow` joins the share with `bytes` to go. Precondition: no earlier than any call before, no
  /// later than next_end().
  void start(Time now, std::uint32_t flow, Bytes bytes);

  /// When the next flow ends if none starts before; unlimited() if there is none.
  [[nodiscard]] Time next_end() const { return next_end_; }

  /// At next_end(): takes out all flows that end by now and appends them to `ended`, by v, then by
  /// order of start. Before next_end() it changes nothing at all, so ends do not depend on how
  /// often one asks. Precondition: now <= next_end().
  void advance(Time now, std::vector<std::uint32_t>& ended);

  [[nodiscard]] std::size_t active() const { return clock_.flows(); }
  /// Time with at least one flow, up to `now`.
  [[nodiscard]] Time busy_time(Time now) const;

 private:
  void share_out();

  ByteRate capacity_;
  VirtualClock clock_;
  Time next_end_ = Time::unlimited();
  Time busy_time_;
  Time busy_since_;
};

}  // namespace plimsoll
