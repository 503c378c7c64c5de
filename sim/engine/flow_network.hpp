/// Flows that cross one or more shared capacities, max-min fair: `fair` links, alone or on a route.
///
/// Model. A path is a set of capacities and a rate cap of its own. Rates are max-min fair: raise
/// the rates of all flows together; when a capacity is used up, or a flow has reached its cap,
/// freeze the flows concerned; go on with the rest (progressive filling). No flow can then get more
/// without taking from one that has no more than itself.
///
/// Worked example: capacities A = 12, B = 9 (GB/s); flows a on A, b on B, c and d on A and B.
/// All rise to 3: then B (b, c, d) is used up, and these three stay at 3. a goes on alone to
/// 12 - 2 * 3 = 6, where A is used up. When b ends, c and d share A with a: all rise to 4, A is
/// used up, and B, with 8 of 9, no longer binds.
///
/// All flows of one path have the same rate at any time, so a path has one VirtualClock, whose
/// reference rate R is the least of its capacities and its cap, and only the *paths* of the
/// connected component (capacities joined by paths in use) that changed are solved. Where a path
/// shares no capacity with another in use, its share is known without solving: 1/F exactly, if its
/// cap does not bind.
///
/// Exactness: integers only. Rates are floored to 2^-64 B/s, shares to 2^-64 of R; an end is due at
/// the first whole picosecond at which the flow has got its bytes at these rates. Against exact
/// rational rates a flow's own rounding makes it less than 1 ps late as long as (its duration in
/// ps) * F stays below 2^60, F flows being in the component: 13 days for one flow, 19 minutes for a
/// thousand. Same bits on every machine, whatever the order in which paths were added, up to the
/// order of flows that end in one picosecond.
#pragma once

#include "base/quantity.hpp"
#include "engine/virtual_clock.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace plimsoll {

enum class CapacityId : std::uint32_t {};
enum class PathId : std::uint32_t {};

/// Complexity, with F flows on a path, P paths known, and a component of k capacities and p paths
/// in use, each over l capacities: start and advance O(log F + log P) where the path is alone; else
/// a solve, once an instant, in at most p rounds of O(k + p l). Nothing is allocated per flow once
/// warm.
class FlowNetwork {
 public:
  enum class Solver {
    automatic,  ///< no solving where the share is known without
    always      ///< progressive filling everywhere: for tests of one against the other
  };

  /// Capacities are > 0; an unlimited one holds nothing back, but its busy time is kept.
  explicit FlowNetwork(std::span<const ByteRate> capacities, Solver solver = Solver::automatic);

  /// The path over `capacities` (in any order, each at most once) on which no flow is faster than
  /// `cap`; the same id again for an equal path. To be called before flows start, as it allocates.
  /// O(paths). Precondition: cap > 0.
  PathId add_path(std::span<const CapacityId> capacities, ByteRate cap = ByteRate::unlimited());

  /// Room for flow ids below `flows`.
  void reserve(std::size_t flows) { flows_.reserve(flows); }

  /// A flow begins. Ids are the caller's, dense, and may be used again after the flow's end.
  /// Precondition: no earlier than any call before, no later than next_end().
  void start(Time now, std::uint32_t flow, Bytes bytes, PathId path);

  /// When the next flow ends if none starts before; unlimited() if there is none.
  [[nodiscard]] Time next_end();

  /// At next_end(): takes out all flows that end by now and appends them to `ended`: by path id;
  /// within a path by the service they needed, then by order of start. Before next_end() it changes
  /// nothing. Precondition: now <= next_end().
  void advance(Time now, std::vector<std::uint32_t>& ended);

  /// Bytes of a flow in progress still to move at `now`, rounded down. O(1) once rates are settled.
  /// Precondition: the flow is in progress; now is between the last start or end and next_end().
  [[nodiscard]] Bytes remaining(std::uint32_t flow, Time now);

  /// Flows in progress over a capacity, in all.
  [[nodiscard]] std::size_t active(CapacityId capacity) const;
  [[nodiscard]] std::size_t active() const { return flows_in_progress_; }
  /// Time with at least one flow over the capacity, up to `now`.
  [[nodiscard]] Time busy_time(CapacityId capacity, Time now) const;

 private:
  struct Capacity {
    ByteRate rate;
    std::vector<std::uint32_t> in_use;  ///< paths with flows over it, if it is limited
    std::size_t known_paths = 0;        ///< all that cross it: room for in_use
    std::size_t flows = 0;
    Time busy_time;
    Time busy_since;
    // During a solve, rates in 2^-64 B/s:
    Unsigned128 left = 0;    ///< of the rate, beside the frozen flows
    Unsigned128 level = 0;   ///< at which the rising flows would use it up
    std::size_t rising = 0;  ///< flows not yet frozen
    bool seen = false;
  };
  struct Path {
    std::vector<std::uint32_t> capacities;
    std::vector<std::uint32_t> limited;  ///< those of them that can hold a flow back
    ByteRate cap;
    ByteRate narrowest;  ///< the least of its capacities
    ByteRate reference;  ///< R
    VirtualClock clock;
    bool changed = false;  ///< its number of flows, since the last settle()
    // During a solve:
    bool seen = false;
    bool frozen = false;
    Unsigned128 rate = 0;  ///< in 2^-64 B/s
  };
  struct FlowState {
    std::uint32_t path = 0;
    Service end = 0;  ///< v on the path's clock
  };

  void join(std::uint32_t path, Time now);
  void leave(std::uint32_t path, std::size_t flows, Time now);
  void mark_changed(std::uint32_t path, Time now);
  void grow_tournament();
  void put_end(std::uint32_t path, Time end);
  [[nodiscard]] std::uint32_t first_to_end() const;

  void settle();
  [[nodiscard]] bool alone(const Path& path) const;
  [[nodiscard]] RateShare share_alone(const Path& path) const;
  void settle_path(std::uint32_t path, RateShare share);
  void settle_component(std::uint32_t seed);
  void gather_component(std::uint32_t seed);
  void see_capacities(const Path& path);
  void fill(std::span<const std::uint32_t> paths, std::span<const std::uint32_t> capacities);
  [[nodiscard]] Unsigned128 next_level(std::span<const std::uint32_t> paths,
                                       std::span<const std::uint32_t> capacities);
  [[nodiscard]] bool stops_at(const Path& path, Unsigned128 level) const;

  std::vector<Capacity> capacities_;
  std::vector<Path> paths_;
  std::vector<FlowState> flows_;
  std::vector<Time> ends_;  ///< tournament over paths: ends_[leaves_ + path], least at 1
  std::size_t leaves_ = 1;
  std::size_t flows_in_progress_ = 0;
  std::vector<std::uint32_t> changed_;  ///< paths to settle
  Time changed_at_;
  std::vector<std::uint32_t> seen_paths_, seen_capacities_;  ///< by the settle() at hand
  Solver solver_;
};

}  // namespace plimsoll
