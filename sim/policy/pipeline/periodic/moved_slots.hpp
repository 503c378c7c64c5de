/// `offload` in pipelines that repeat a pattern.
///
/// What a slot keeps of a microbatch leaves for the store of its device once the forward has ended
/// and its value is sent, and is back when the backward starts, or earlier where both ways take
/// turns. It leaves in every period, or in none: it stays where its copies take longer than a
/// period, where a microbatch comes back before both are over, and in the last slot, whose
/// backwards follow its forwards.
#pragma once

#include "policy/pipeline/parameters/pipeline_parameters.hpp"
#include "policy/pipeline/periodic/periodic_plan.hpp"

#include <optional>
#include <vector>

namespace plimsoll {

/// The copies of what a slot keeps of one microbatch, when nothing else uses their links.
struct SlotCopies {
  Time out, back;
  bool one_at_a_time = false;

  /// The longest that a link is taken.
  [[nodiscard]] Time load() const { return one_at_a_time ? out + back : std::max(out, back); }
  /// From the start of the copy back until the backward, at most.
  [[nodiscard]] Time longest_back() const { return one_at_a_time ? out + back + back : back; }
};

class MovedSlots {
 public:
  /// A device for each slot, in their order. Throws InputError where `offload` names others, where
  /// one has no way to a store, and where only some microbatches of a slot are to leave.
  MovedSlots(const Problem& problem, const std::vector<ProcessorId>& devices,
             const PipelineParameters& parameters);

  /// Of a slot of stages [begin, end); none where they are not to leave.
  [[nodiscard]] std::optional<SlotCopies> copies(std::size_t slot, std::size_t begin,
                                                 std::size_t end) const;

  /// What they take turns on, as PeriodicCosts::turns(). Precondition: the slot is moved.
  [[nodiscard]] std::vector<std::uint32_t> turns(std::size_t slot, bool out) const;

 private:
  struct Way {
    MemoryId home{}, store{};
    bool one_at_a_time = false;
    std::vector<Time> out, back;                    ///< of what is saved, over the first stages
    std::vector<Time> received_out, received_back;  ///< by stage: of what it was sent
  };

  void add_times(Way& way, std::size_t stage, bool recomputed) const;

  const Problem& problem_;
  std::vector<std::optional<Way>> ways_;  ///< by slot; empty where nothing is moved
};

/// When a slot's values are away that have been made and sent at `made` and are read from `read`
/// on; none where they stay.
[[nodiscard]] std::optional<PeriodicPattern::Away> away_between(Time made, Time read,
                                                                const SlotCopies& copies,
                                                                Time period);

}  // namespace plimsoll
