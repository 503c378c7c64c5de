/// The clock of flows that are all served at one and the same rate, whatever that rate is.
///
/// The clock has a fixed reference rate R (bytes/s). V counts the picoseconds of service *at R*
/// that a flow present all along would have received; it has 32 fractional bits. While the flows
/// receive a share x <= 1 of R, dV/dt = x. A flow of s bytes that starts at V ends when V reaches
///
///   v = V + ceil(s * 10^12 * 2^32 / R) / 2^32
///
/// for ever, whatever the share becomes: flows are put in order once, at their start.
///
/// A share is 1/n, exactly, or a number of 2^-64ths. In dt picoseconds V grows by floor(dt * x);
/// the first end is due after ceil((v - V) / x) picoseconds, so V has reached v when its event
/// comes, and an end is less than 1 ps late. What the others receive in that picosecond is in V,
/// not lost.
#pragma once

#include "base/quantity.hpp"
#include "engine/quad_heap.hpp"
#include "engine/wide.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace plimsoll {

/// Service in picoseconds at a clock's reference rate, with 32 fractional bits.
using Service = Unsigned128;

/// Service of `bytes` at `reference`, rounded up to the last bit; none at an unlimited rate.
/// Throws QuantityOverflow beyond 106 days. Precondition: reference > 0, bytes >= 0.
[[nodiscard]] Service service_of(Bytes bytes, ByteRate reference);

/// Bytes that `service` moves at a limited `reference`, rounded down.
[[nodiscard]] Bytes bytes_of(Service service, ByteRate reference);

/// The part of its reference rate at which a clock's flows are served.
class RateShare {
 public:
  /// 1/n, exactly. Precondition: n > 0.
  static RateShare one_of(std::uint64_t n) { return RateShare(n, 0); }
  /// parts / 2^64. Precondition: 0 < parts <= 2^64.
  static RateShare parts(Unsigned128 parts) {
    assert(parts > 0 && parts <= Unsigned128{1} << 64);
    return RateShare(0, parts);
  }

  /// floor(elapsed * share). Precondition: elapsed >= 0.
  [[nodiscard]] Service served_in(Time elapsed) const;
  /// ceil(service / share). Throws QuantityOverflow beyond 106 days.
  [[nodiscard]] Time time_for(Service service) const;

 private:
  RateShare(std::uint64_t divisor, Unsigned128 parts) : divisor_(divisor), parts_(parts) {}
  std::uint64_t divisor_;  ///< 0: `parts_` counts
  Unsigned128 parts_;
};

/// start and collect O(log flows), all else O(1); no allocation once warm.
class VirtualClock {
 public:
  void reserve(std::size_t flows) { ends_.reserve(flows); }
  [[nodiscard]] bool idle() const { return ends_.empty(); }
  [[nodiscard]] std::size_t flows() const { return ends_.size(); }

  /// Brings V to `now` at the present share; V stands still while idle.
  /// Precondition: no earlier than the last call.
  void advance(Time now);

  /// The share from the time of the last advance() on.
  void set_share(RateShare share) { share_ = share; }

  /// A flow that needs `service` joins at the time of the last advance(). Returns its v.
  /// The share is the caller's to set.
  Service start(std::uint32_t flow, Service service);

  /// When the first flow ends if nothing changes; unlimited() if there is none.
  [[nodiscard]] Time next_end() const;

  /// Takes out the flows with v <= V and appends them to `ended`, by v, then by order of start.
  void collect(std::vector<std::uint32_t>& ended);

  /// V at `now` >= the time of the last advance().
  [[nodiscard]] Service reading(Time now) const;

 private:
  struct End {
    Service at;  ///< v
    std::uint64_t sequence;
    std::uint32_t flow;
    friend bool operator<(const End& a, const End& b) {
      return a.at != b.at ? a.at < b.at : a.sequence < b.sequence;
    }
  };

  QuadHeap<End> ends_;
  Service reading_ = 0;  ///< V at `time_`
  Time time_;
  std::uint64_t sequence_ = 0;
  RateShare share_ = RateShare::one_of(1);
};

}  // namespace plimsoll
