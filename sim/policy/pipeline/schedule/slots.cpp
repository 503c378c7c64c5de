#include "policy/pipeline/schedule/slots.hpp"

#include "base/dense_id.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <map>

namespace plimsoll {

namespace {

constexpr std::uint32_t kNobody = 0xFFFFFFFF;

}  // namespace

Slots::Slots(const Problem& problem, const Partition& partition,
             const std::vector<ProcessorId>& devices, std::vector<std::uint32_t> placement)
    : problem_(problem),
      partition_(partition),
      devices_(devices),
      placement_(std::move(placement)),
      maker_(problem.workload.tensors.size(), kNobody),
      gradient_makers_(problem.workload.tensors.size()),
      messages_(2 * partition.slots()) {
  for (std::size_t slot = 0; slot < count(); ++slot)
    for_forwards(slot, [&](OperatorId op) { visit(slot, true, op); });
  for (std::size_t slot = count(); slot-- > 0;)
    for_backwards(slot, [&](StageBackward operators) {
      for (const OperatorId op : operators) visit(slot, false, op);
    });
  find_shared();
}

MemoryId Slots::memory(std::uint32_t device) const {
  return problem_.platform[devices_[device]].memory;
}

void Slots::visit(std::size_t slot, bool forward, OperatorId op) {
  const Workload& workload = problem_.workload;
  for (const TensorId value : workload.list(workload[op].reads)) request(value, slot);
  for (const TensorList slice : {workload[op].kept, workload[op].bare})
    for (const TensorId made : workload.list(slice)) {
      if (workload[made].lifetime == Lifetime::accumulated)
        gradient_makers_[index(made)].push_back(placement_[slot]);
      else if (workload[made].lifetime == Lifetime::step)
        make(made, slot, forward);
    }
}

/// What a backward makes that is there already, it adds to: from here on this slot has the sum.
void Slots::make(TensorId value, std::size_t slot, bool forward) {
  std::uint32_t& maker = maker_[index(value)];
  const auto task = static_cast<std::uint32_t>(2 * slot + (forward ? 0 : 1));
  if (maker == kNobody) {
    maker = task;
  } else if (maker != task && !forward) {
    request(value, slot);
    maker = task;
    std::erase_if(received_, [&](const auto& it) { return it.first == value; });
  }
}

bool Slots::has(TensorId value, std::size_t slot) const {
  const MemoryId here = memory(placement_[slot]);
  return memory(placement_[maker_[index(value)] / 2]) == here || received_.contains({value, here});
}

void Slots::request(TensorId value, std::size_t slot) {
  const std::uint32_t from = maker_[index(value)];
  if (from == kNobody || has(value, slot)) return;
  for (std::size_t at = from / 2; at != slot;) {
    const std::size_t next = at < slot ? at + 1 : at - 1;
    hand_on(value, at, next);
    at = next;
  }
}

/// Empty slots hand on in their turn whatever there is.
void Slots::hand_on(TensorId value, std::size_t from, std::size_t to) {
  const std::uint32_t maker = maker_[index(value)], device = placement_[to];
  const MemoryId there = memory(device);
  const bool is_there = memory(placement_[from]) == there || (!is_empty(to) && has(value, to));
  auto& list = messages_[2 * from + maker % 2];
  const auto same = [&](const Message& m) {
    return m.tensor == value && memory(m.to_device) == there;
  };
  if (!is_there && std::ranges::none_of(list, same))
    list.push_back({value, device, from != maker / 2 && !is_empty(from)});
  if (!is_empty(to)) received_.emplace(value, there);
}

/// Whether a value is carried across the cut behind the slot, or before it.
bool Slots::carries(std::size_t slot, bool forward) const {
  const std::size_t cut = partition_.cuts[forward ? slot + 1 : slot];
  return cut > 0 && !problem_.chain.stages[cut - 1].carried.empty();
}

void Slots::find_shared() {
  std::set<TensorId> carried;
  for (const ChainStage& stage : problem_.chain.stages)
    carried.insert(stage.carried.begin(), stage.carried.end());
  if (carried.empty()) return;
  std::map<std::pair<TensorId, MemoryId>, std::size_t> reader;
  for (std::size_t slot = 0; slot < count(); ++slot) {
    const MemoryId here = memory(placement_[slot]);
    const auto note = [&](OperatorId op) {
      for (const TensorId read : problem_.workload.list(problem_.workload[op].reads))
        if (carried.contains(read) &&
            reader.emplace(std::pair(read, here), slot).first->second != slot)
          shared_.emplace(read, here);
    };
    for_forwards(slot, note);
    for_backwards(slot, [&](StageBackward operators) { std::ranges::for_each(operators, note); });
  }
}

MessageTime Slots::message_time(std::size_t slot, bool forward) const {
  MessageTime time;
  if (forward ? slot + 1 == count() : slot == 0) return time;
  const MemoryId from = memory(placement_[slot]);
  const MemoryId to = memory(placement_[forward ? slot + 1 : slot - 1]);
  const Route* route = problem_.topology.route(from, to);
  if (route == nullptr) return time;
  time.holds_way = std::ranges::all_of(route->hops, [&](const Hop& hop) {
    return problem_.platform[hop.link].sharing == Sharing::fifo;
  });
  time.latency = route->latency;
  for (const Message& message : messages(slot, forward)) {
    if (memory(message.to_device) != to) continue;
    ++time.count;
    time.transfer += transfer_time(problem_.workload[message.tensor].bytes, route->bandwidth);
  }
  return time;
}

MessageTime Slots::least_message_time(std::size_t slot, bool forward) const {
  MessageTime time = message_time(slot, forward);
  if (time.count < 2 || !carries(slot, forward)) return time;
  const MemoryId from = memory(placement_[slot]);
  const MemoryId to = memory(placement_[forward ? slot + 1 : slot - 1]);
  const ByteRate bandwidth = problem_.topology.route(from, to)->bandwidth;
  time.count = 1;
  for (const Message& message : messages(slot, forward))
    if (memory(message.to_device) == to)
      time.transfer = std::min(time.transfer,
                               transfer_time(problem_.workload[message.tensor].bytes, bandwidth));
  return time;
}

bool Slots::is_kept(std::size_t slot, TensorId value, bool recomputed) const {
  const Tensor& tensor = problem_.workload[value];
  const std::uint32_t from = maker_[index(value)];
  if (tensor.lifetime != Lifetime::step || tensor.tensor_class == TensorClass::gradient ||
      from == kNobody || from % 2 == 1 || shared_.contains({value, memory(placement_[slot])}))
    return false;
  if (from / 2 == slot) return !recomputed;
  return memory(placement_[from / 2]) != memory(placement_[slot]);
}

std::vector<TensorId> Slots::kept(std::size_t slot, bool recomputed) const {
  const Workload& workload = problem_.workload;
  std::vector<TensorId> kept;
  const auto add = [&](OperatorId op) {
    for (const TensorId read : workload.list(workload[op].reads))
      if (is_kept(slot, read, recomputed)) kept.push_back(read);
  };
  if (recomputed) for_forwards(slot, add);
  for_backwards(slot, [&](StageBackward operators) { std::ranges::for_each(operators, add); });
  std::ranges::sort(kept);
  kept.erase(std::ranges::unique(kept).begin(), kept.end());
  // A part of another of them goes with it.
  std::erase_if(kept, [&, all = kept](TensorId read) {
    return std::ranges::binary_search(all, workload[read].inside);
  });
  return kept;
}

std::vector<TensorId> Slots::gradients(std::size_t slot) const {
  const Workload& workload = problem_.workload;
  std::vector<TensorId> gradients;
  for_backwards(slot, [&](StageBackward operators) {
    for (const OperatorId op : operators)
      for (const TensorId made : workload.list(workload[op].kept))
        if (workload[made].lifetime == Lifetime::accumulated) gradients.push_back(made);
  });
  std::ranges::sort(gradients);
  gradients.erase(std::ranges::unique(gradients).begin(), gradients.end());
  return gradients;
}

std::vector<TensorId> Slots::inputs(std::size_t slot) const {
  const Workload& workload = problem_.workload;
  std::vector<TensorId> inputs;
  const auto add = [&](OperatorId op) {
    for (const TensorId read : workload.list(workload[op].reads))
      if (workload[read].lifetime == Lifetime::input &&
          std::ranges::find(inputs, read) == inputs.end())
        inputs.push_back(read);
  };
  for_forwards(slot, add);
  for_backwards(slot, [&](StageBackward operators) { std::ranges::for_each(operators, add); });
  return inputs;
}

Bytes Slots::held(std::size_t slot) const {
  const Workload& workload = problem_.workload;
  std::vector<TensorId> read;
  for_backwards(slot, [&](StageBackward operators) {
    for (const OperatorId op : operators) {
      if (workload[op].phase != Phase::backward_weight) continue;
      for (const TensorId tensor : workload.list(workload[op].reads))
        if (workload[tensor].lifetime == Lifetime::step) read.push_back(tensor);
    }
  });
  std::ranges::sort(read);
  read.erase(std::ranges::unique(read).begin(), read.end());
  Bytes sum;
  for (const TensorId tensor : read) sum += workload[tensor].bytes;
  return sum;
}

SlotCosts Slots::costs() const {
  SlotCosts costs{placement_, static_cast<std::uint32_t>(devices_.size()), {}, problem_.work};
  std::vector<std::vector<Time>> times;
  for (const ProcessorId device : devices_)
    times.push_back(durations(problem_.workload, problem_.platform, device));
  const Workload& workload = problem_.workload;
  for (std::size_t slot = 0; slot < count(); ++slot) {
    SlotCosts::Slot it;
    const auto time = [&](OperatorId op) {
      return times[placement_[slot]][static_cast<std::size_t>(op)];
    };
    for_forwards(slot, [&](OperatorId op) { it.forward += time(op); });
    for_backwards(slot, [&](StageBackward operators) {
      for (const OperatorId op : operators) {
        const bool weight = workload[op].phase == Phase::backward_weight;
        (weight ? it.backward_weight : it.backward_input) += time(op);
      }
    });
    for (std::size_t s = partition_.cuts[slot]; s < partition_.cuts[slot + 1]; ++s)
      it.saved += problem_.chain.stages[s].saved_bytes;
    // Layers keep gradients of their outputs, too: where those are more than what the first halves
    // free, they are counted from the forward on.
    it.held = held(slot);
    it.saved = std::max(it.saved, it.held);
    it.forward_message = message_time(slot, true).all();
    it.backward_message = message_time(slot, false).all();
    costs.slots.push_back(it);
  }
  return costs;
}

SlotCosts Slots::surely(SlotCosts costs) const {
  const Workload& workload = problem_.workload;
  const auto add = [&](std::set<TensorId>& to, TensorList list) {
    const auto ids = workload.list(list);
    to.insert(ids.begin(), ids.end());
  };
  for (std::size_t slot = 0; slot < count(); ++slot) {
    std::set<TensorId> of_forward, of_weight_half;
    for_forwards(slot, [&](OperatorId op) {
      add(of_forward, workload[op].reads);
      add(of_forward, workload[op].kept);
    });
    for_backwards(slot, [&](StageBackward operators) {
      for (const OperatorId op : operators)
        if (workload[op].phase == Phase::backward_weight) add(of_weight_half, workload[op].reads);
    });
    SlotCosts::Slot& it = costs.slots[slot];
    it.saved = it.held = Bytes{};
    for (const TensorId id : kept(slot, false)) {
      if (!of_forward.contains(id)) continue;
      it.saved += workload[id].bytes;
      if (of_weight_half.contains(id)) it.held += workload[id].bytes;
    }
    it.forward_message = least_message_time(slot, true).all();
    it.backward_message = least_message_time(slot, false).all();
  }
  return costs;
}

}  // namespace plimsoll
