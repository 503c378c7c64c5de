/// What runs of stages cost on the devices of a pipeline that repeats a pattern.
#pragma once

#include "policy/pipeline/parameters/pipeline_parameters.hpp"
#include "policy/pipeline/partition/stage_bytes.hpp"
#include "policy/pipeline/periodic/moved_slots.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace plimsoll {

/// How many microbatches a slot keeps at once.
struct KeptCounts {
  std::int64_t in_flight = 0;       ///< from the start of the forward to the end of the backward
  std::int64_t saved = 0;           ///< of these, those whose saved values are there
  std::int64_t received = 0;        ///< values that came over the cut before it
  std::int64_t sent_gradients = 0;  ///< on their way over that cut
  std::int64_t received_gradients = 0;  ///< that came over the cut after it
  std::int64_t sent_values = 0;         ///< made, and on their way over that cut
};

/// How long values that leave are there at most.
struct KeptTimes {
  Time arrived;  ///< from the start of the message to the slot until its forward
  Time sent;     ///< from the start of the forward until its value has left
  Time backward;
};

/// What is kept, no more than of microbatches that have not left yet or are back. Does not rise as
/// the period grows.
[[nodiscard]] KeptCounts without_moved(KeptCounts kept, const SlotCopies& copies,
                                       const KeptTimes& times, Time period);

/// Slots have a device each, given in their order; stages [begin, end) are a slot.
class PeriodicCosts {
 public:
  /// `microbatches` of a plan; a device may have several slots. Refers to all but these. Throws
  /// InputError where no link joins neighbours, or the data and the first or the last slot.
  PeriodicCosts(const Problem& problem, const std::vector<ProcessorId>& devices,
                const PipelineParameters& parameters, std::int64_t microbatches);

  [[nodiscard]] std::size_t stages() const { return bytes_.size(); }
  [[nodiscard]] std::size_t slots() const { return devices_.size(); }
  [[nodiscard]] Time forward(std::size_t slot, std::size_t begin, std::size_t end) const {
    return forward_[slot][end] - forward_[slot][begin];
  }
  /// With the forward that a recomputed slot runs once more in front of it.
  [[nodiscard]] Time backward(std::size_t slot, std::size_t begin, std::size_t end) const {
    const Time own = backward_[slot][end] - backward_[slot][begin];
    return parameters_.recomputes(slot) ? own + forward(slot, begin, end) : own;
  }

  struct Cut {
    Time value, gradient;
    bool one_at_a_time = false;
    /// The longest that the link is taken for one microbatch.
    [[nodiscard]] Time load() const {
      return one_at_a_time ? value + gradient : std::max(value, gradient);
    }
  };
  /// Between slots `slot` - 1 and `slot`, which begins with stage `stage`.
  [[nodiscard]] Cut cut(std::size_t slot, std::size_t stage) const;

  /// How long the inputs of a microbatch are on their way to the slot; unlimited where they cannot
  /// get there. Zero where they are there from the start.
  [[nodiscard]] Time load(std::size_t slot, std::size_t begin, std::size_t end) const;

  [[nodiscard]] const MovedSlots& moved() const { return moved_; }

  /// Where searches over these costs count their steps.
  [[nodiscard]] Work work() const { return problem_.work; }

  /// What messages over the cut before `slot` take turns on: a number for each link, and direction
  /// unless it is half-duplex, that needs time.
  [[nodiscard]] std::vector<std::uint32_t> turns(std::size_t slot, bool forward) const;

  /// A link on which messages of two cuts take turns.
  [[nodiscard]] std::optional<LinkId> shared_link() const;

  /// Throws InputError where there is one.
  void require_links_apart(const Location& where) const;

  /// At most so much is there at once. `passing`: the greatest StageBytes::passing of the slot,
  /// and recomputed().
  [[nodiscard]] Bytes memory(std::size_t slot, std::size_t begin, std::size_t end,
                             const KeptCounts& kept, Bytes passing) const;
  [[nodiscard]] Bytes passing(std::size_t stage) const { return bytes_[stage].passing; }
  /// What is there beside that while a recomputed slot runs: what it keeps otherwise, of one
  /// microbatch.
  [[nodiscard]] Bytes recomputed(std::size_t slot, std::size_t begin, std::size_t end) const {
    return parameters_.recomputes(slot) ? saved_[end] - saved_[begin] : Bytes{};
  }

  /// Whether so much is there at some time: nothing but what microbatches in flight keep, and
  /// parameters with what belongs to them.
  [[nodiscard]] bool is_memory_exact(std::size_t slot, std::size_t begin, std::size_t end) const;

  /// No cut into these slots has a shorter period, whatever its memory: the greatest stage where it
  /// is fastest, and all of them shared equally.
  [[nodiscard]] Time bound() const;
  /// Everything one after the other.
  [[nodiscard]] Time whole() const;

 private:
  void add_times(const Problem& problem, ProcessorId device);
  void add_generators();
  void add_loads();

  const Problem& problem_;
  const std::vector<ProcessorId>& devices_;
  const PipelineParameters& parameters_;
  const std::int64_t microbatches_;
  const std::vector<StageBytes> bytes_;
  std::vector<std::vector<Time>> forward_, backward_;  ///< by slot, over the first stages
  std::vector<Bytes> fixed_, saved_, inputs_;          ///< over the first stages
  std::vector<std::uint32_t> drawing_;    ///< operators with a state of a generator, likewise
  Bytes generator_;                       ///< the largest of these
  std::vector<std::size_t> loading_;      ///< stages whose inputs are copied to them
  std::vector<std::vector<Time>> loads_;  ///< by slot, of those stages
  const MovedSlots moved_;
};

/// When the slots of a pattern that leave are away. Precondition: the rest of it is known.
void add_moves(PeriodicPattern& pattern, const PeriodicCosts& costs,
               const std::vector<std::size_t>& cuts);

}  // namespace plimsoll
