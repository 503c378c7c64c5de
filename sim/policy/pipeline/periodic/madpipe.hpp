/// MadPipe's dynamic program: an allocation in which one special device may hold several slots.
///
/// Beaumont, Eyraud-Dubois, Shilova, "MadPipe: Memory Aware Dynamic Programming Algorithm for
/// Pipelined Model Parallelism" (hal-03025305), as reconstructed. For a target period T slots are
/// made from the last stage on. A state is the stage at which the slots so far begin, the normal
/// devices left, whether the special device holds the first of the slots, its load and memory, and
/// the time V for which a microbatch lives behind the next slot, which follows Next-Fit's rule
/// (policy/pipeline/periodic/next_fit.hpp). A slot on a normal device must fit into its memory, on
/// the special one its sum must fit, and no load may exceed T.
///
/// Choices of the reconstruction: of the states that agree in everything but load, memory and V,
/// one is kept for each cell of a grid of 16 x 16 over [0, T] x [0, limit], the one with the least
/// V; load and memory inside a cell are not rounded. A slot of the special device that follows
/// another there is not made: the two would be one slot.
///
/// `overlap` counts, of a slot that the special device holds beside another, one microbatch less
/// where there are several: seldom are as many of both alive at one moment as there ever are.
///
/// A heuristic: V is that of a slot a device, so an allocation found may have no schedule of period
/// T, and one that has may not be found. Schedule it to know.
#pragma once

#include "policy/pipeline/periodic/next_fit.hpp"

#include <map>
#include <optional>
#include <vector>

namespace plimsoll {

/// Slot k holds stages [cuts[k], cuts[k+1]) on device placement[k].
struct SharedAllocation {
  std::vector<std::size_t> cuts;
  std::vector<std::uint32_t> placement;
  bool operator==(const SharedAllocation&) const = default;
};

class MadPipe {
 public:
  /// `kinds` has three slots, of which it takes the costs of a first, a middle and a last one; all
  /// devices are alike, and each has `limit`. At most `most_slots` are made. The arguments must
  /// outlive it.
  MadPipe(const PeriodicCosts& kinds, std::size_t devices, Bytes limit, std::size_t most_slots);
  MadPipe(const MadPipe&) = delete;
  MadPipe& operator=(const MadPipe&) = delete;

  /// For that target, or none. Devices are numbered in the order of their first slots; fewer may be
  /// used. O(devices x stages^2) times the cells, 256.
  [[nodiscard]] std::optional<SharedAllocation> allocation_for(Time period,
                                                               bool overlap = false) const;

 private:
  /// The slots from a stage on.
  struct State {
    std::size_t begin = 0, normal_left = 0, slots = 0;
    bool special_first = false;
    Time load, behind;  ///< of the special device; of a microbatch
    Bytes memory, passing;
    std::size_t after = 0;  ///< index of the state with one slot less
  };
  class Table;

  [[nodiscard]] SharedAllocation allocation(const std::vector<State>& states,
                                            std::size_t whole) const;

  const PeriodicCosts& kinds_;
  const std::size_t devices_;
  const Bytes limit_;
  const std::size_t most_slots_;
  const std::vector<Bytes> limits_;
  const NextFit rule_;
};

}  // namespace plimsoll
