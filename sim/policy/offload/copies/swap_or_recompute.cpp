#include "policy/offload/copies/swap_or_recompute.hpp"

#include "base/dense_id.hpp"

#include <algorithm>

namespace plimsoll {

namespace {

class Player {
 public:
  Player(const Problem& problem, const OffloadMemories& memories, const SwapOrRecompute& choice,
         const std::string& policy)
      : workload_(problem.workload),
        choice_(choice),
        out_(workload_.operators.size()),
        in_(workload_.operators.size()),
        maker_(workload_.tensors.size(), kNone),
        where_(workload_.tensors.size(), Where::here),
        steps_(problem, memories, policy) {
    for (const SwapInterval& trip : choice.trips) {
      out_[trip.out_after].push_back(trip.tensor);
      in_[trip.in_after].push_back(trip.tensor);
    }
    for (std::uint32_t f = 0; f < workload_.forwards; ++f)
      for (const TensorId id : workload_.list(workload_.operators[f].kept)) maker_[index(id)] = f;
  }

  Plan run(Bytes limit) {
    for (std::uint32_t op = 0; op < workload_.optimizer_begin; ++op) {
      if (op < workload_.forwards)
        forward(op);
      else
        backward(op);
      copies_behind(op);
    }
    steps_.optimize();
    return steps_.finish(limit);
  }

 private:
  enum class Where : std::uint8_t { here, away, gone };

  void forward(std::uint32_t op) {
    last_ = steps_.compute(OperatorId{op}, choice_.again[op] ? Form::bare : Form::keep);
    if (choice_.again[op]) forget(op);
  }

  void forget(std::uint32_t op) {
    for (const TensorId id : workload_.list(workload_.operators[op].kept))
      where_[index(id)] = Where::gone;
  }

  void backward(std::uint32_t op) {
    const std::uint32_t layer = index(workload_.operators[op].forward);
    if (layer != layer_) {
      for (const std::uint32_t again : made_again_)
        if (choice_.forgets[again]) forget(again);
      made_again_.clear();
      layer_ = layer;
    }
    for (const std::uint32_t again : needed_for(op)) run_step(again);
    run_step(op);
  }

  /// Forwards that must run again before `op`, in order.
  std::vector<std::uint32_t> needed_for(std::uint32_t op) {
    std::vector<std::uint32_t> needed, open{op};
    while (!open.empty()) {
      const std::uint32_t reader = open.back();
      open.pop_back();
      for (const TensorId value : workload_.list(workload_.operators[reader].reads)) {
        const TensorId tensor = holder(workload_, value);
        if (where_[index(tensor)] != Where::gone) continue;
        const std::uint32_t maker = maker_[index(tensor)];
        for (const TensorId id : workload_.list(workload_.operators[maker].kept))
          where_[index(id)] = Where::here;
        needed.push_back(maker);
        open.push_back(maker);
      }
    }
    std::ranges::sort(needed);
    made_again_.insert(made_again_.end(), needed.begin(), needed.end());
    return needed;
  }

  void run_step(std::uint32_t op) {
    for (const TensorId value : workload_.list(workload_.operators[op].reads)) {
      const TensorId tensor = holder(workload_, value);
      if (where_[index(tensor)] == Where::away) steps_.builder().after_end(fetch(tensor), last_);
    }
    last_ = steps_.compute(OperatorId{op});
  }

  void copies_behind(std::uint32_t op) {
    for (const TensorId tensor : out_[op]) {
      steps_.builder().after_end(steps_.send(tensor), last_);
      where_[index(tensor)] = Where::away;
    }
    for (const TensorId tensor : in_[op])
      if (where_[index(tensor)] == Where::away) steps_.builder().after_start(fetch(tensor), last_);
  }

  StepId fetch(TensorId tensor) {
    where_[index(tensor)] = Where::here;
    return steps_.fetch(tensor);
  }

  const Workload& workload_;
  const SwapOrRecompute& choice_;
  std::vector<std::vector<TensorId>> out_, in_;  ///< by operator behind which they are issued
  std::vector<std::uint32_t> maker_;             ///< by tensor
  std::vector<Where> where_;                     ///< by tensor
  TransferSteps steps_;
  StepId last_{};                          ///< operator
  std::uint32_t layer_ = kNone;            ///< whose backward runs
  std::vector<std::uint32_t> made_again_;  ///< for that backward
};

}  // namespace

std::vector<bool> can_run_again(const Workload& workload, const std::vector<SavedTensor>& saved) {
  std::vector<std::uint32_t> changed(workload.tensors.size(), kNone);
  std::vector<bool> can(workload.forwards, false), is_changed_later(workload.forwards, false);
  for (const SavedTensor& it : saved) {
    changed[index(it.tensor)] = it.changed;
    can[it.made] = true;
    if (it.changed != it.made) is_changed_later[it.made] = true;
  }
  const auto goes = [&](TensorId id) { return workload[id].lifetime == Lifetime::step; };
  for (std::uint32_t f = 0; f < workload.forwards; ++f) {
    const Operator& op = workload.operators[f];
    for (const TensorId value : workload.list(op.reads)) {
      const std::uint32_t when = changed[index(holder(workload, value))];
      if (goes(value) && (when == kNone || when > f)) can[f] = false;
    }
    for (const TensorId value : workload.list(op.updates))
      if (goes(value)) can[f] = false;
    if (is_changed_later[f]) can[f] = false;
  }
  return can;
}

Plan plan_of(const Problem& problem, const OffloadMemories& memories, const SwapOrRecompute& choice,
             Bytes limit, const std::string& policy) {
  return Player(problem, memories, choice, policy).run(limit);
}

Bytes ChoiceNeeds::peak_of(const SwapOrRecompute& choice) const {
  const Plan plan = plan_of(problem_, memories_, choice, Bytes::unlimited(), "");
  return issue_order_peak(plan, problem_, memories_.home);
}

Planned plan_by_choice(const Problem& problem, const BudgetedOffloadParameters& parameters,
                       Chooser choose) {
  const OffloadMemories memories = offload_memories(problem, parameters);
  ChoiceNeeds of_problem(problem, memories);
  const auto plan = [&](const Problem& of, Bytes budget) -> Planned {
    std::optional<ChoiceNeeds> of_another;
    if (&of != &problem) of_another.emplace(of, memories);
    ChoiceNeeds& needs = of_another ? *of_another : of_problem;
    const auto choice = choose(needs, budget);
    if (!choice) return infeasible(of, memories.processor, budget, needs.smallest());
    return plan_of(of, memories, *choice, budget, parameters.name);
  };
  return rule_for_budget(problem, memories, budget_for(problem, memories.processor, parameters),
                         parameters.improve, plan);
}

}  // namespace plimsoll
