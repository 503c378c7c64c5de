#include "policy/remat/rotor/rotor_chain.hpp"

#include <algorithm>
#include <numeric>

namespace plimsoll {
namespace {

using Kind = ChainAction::Kind;

/// Sizes in slots, rounded up.
class Slots {
 public:
  Slots(std::int64_t unit, std::int64_t units, std::int64_t slots)
      : unit_(unit), units_(std::max<std::int64_t>(units, 1)), slots_(slots) {}

  std::int64_t operator()(Bytes bytes) const {
    __extension__ using Product = __int128;
    const Product product = static_cast<Product>(bytes.count() / unit_) * slots_;
    // Beyond the budget one size is as good as the other; kept small, sums of them stay in range.
    return static_cast<std::int64_t>(
        std::min<Product>((product + units_ - 1) / units_, std::int64_t{1} << 58));
  }

 private:
  std::int64_t unit_, units_, slots_;
};

void add_forward_times(RotorChain& chain, const ChainCosts& costs) {
  Time sum;
  chain.forward.push_back(0);
  for (const StageCosts& stage : costs.stages) {
    sum += stage.forward;
    chain.forward.push_back(sum.count());
  }
  if (sum.count() >= kNever) detail::throw_quantity_overflow();
}

}  // namespace

std::int64_t size_unit(const ChainCosts& costs) {
  std::int64_t unit = costs.input_gradient.count();
  for (const StageCosts& stage : costs.stages)
    for (const Bytes size :
         {stage.output, stage.saved, stage.gradient, stage.keep_workspace, stage.bare_workspace,
          stage.backward_workspace, stage.lasting, stage.freed_early, stage.passing})
      unit = std::gcd(unit, size.count());
  return std::max<std::int64_t>(unit, 1);
}

RotorChain rotor_chain(const ChainCosts& costs, std::int64_t unit, Bytes available,
                       std::int64_t slots) {
  const std::int64_t units = available.count() / unit;
  RotorChain chain;
  chain.units = std::min(slots, units);
  chain.work = costs.work;
  const Slots in_slots(unit, units, chain.units > 0 ? chain.units : 1);
  add_forward_times(chain, costs);
  const std::size_t stages = costs.stages.size();
  for (std::vector<std::int64_t>* part :
       {&chain.output, &chain.saved, &chain.keep, &chain.bare, &chain.back, &chain.behind})
    part->resize(stages);
  Bytes lasting;  // rounded as a sum: many small gradients lie side by side
  for (std::size_t s = stages; s-- > 0;) {
    const StageCosts& stage = costs.stages[s];
    const std::int64_t gradient = in_slots(stage.gradient);
    chain.output[s] = in_slots(stage.output);
    chain.saved[s] = in_slots(stage.saved);
    chain.keep[s] = chain.saved[s] + in_slots(stage.keep_workspace);
    chain.bare[s] = chain.output[s] + in_slots(stage.bare_workspace);
    chain.behind[s] = (s + 1 < stages ? gradient : 0) + in_slots(lasting);
    lasting += stage.lasting;
    const Bytes before = costs.gradient_before(s), gone = costs.gone_in_backward(s);
    chain.back[s] = chain.saved[s] + gradient + in_slots(before) +
                    in_slots(stage.backward_workspace) + in_slots(lasting);
    // Rounded part by part as published, but where not all parts are there at once.
    if (gone > Bytes{})
      chain.back[s] = in_slots(stage.saved + stage.gradient + before + stage.backward_workspace +
                               lasting - gone);
  }
  return chain;
}

std::int64_t least_units(const RotorChain& chain) {
  const std::size_t stages = chain.stages();
  // Both by the stage that varies in the minimum over k: (k, t) by t, (s, k-1) by s.
  std::vector<std::vector<std::int64_t>> by_last(stages), by_first(stages);
  for (std::size_t t = 0; t < stages; ++t) by_last[t].resize(t + 1);
  for (std::size_t s = stages; s-- > 0;)
    for (std::size_t t = s; t < stages; ++t) {
      std::int64_t least = chain.keep_need(s, t);
      if (t > s) least = std::max(least, chain.saved[s] + by_last[t][s + 1]);
      std::int64_t bare = 0;
      for (std::size_t k = s + 1; k <= t; ++k) {
        bare = std::max(bare, chain.bare_need(s, k - 1));
        const std::int64_t right = chain.output[k - 1] + by_last[t][k];
        least = std::min(least, std::max({chain.behind[t] + bare, right, by_first[s][k - 1 - s]}));
      }
      by_last[t][s] = least;
      by_first[s].push_back(least);
      chain.work.add(t - s + 1);
    }
  return by_last[stages - 1][0];
}

namespace {

/// What is still to do: a segment with its units, or the backward of `s` alone.
struct Task {
  bool is_backward;
  std::uint32_t s, t;
  std::int64_t units;
};

class SequenceWriter {
 public:
  SequenceWriter(const RotorChain& chain, const Recomputed& recomputed)
      : chain_(chain), recomputed_(recomputed) {}

  ChainSequence run(std::uint32_t s, std::uint32_t t, std::int64_t units) {
    tasks_.push_back({false, s, t, units});
    while (!tasks_.empty()) {
      const Task task = tasks_.back();
      tasks_.pop_back();
      if (task.is_backward)
        sequence_.push_back({Kind::backward, task.s});
      else if (keeps(task))
        keep(task);
      else
        checkpoint(task);
    }
    return std::move(sequence_);
  }

 private:
  [[nodiscard]] bool keeps(const Task& it) const {
    if (it.s == it.t) return true;
    return it.units >= chain_.keep_need(it.s, it.t) &&
           recomputed_(it.s + 1, it.t, it.units - chain_.saved[it.s]) ==
               recomputed_(it.s, it.t, it.units);
  }

  void keep(const Task& it) {
    sequence_.push_back({Kind::keep, it.s});
    tasks_.push_back({true, it.s, it.s, 0});
    if (it.s < it.t) tasks_.push_back({false, it.s + 1, it.t, it.units - chain_.saved[it.s]});
  }

  void checkpoint(const Task& it) {
    const std::int64_t wanted = recomputed_(it.s, it.t, it.units);
    std::int64_t bare = 0;
    for (std::uint32_t k = it.s + 1;; ++k) {
      sequence_.push_back({Kind::bare, k - 1});
      bare = std::max(bare, chain_.bare_need(it.s, k - 1));
      const std::int64_t left = it.units - chain_.output[k - 1];
      const std::int64_t time = chain_.forward_time(it.s, k) + recomputed_(k, it.t, left) +
                                recomputed_(it.s, k - 1, it.units);
      if (time != wanted || chain_.behind[it.t] + bare > it.units) continue;
      tasks_.push_back({false, it.s, k - 1, it.units});
      tasks_.push_back({false, k, it.t, left});
      return;
    }
  }

  const RotorChain& chain_;
  const Recomputed& recomputed_;
  std::vector<Task> tasks_;
  ChainSequence sequence_;
};

}  // namespace

ChainSequence persistent_sequence(const RotorChain& chain, const Recomputed& recomputed) {
  const auto last = static_cast<std::uint32_t>(chain.stages() - 1);
  return persistent_sequence(chain, recomputed, 0, last, chain.units);
}

ChainSequence persistent_sequence(const RotorChain& chain, const Recomputed& recomputed,
                                  std::uint32_t s, std::uint32_t t, std::int64_t units) {
  return SequenceWriter(chain, recomputed).run(s, t, units);
}

}  // namespace plimsoll
