/// Random costs of chains, and the least time of a chain by trying everything: for tests of
/// planners of recomputation.
#pragma once

#include "policy/remat/chain/chain_sequence.hpp"

#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace plimsoll::test {

/// Costs with everything that a chain may have, in small numbers: workspaces of their own for each
/// form, gradients unlike outputs, parameter gradients, an optimizer.
inline ChainCosts random_costs(std::mt19937_64& random, std::int64_t stages) {
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  const bool rich = draw(0, 2) == 0;
  ChainCosts costs;
  costs.resident = Bytes{draw(0, 4)};
  costs.input_gradient = Bytes{draw(0, 4)};
  costs.optimizer = Time{draw(0, 3)};
  costs.optimizer_workspace = Bytes{draw(0, 2)};
  for (std::int64_t i = 0; i < stages; ++i) {
    StageCosts stage;
    stage.forward = Time{draw(0, 9)};
    stage.backward = Time{draw(0, 9)};
    stage.output = Bytes{draw(0, 6)};
    stage.saved = stage.output + Bytes{draw(0, 6)};
    stage.gradient = draw(0, 1) == 0 ? stage.output : Bytes{draw(0, 6)};
    if (rich) {
      stage.keep_workspace = Bytes{draw(0, 6)};
      stage.bare_workspace =
          std::min(stage.saved + stage.keep_workspace - stage.output, Bytes{draw(0, 6)});
      stage.backward_workspace = Bytes{draw(0, 4)};
      stage.lasting = Bytes{draw(0, 3)};
    }
    costs.stages.push_back(stage);
  }
  return costs;
}

/// Keeps everything.
inline ChainSequence keep_all(std::size_t stages) {
  ChainSequence sequence;
  for (std::uint32_t s = 0; s < stages; ++s) sequence.push_back({ChainAction::Kind::keep, s});
  for (auto s = static_cast<std::uint32_t>(stages); s-- > 0;)
    sequence.push_back({ChainAction::Kind::backward, s});
  return sequence;
}

/// Dijkstra over all memory states: which stages are behind, and of each other one any of {a_i,
/// saved_i}. Every move is tried, dropping any one value among them; nothing is pruned.
class EverySchedule {
 public:
  EverySchedule(const ChainCosts& costs, Bytes budget) : costs_(costs), budget_(budget) {}

  /// The least time, the optimizer included; nothing where no schedule fits.
  std::optional<Time> least() {
    relax({costs_.stages.size(), std::vector<int>(costs_.stages.size(), 0)}, Time{});
    while (!open_.empty()) {
      const auto [time, state] = *open_.begin();
      open_.erase(open_.begin());
      if (state.first == 0) {
        if (resident(state) + costs_.optimizer_workspace > budget_) return std::nullopt;
        return time + costs_.optimizer;
      }
      expand(state, time);
    }
    return std::nullopt;
  }

 private:
  using State = std::pair<std::size_t, std::vector<int>>;  // phase; by stage 1: a_i, 2: saved_i

  Bytes resident(const State& state) const {
    const auto& [phase, there] = state;
    Bytes sum = costs_.resident;
    if (phase == 0) sum += costs_.input_gradient;
    if (phase > 0 && phase < there.size()) sum += costs_.stages[phase - 1].gradient;
    for (std::size_t i = 0; i < there.size(); ++i) {
      if (i >= phase) sum += costs_.stages[i].lasting;
      if ((there[i] & 1) != 0) sum += costs_.stages[i].output;
      if ((there[i] & 2) != 0) sum += costs_.stages[i].saved;
    }
    return sum;
  }

  void expand(const State& state, Time time) {
    const auto& [phase, there] = state;
    const Bytes used = resident(state);
    const auto move = [&](std::size_t i, int mask, std::size_t to, Time cost) {
      State next = state;
      next.first = to;
      next.second[i] = mask;
      relax(next, time + cost);
    };
    for (std::size_t i = 0; i < phase; ++i) {
      const StageCosts& stage = costs_.stages[i];
      for (const int form : {1, 2}) {
        if ((there[i] & form) != 0) move(i, there[i] & ~form, phase, Time{});
        const Bytes adds =
            form == 1 ? stage.output + stage.bare_workspace : stage.saved + stage.keep_workspace;
        if ((there[i] & form) == 0 && (i == 0 || there[i - 1] != 0) && used + adds <= budget_)
          move(i, there[i] | form, phase, stage.forward);
      }
    }
    const std::size_t last = phase - 1;
    if ((there[last] & 2) == 0 || (last > 0 && there[last - 1] == 0)) return;
    const StageCosts& stage = costs_.stages[last];
    Bytes adds = stage.lasting + stage.backward_workspace;
    adds += last == 0 ? costs_.input_gradient : costs_.stages[last - 1].gradient;
    if (phase == there.size()) adds += stage.gradient;
    if (used + adds <= budget_) move(last, 0, last, stage.backward);
  }

  void relax(const State& state, Time time) {
    const auto [known, is_new] = best_.try_emplace(state, time);
    if (!is_new) {
      if (known->second <= time) return;
      open_.erase({known->second, state});
      known->second = time;
    }
    open_.emplace(time, state);
  }

  const ChainCosts& costs_;
  Bytes budget_;
  std::map<State, Time> best_;
  std::set<std::pair<Time, State>> open_;
};

}  // namespace plimsoll::test
