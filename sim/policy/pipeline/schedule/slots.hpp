/// The slots of a pipeline: their operators, what they send to each other, and what they cost.
#pragma once

#include "policy/pipeline/partition/partition.hpp"

#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace plimsoll {

/// A tensor that one task makes, or hands on, and a task of another device reads or hands on.
struct Message {
  TensorId tensor = kNoTensor;
  std::uint32_t to_device = 0;
  /// By a task that computes: it came from another device, and leaves at the end of the task, with
  /// what that makes.
  bool is_handed_on = false;
};

/// What messages to one device take.
struct MessageTime {
  Time latency;   ///< of each
  Time transfer;  ///< of all
  std::int64_t count = 0;
  bool holds_way = true;  ///< whether others that take the way wait for the latency, too
  /// One after the other.
  [[nodiscard]] Time all() const { return latency * count + transfer; }
};

/// What searches look at. Times on the device of the slot; a message's is that of its links when
/// nothing else uses them.
struct SlotCosts {
  struct Slot {
    Time forward, backward_input, backward_weight;  ///< a whole backward counts as backward_input
    Time forward_message;   ///< from here to the next slot; zero within one memory
    Time backward_message;  ///< from here to the slot before
    Bytes saved;            ///< kept from the forward until the backward, for one microbatch
    Bytes held;             ///< kept on for backward_weight; at most `saved`
  };
  std::vector<std::uint32_t> placement;  ///< by slot: index of its device
  std::uint32_t devices = 0;
  std::vector<Slot> slots;
  Work work = Work();  ///< where searches for an order count their steps
};

class Slots {
 public:
  /// The arguments must outlive it. Precondition: one placement for every slot.
  Slots(const Problem& problem, const Partition& partition, const std::vector<ProcessorId>& devices,
        std::vector<std::uint32_t> placement);

  [[nodiscard]] std::size_t count() const { return partition_.slots(); }
  [[nodiscard]] std::uint32_t device(std::size_t slot) const { return placement_[slot]; }
  [[nodiscard]] MemoryId memory(std::uint32_t device) const;

  /// Whether its tasks only hand on what they receive.
  [[nodiscard]] bool is_empty(std::size_t slot) const {
    return partition_.cuts[slot] == partition_.cuts[slot + 1];
  }

  /// Backwards of one chain stage, in execution order; the halves of one follow each other.
  using StageBackward = std::span<const OperatorId>;

  /// Visits the forward operators of a slot, in execution order.
  template <class Visit>
  void for_forwards(std::size_t slot, Visit visit) const {
    for (std::size_t s = partition_.cuts[slot]; s < partition_.cuts[slot + 1]; ++s)
      for (std::uint32_t op = problem_.chain.stages[s].forward_begin;
           op < problem_.chain.stages[s].forward_end; ++op)
        visit(OperatorId{op});
  }

  /// Visits the chain stages of a slot, the last one first, with their backwards.
  template <class Visit>
  void for_backwards(std::size_t slot, Visit visit) const {
    for (std::size_t s = partition_.cuts[slot + 1]; s-- > partition_.cuts[slot];)
      visit(StageBackward(problem_.chain.backward(s)));
  }

  /// What the forward or the backward of `slot` sends. A value goes from neighbour to neighbour: what
  /// crosses slots that do not read it goes by way of their devices, unless its reader is on the device
  /// that made it, or has received it before. Of a gradient to which several slots add, each sends
  /// on the sum so far.
  [[nodiscard]] const std::vector<Message>& messages(std::size_t slot, bool forward) const {
    return messages_[2 * slot + (forward ? 0 : 1)];
  }

  /// The devices that add to the gradient of a parameter, in no order, possibly more than once.
  [[nodiscard]] const std::vector<std::uint32_t>& makers(TensorId gradient) const {
    return gradient_makers_[static_cast<std::size_t>(gradient)];
  }

  /// What backwards of the slot read of what forwards made here, or sent here from another memory;
  /// of a recomputed slot what was sent here, for its forwards, too. Not what is carried through the
  /// pipeline and read by other slots with this memory: they need it there.
  [[nodiscard]] std::vector<TensorId> kept(std::size_t slot, bool recomputed) const;

  /// What its backwards add up over microbatches.
  [[nodiscard]] std::vector<TensorId> gradients(std::size_t slot) const;

  /// Inputs of the workload that forwards or backwards of the slot read.
  [[nodiscard]] std::vector<TensorId> inputs(std::size_t slot) const;

  /// Of what it sends to the next slot, or to the one before, over links that nothing else uses.
  [[nodiscard]] MessageTime message_time(std::size_t slot, bool forward) const;

  /// What its reader waits for at least: where something is carried beside the value between the two
  /// slots, only the shortest of the messages, as all need not be there at once.
  [[nodiscard]] MessageTime least_message_time(std::size_t slot, bool forward) const;

  [[nodiscard]] SlotCosts costs() const;

  /// `costs`, but with what is sure in any order. Kept is, of `kept`, what the forward makes or reads,
  /// from its end until the backward begins and, of what weight halves read, until those begin;
  /// messages are those of least_message_time().
  [[nodiscard]] SlotCosts surely(SlotCosts costs) const;

 private:
  [[nodiscard]] Bytes held(std::size_t slot) const;
  [[nodiscard]] bool is_kept(std::size_t slot, TensorId value, bool recomputed) const;
  [[nodiscard]] bool carries(std::size_t slot, bool forward) const;
  [[nodiscard]] bool has(TensorId value, std::size_t slot) const;
  void visit(std::size_t slot, bool forward, OperatorId op);
  void make(TensorId value, std::size_t slot, bool forward);
  void request(TensorId value, std::size_t slot);
  void hand_on(TensorId value, std::size_t from, std::size_t to);
  void find_shared();

  const Problem& problem_;
  const Partition& partition_;
  const std::vector<ProcessorId>& devices_;
  std::vector<std::uint32_t> placement_;
  /// By tensor of the step: 2 * slot, + 1 for the backward, of what makes it, or adds to it last.
  std::vector<std::uint32_t> maker_;
  std::set<std::pair<TensorId, MemoryId>> received_;  ///< by slots that compute, beside its maker's
  std::set<std::pair<TensorId, MemoryId>> shared_;    ///< carried, and read there by several slots
  std::vector<std::vector<std::uint32_t>> gradient_makers_;  ///< by tensor
  std::vector<std::vector<Message>> messages_;               ///< by 2 * slot, + 1 for the backward
};

}  // namespace plimsoll
