#include "plan/build/kept_generators.hpp"

#include "base/dense_id.hpp"
#include "plan/core/generator_runs.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

namespace plimsoll {

namespace {

class GeneratorKeeper {
 public:
  GeneratorKeeper(Plan& plan, const Workload& workload, const Platform& platform, bool of_each)
      : plan_(plan), workload_(workload), platform_(platform), of_each_(of_each), runs_(workload) {}

  void run(const std::vector<GeneratorHold>& holds, BufferFacts& facts) {
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      const Step& step = plan_.steps[s];
      if (is_move(step.kind)) continue;
      const bool is_alone = step.kind == StepKind::compute;
      note(StepId{s}, step.op, step.microbatch, is_alone);
      if (!is_alone) note(StepId{s}, step.second, step.second_microbatch, is_alone);
    }
    for (const GeneratorHold& hold : holds) {
      const Step& first = plan_[hold.first];
      const BufferId state = keep(first.op, first.microbatch);
      plan_.buffers[index(state)].offset = hold.offset;
      facts.holds.emplace_back(state, hold.until);
    }
    if (!uses_.empty()) add_uses();
  }

 private:
  /// Of an operator and a microbatch.
  struct State {
    StepId first{};
    std::optional<BufferId> buffer = {};
  };
  struct Use {
    StepId step{};
    BufferId state{};
    bool is_write = false;
  };

  void note(StepId step, OperatorId op, std::uint32_t microbatch, bool is_alone) {
    const GeneratorNeed need = runs_.next(plan_[step].lane, op, microbatch, is_alone);
    if (workload_[op].generator == kNoTensor) return;
    if (need == GeneratorNeed::first) states_[{op, microbatch}].first = step;
    if (need != GeneratorNeed::kept && !(need == GeneratorNeed::continued && of_each_)) return;
    const BufferId state = keep(op, microbatch);
    if (plan_[state].memory != memory_of(step))
      throw std::logic_error("an operator that draws random numbers runs again in another memory");
    uses_.push_back({step, state, false});
  }

  BufferId keep(OperatorId op, std::uint32_t microbatch) {
    State& state = states_.at({op, microbatch});
    if (!state.buffer) {
      state.buffer = BufferId{static_cast<std::uint32_t>(plan_.buffers.size())};
      plan_.buffers.push_back({workload_[op].generator, microbatch, 0, memory_of(state.first), {}});
      uses_.push_back({state.first, *state.buffer, true});
    }
    return *state.buffer;
  }

  [[nodiscard]] MemoryId memory_of(StepId step) const {
    return platform_[plan_[plan_[step].lane].processor].memory;
  }

  /// Behind what the steps read and write otherwise.
  void add_uses() {
    std::ranges::stable_sort(uses_, {}, &Use::step);
    std::vector<BufferId> lists;
    lists.reserve(plan_.buffer_lists.size() + uses_.size());
    auto use = uses_.begin();
    for (std::uint32_t s = 0; s < plan_.steps.size(); ++s) {
      Step& step = plan_.steps[s];
      const auto end =
          std::find_if(use, uses_.end(), [&](const Use& it) { return it.step != StepId{s}; });
      for (const bool is_write : {false, true}) {
        Slice& slice = is_write ? step.writes : step.reads;
        const auto all = plan_.list(slice);
        const auto begin = static_cast<std::uint32_t>(lists.size());
        lists.insert(lists.end(), all.begin(), all.end());
        for (auto it = use; it != end; ++it)
          if (it->is_write == is_write) lists.push_back(it->state);
        slice = {begin, static_cast<std::uint32_t>(lists.size())};
      }
      use = end;
    }
    plan_.buffer_lists = std::move(lists);
  }

  Plan& plan_;
  const Workload& workload_;
  const Platform& platform_;
  const bool of_each_;
  GeneratorRuns runs_;
  std::map<std::pair<OperatorId, std::uint32_t>, State> states_;  ///< by microbatch
  std::vector<Use> uses_;
};

}  // namespace

void keep_generators(Plan& plan, const Workload& workload, const Platform& platform,
                     const KeptGenerators& kept, BufferFacts& facts) {
  const auto has_state = [](const Operator& op) { return op.generator != kNoTensor; };
  if (std::ranges::any_of(workload.operators, has_state))
    GeneratorKeeper(plan, workload, platform, kept.of_each).run(kept.holds, facts);
}

}  // namespace plimsoll
