/// 1F1B*: the periodic pattern of one stage a device that keeps the fewest microbatches on all of
/// them at once, and the cuts with the least period.
///
/// Beaumont, Eyraud-Dubois, Shilova, "Pipelined Model Parallelism: Complexity Results and Memory
/// Considerations" (hal-02968802), as reconstructed. With period T, u_s = F_s + B_s and L_s the
/// time from the start of a microbatch's forward to the end of its backward on stage s, F_s and B_s
/// stay clear of each other modulo T exactly if L_s = (k-1) T + r with u_s <= r <= T. So, from the
/// last stage to the first,
///
///   x = L_{s+1} + (messages there and back) + u_s,  k = ceil(x / T),  r = x - (k-1) T,
///   L_s = x if r >= u_s, else (k-1) T + u_s;        in flight: g_s = ceil(L_s / T):
///
/// Next-Fit from the last stage into bins of T. Each L_s is least, so every count is. A half-duplex
/// link takes part as a stage whose u is the time of both messages. Choices of the reconstruction:
/// messages are as long as the copies of the platform, no direction of a link is asked for more
/// than T, and a received value is kept from the start of its copy. A recomputed stage has B_s +
/// F_s for B_s, and keeps the values that it received, those that it has yet to send, and all of
/// one microbatch.
///
/// For fixed cuts the counts fall as T grows, so the least T for a memory limit is found by
/// bisection. For free cuts, L_s of the shortest kind dominates: with T given, the table over
/// (slot, first stage) of the least L that keeps to the limit decides whether any cuts do. Exact
/// for the bytes of PeriodicCosts::memory, which bound from above what the plan is measured to
/// need.
#pragma once

#include "policy/pipeline/periodic/periodic_costs.hpp"
#include "policy/pipeline/periodic/periodic_plan.hpp"

#include <optional>
#include <vector>

namespace plimsoll {

class NextFit {
 public:
  /// `limits` by device. Cuts are free where `cuts` is empty. The arguments must outlive it.
  NextFit(const PeriodicCosts& costs, const std::vector<Bytes>& limits,
          std::vector<std::size_t> cuts);

  /// Cuts with which the period is met within the limits, each at most `cap`, or none. O(slots) for
  /// given cuts, O(slots stages^2) for free ones.
  [[nodiscard]] std::optional<std::vector<std::size_t>> cuts_for(
      Time period, Bytes cap = Bytes::unlimited()) const;

  /// The least period, or none where no period is met. O(log(whole time)) times cuts_for().
  [[nodiscard]] std::optional<Time> least_period() const;

  /// The least cap on all devices with which the period is met whatever the limits, or none where
  /// no cap helps. O(log(bytes)) times cuts_for().
  [[nodiscard]] std::optional<Bytes> least_cap(Time period) const;

  /// Precondition: `cuts` and `period` are of cuts_for().
  [[nodiscard]] PeriodicPattern pattern(const std::vector<std::size_t>& cuts, Time period) const;

  /// What the plan of that pattern needs on each device, at most.
  [[nodiscard]] std::vector<Bytes> memories(const std::vector<std::size_t>& cuts,
                                            Time period) const;

  struct Lifetimes {
    Time slot;      ///< L of the slot
    Time with_cut;  ///< and of the messages over the cut before it
  };
  struct Run {
    std::size_t slot, begin, end;
    Bytes passing;  ///< the greatest of its stages, without what is recomputed
  };

  /// Of a slot behind which microbatches live for `behind`; none where it is too long.
  [[nodiscard]] std::optional<Lifetimes> lifetimes(const Run& run, Time behind, Time period) const;
  /// What is there while one of its operators runs.
  [[nodiscard]] Bytes passing(const Run& run) const;
  /// What the slot needs.
  [[nodiscard]] Bytes memory(const Run& run, const Lifetimes& lifetimes, Time period) const;

 private:
  [[nodiscard]] std::optional<Time> reach(const Run& run, Time behind, Time period,
                                          Bytes cap) const;
  [[nodiscard]] Run run_of(const std::vector<std::size_t>& cuts, std::size_t slot) const;
  [[nodiscard]] std::optional<std::vector<std::size_t>> free_cuts_for(Time period, Bytes cap) const;

  const PeriodicCosts& costs_;
  const std::vector<Bytes>& limits_;
  const std::vector<std::size_t> cuts_;
};

}  // namespace plimsoll
