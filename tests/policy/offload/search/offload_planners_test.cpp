// The planners of offload under a budget on random chains: against searches written another way,
// against the engine, and against each other.
#include "policy/offload/model/fluid_bound.hpp"
#include "policy/offload/model/fluid_timing.hpp"
#include "policy/offload/search/branch_and_bound.hpp"
#include "policy/offload/search/heuristics.hpp"
#include "property/random_offload.hpp"
#include "support/policies.hpp"

#include <limits>
#include <map>
#include <set>

namespace plimsoll {
namespace {

using test::Dice;
using test::OffloadInstance;

constexpr std::int64_t kSecond = 1'000'000'000'000;

/// The least makespan by breadth-first search over states, one time unit after the other, in whole
/// units: every step either starts something or lets a unit of time pass. Whole release. Storage
/// holds a stage from the start of its copy out to the end of its copy back.
class UnitSteps {
 public:
  explicit UnitSteps(const OffloadInstance& it,
                     std::int64_t storage = std::numeric_limits<std::int64_t>::max())
      : it_(it), storage_(storage), stages_(static_cast<int>(it.chain.stages())) {}

  std::optional<std::int64_t> run() {
    std::set<State> now{start()};
    for (std::int64_t time = 0; !now.empty() && time < 1000; ++time) {
      std::set<State> reached;
      for (const State& state : now) start_things(state, reached);
      now.clear();
      for (State state : reached) {
        if (state.done == 2 * stages_) return time;
        if (pass(state)) now.insert(state);
      }
    }
    return std::nullopt;
  }

 private:
  enum Place { unmade, here, leaving, left, away, coming, back, over };
  struct State {
    int done = 0, running = 0;     ///< operations that have ended; time left of the one under way
    std::vector<int> place, left;  ///< by stage; of its copy
    auto operator<=>(const State&) const = default;
  };

  State start() const {
    State state;
    state.place.assign(static_cast<std::size_t>(stages_), unmade);
    state.left.assign(static_cast<std::size_t>(stages_), 0);
    return state;
  }
  std::size_t at(int i) const { return static_cast<std::size_t>(i); }
  bool is_forward(int k) const { return k < stages_; }
  int stage(int k) const { return is_forward(k) ? k : 2 * stages_ - 1 - k; }

  std::int64_t resident(const State& s) const {
    std::int64_t sum = it_.chain.output[0];
    for (int i = 0; i < stages_; ++i) {
      const int place = s.place[at(i)];
      if (place != unmade && place != away && place != over) sum += it_.chain.saved[at(i)];
    }
    // Gradients: delta_i is there from the start of backward i+1 to the end of backward i.
    const int begun = s.done + (s.running > 0 ? 1 : 0) - stages_;
    const int ended = s.done - stages_;
    for (int j = 0; j <= stages_; ++j) {
      const bool made = j == stages_ ? begun >= 1 : begun >= stages_ - j;
      const bool used = j > 0 && ended >= stages_ - j + 1;
      if (made && !used) sum += it_.chain.output[at(j)];
    }
    return sum;
  }
  bool fits(const State& s) const { return resident(s) <= *it_.gpu.capacity; }

  bool is_stored(const State& s, int i) const {
    const int place = s.place[at(i)];
    const bool is_being_made = s.running > 0 && is_forward(s.done) && stage(s.done) == i;
    return place == leaving || (place == left && !is_being_made) || place == away ||
           place == coming;
  }
  bool fits_in_storage(const State& s) const {
    std::int64_t sum = 0;
    for (int i = 0; i < stages_; ++i)
      if (is_stored(s, i)) sum += it_.chain.saved[at(i)];
    return sum <= storage_;
  }

  bool is_here(const State& s, int i) const {
    const int place = s.place[at(i)];
    return place == here || place == leaving || place == left || place == back;
  }

  void start_things(const State& s, std::set<State>& reached) const {
    if (!reached.insert(s).second) return;
    if (s.running == 0 && s.done < 2 * stages_) start_operation(s, reached);
    bool out_free = true, in_free = true;
    for (int i = 0; i < stages_; ++i) {
      out_free &= s.place[at(i)] != leaving;
      in_free &= s.place[at(i)] != coming;
    }
    for (int i = 0; i < stages_ - 2; ++i) {
      State next = s;
      // What backward i+1 has begun to read stays.
      const bool is_read_back = s.done + (s.running > 0 ? 1 : 0) > 2 * stages_ - 2 - i;
      if (s.place[at(i)] == here && out_free && !is_read_back) {
        next.place[at(i)] = leaving;
        next.left[at(i)] = static_cast<int>(it_.chain.saved[at(i)]);
        if (fits_in_storage(next)) start_things(next, reached);
      } else if (s.place[at(i)] == away && in_free) {
        next.place[at(i)] = coming;
        next.left[at(i)] = static_cast<int>(it_.chain.saved[at(i)]);
        if (fits(next)) start_things(next, reached);
      }
    }
  }

  void start_operation(const State& s, std::set<State>& reached) const {
    const int k = s.done, i = stage(k);
    // What is read must be there, and stay: a copy that is under way frees it later.
    if (is_forward(k)) {
      if (i > 0 && !is_here(s, i - 1)) return;
    } else {
      const auto whole = [&](int j) { return s.place[at(j)] == here || s.place[at(j)] == back; };
      if (!whole(i) || (i > 0 && !whole(i - 1))) return;
    }
    State next = s;
    const auto& times = is_forward(k) ? it_.chain.forward : it_.chain.backward;
    next.running = static_cast<int>(times[at(i)]);
    if (is_forward(k)) next.place[at(i)] = left;  // counted while it is being made, cannot leave
    if (fits(next)) start_things(next, reached);
  }

  /// Lets one unit pass; false where nothing is under way, so that nothing would ever change.
  bool pass(State& s) const {
    bool moves = s.running > 0;
    if (s.running > 0 && --s.running == 0) {
      const int i = stage(s.done);
      s.place[at(i)] = is_forward(s.done) ? here : over;
      ++s.done;
    }
    for (int i = 0; i < stages_; ++i) {
      const bool copies = s.place[at(i)] == leaving || s.place[at(i)] == coming;
      if (!copies) continue;
      moves = true;
      if (--s.left[at(i)] == 0) s.place[at(i)] = s.place[at(i)] == leaving ? left : back;
    }
    // A stage that has left is free once the forward behind it has read it.
    for (int i = 0; i < stages_ - 2; ++i)
      if (s.place[at(i)] == left && s.done > i + 1) s.place[at(i)] = away;
    return moves;
  }

  const OffloadInstance& it_;
  const std::int64_t storage_;
  const int stages_;
};

Problem problem_of(const Workload& workload, const ChainView& view, const Platform& platform,
                   const Topology& topology) {
  return {workload, view, platform, topology};
}

Time shortest(const std::vector<Timed>& runs) {
  return std::ranges::min_element(runs, {}, &Timed::makespan)->makespan;
}

}  // namespace

TEST_CASE("the exact offload equals a search in unit time steps") {
  Dice dice(41);
  for (int round = 0; round < 150; ++round) {
    OffloadInstance it = test::random_offload_instance(dice, dice(3, 4));
    // Small numbers keep the other search small.
    for (std::int64_t& saved : it.chain.saved) saved = std::max<std::int64_t>(1, saved / 2);
    const OffloadModel unlimited = test::model_of(it);
    it.gpu.capacity =
        dice(smallest_budget(unlimited, everything(unlimited)).count(),
             smallest_budget(unlimited, OffloadSet(it.chain.stages(), false)).count());
    const OffloadModel model = test::model_of(it);
    const BestSchedule best = best_schedule(model, std::nullopt, {}, *fluid_bound(model));
    REQUIRE(best.is_proven);
    REQUIRE(best.schedule);
    const auto other = UnitSteps(it).run();
    REQUIRE(other);
    CAPTURE(test::chain_yaml(it.chain), *it.gpu.capacity);
    REQUIRE(best.schedule->makespan == Time{*other * kSecond});
  }
}

TEST_CASE("the exact offload with small storage equals a search in unit time steps") {
  Dice dice(47);
  int waiting = 0, impossible = 0;
  for (int round = 0; round < 150; ++round) {
    OffloadInstance it = test::random_offload_instance(dice, dice(4, 5));
    std::int64_t all = 0;
    for (std::int64_t& saved : it.chain.saved) saved = std::max<std::int64_t>(1, saved / 2);
    for (std::size_t s = 0; s + 2 < it.chain.stages(); ++s) all += it.chain.saved[s];
    const OffloadModel roomy = test::model_of(it);
    it.gpu.capacity = dice(smallest_budget(roomy, everything(roomy)).count(),
                           smallest_budget(roomy, OffloadSet(it.chain.stages(), false)).count());
    OffloadModel model = test::model_of(it);
    model.storage = Bytes{dice(1, all - 1)};
    const BestSchedule best = best_schedule(model, std::nullopt, {}, *fluid_bound(model));
    REQUIRE(best.is_proven);
    const auto other = UnitSteps(it, model.storage.count()).run();
    CAPTURE(test::chain_yaml(it.chain), *it.gpu.capacity, model.storage.count());
    REQUIRE(best.schedule.has_value() == other.has_value());
    if (!other) {
      ++impossible;
      continue;
    }
    REQUIRE(best.schedule->makespan == Time{*other * kSecond});
    Bytes moved;
    for (const OffloadAction& action : best.schedule->sequence)
      if (action.kind == OffloadAction::Kind::out) moved += model.stages[action.stage].moved;
    waiting += moved > model.storage ? 1 : 0;
  }
  CHECK(impossible > 10);
  // Some of the best schedules use the same room of the storage twice.
  CHECK(waiting > 0);
}

TEST_CASE("offload planners on random chains: claims hold, budgets are kept, bounds lie below") {
  Dice dice(42);
  int proven = 0;
  for (int round = 0; round < 250; ++round) {
    OffloadInstance it = test::random_offload_instance(dice, dice(1, 8));
    it.gpu.bandwidth_out = dice(1, 3);
    it.gpu.bandwidth_in = dice(1, 3);
    if (dice(0, 2) == 0) it.gpu.link = fmt::format(", latency: {} s", dice(1, 2));
    if (dice(0, 3) == 0) it.gpu.link += ", duplex: half";
    const std::int64_t budget = *it.gpu.capacity;
    const Workload workload = test::chain_workload(it.chain);
    if (dice(0, 1) == 0) it.gpu.capacity.reset();  // the budget alone limits then
    const Platform platform = test::one_gpu(it.gpu);
    const MemoryId hbm = *platform.find_memory("hbm");
    CAPTURE(test::chain_yaml(it.chain), test::platform_yaml(it.gpu), budget);
    for (const char* release : {"whole", "progressive"}) {
      Time exact = Time::unlimited();
      for (const char* policy : {"exact", "dynamic", "greedy"}) {
        CAPTURE(release, policy);
        const test::Played played = test::play_policy(
            fmt::format("{{name: offload/{}, budget: {} B, release: {}}}", policy, budget, release),
            workload, platform);
        REQUIRE(played.execution.status == RunStatus::ok);
        if (it.gpu.link.find("half") == std::string::npos) REQUIRE(played.plan.claims.makespan);
        test::require_claims_hold(played);
        REQUIRE(played.peak(hbm) <= budget);
        REQUIRE(played.plan.bounds.makespan);
        REQUIRE(*played.plan.bounds.makespan <= played.execution.makespan);
        if (played.plan.claims.optimal == true) {
          exact = played.execution.makespan;
          ++proven;
        }
        if (!exact.is_unlimited()) REQUIRE(played.execution.makespan >= exact);
      }
    }
  }
  CHECK(proven > 300);
}

TEST_CASE("the model of offload plays a sequence as the engine does") {
  Dice dice(43);
  for (int round = 0; round < 200; ++round) {
    const OffloadInstance it = test::random_offload_instance(dice, dice(3, 9));
    const Workload workload = test::chain_workload(it.chain);
    const Platform platform = test::one_gpu(it.gpu);
    const Topology topology(platform);
    const ChainView view = chain_view(workload);
    const Problem problem = problem_of(workload, view, platform, topology);
    const OffloadMemories memories{ProcessorId{0}, *platform.find_memory("hbm"),
                                   *platform.find_memory("dram")};
    const SourceRelease release =
        dice(0, 1) == 0 ? SourceRelease::whole : SourceRelease::progressive;
    const Bytes budget{*it.gpu.capacity};
    const OffloadModel model = offload_model(problem, memories, budget, release);
    OffloadSet set(it.chain.stages(), false);
    for (std::size_t s = 0; s < model.candidates; ++s) set[s] = dice(0, 1) == 1;
    const OffloadSequence sequence = fetched_ahead(set, static_cast<std::size_t>(dice(1, 3)));
    const Plan plan = plan_of(problem, memories, sequence, {release, budget, true}, "test");
    const auto makespan = play(model, sequence);
    REQUIRE(plan.claims.makespan == makespan);
    const test::Played played = test::play(plan, workload, platform);
    REQUIRE((played.execution.status == RunStatus::ok) == makespan.has_value());
    test::require_claims_hold(played);
  }
}

TEST_CASE("the optimum does not grow with the budget or the bandwidth, nor with finer release") {
  Dice dice(44);
  for (int round = 0; round < 60; ++round) {
    const OffloadInstance it = test::random_offload_instance(dice, 5);
    const auto optimum = [&](std::int64_t more_budget, std::int64_t bandwidth, bool progressive) {
      OffloadInstance other = it;
      *other.gpu.capacity += more_budget;
      other.gpu.bandwidth_out = other.gpu.bandwidth_in = bandwidth;
      OffloadModel model = test::model_of(other);
      model.progressive = progressive;
      const Time bound = *fluid_bound(model);
      const BestSchedule best = best_schedule(model, std::nullopt, {}, bound);
      REQUIRE(best.is_proven);
      REQUIRE(bound <= best.schedule->makespan);
      REQUIRE(model.compute_time() <= bound);
      return best.schedule->makespan;
    };
    const Time plain = optimum(0, 1, false);
    REQUIRE(optimum(2, 1, false) <= plain);
    REQUIRE(optimum(0, 2, false) <= plain);
    REQUIRE(optimum(0, 1, true) <= plain);
  }
}

TEST_CASE("the fluid timing of the best set is the least over all sets") {
  Dice dice(45);
  for (int round = 0; round < 300; ++round) {
    const OffloadInstance it = test::random_offload_instance(dice, dice(3, 7));
    const OffloadModel model = test::model_of(it);
    // The recursion for one set, in units; bandwidth 1 makes bytes and seconds the same.
    const auto timing = [&](unsigned set) -> std::optional<std::int64_t> {
      const test::Chain& c = it.chain;
      const std::int64_t budget = *it.gpu.capacity;
      std::int64_t kept = 0, out = 0, in = 0, time = 0;
      for (std::size_t i = 0; i < c.stages(); ++i) {
        const std::int64_t input = i == 0 ? c.output[0] : c.saved[i - 1];
        const std::int64_t need = c.saved[i] + c.output[i + 1] + c.output[i];
        if (kept + out > budget || kept + in > budget || need > budget - kept - input)
          return std::nullopt;
        const std::int64_t wait_out =
            std::max<std::int64_t>(0, kept + out + input + c.saved[i] - budget);
        const std::int64_t wait_in = std::max<std::int64_t>(0, kept + in + input + need - budget);
        time += c.forward[i] + c.backward[i] + wait_out + wait_in;
        const std::int64_t sent = c.forward[i] + wait_out, fetched = c.backward[i] + wait_in;
        const bool moves = i > 0 && (set >> (i - 1) & 1) != 0;
        out = std::max<std::int64_t>(0, out + (moves ? input : 0) - sent);
        in = std::max<std::int64_t>(0, in - fetched) + (moves ? input : 0);
        kept += moves ? 0 : input;
      }
      if (kept + out > budget || kept + in > budget) return std::nullopt;
      return time + out + in;
    };
    std::optional<std::int64_t> best;
    for (unsigned set = 0; set < 1u << model.candidates; ++set)
      if (const auto time = timing(set); time && (!best || *time < *best)) best = time;
    const std::vector<TimedSet> sets = best_sets(model, 5);
    REQUIRE(sets.empty() == !best.has_value());
    if (best) REQUIRE(sets.front().makespan == Time{*best * kSecond});
  }
}

TEST_CASE("the best heuristic is within 0.3 % of the optimum on average") {
  // bench_offload does the same with 20,000 chains.
  Dice dice(46);
  constexpr int kChains = 600;
  double sum = 0;
  for (int i = 0; i < kChains; ++i) {
    const OffloadModel model = test::random_offload(dice, dice(5, 6));
    const Time found = shortest(dynamic_offload(model).runs);
    const BestSchedule best = best_schedule(model, std::nullopt, {}, *fluid_bound(model));
    REQUIRE(best.is_proven);
    REQUIRE(best.schedule->makespan <= found);
    sum += in_seconds(found) / in_seconds(best.schedule->makespan);
  }
  CHECK(sum / kChains < 1.003);
}

TEST_CASE("planners of offload refuse what they cannot do, and say where") {
  const Workload workload =
      test::chain_workload({{1, 1, 1}, {1, 1, 1}, {1, 1, 1, 1}, {2, 2, 2}, {}, {}});
  const auto refusal = [&](const std::string& policy, const test::OneGpu& gpu) -> std::string {
    try {
      static_cast<void>(test::planned(policy, workload, test::one_gpu(gpu)));
    } catch (const InputError& error) {
      return error.diagnostics().front().message;
    }
    return "";
  };
  test::OneGpu arena, fair;
  arena.allocator = "best-fit";
  fair.link = ", sharing: fair";
  const std::string progressive = "{name: offload/dynamic, release: progressive}";
  CHECK(refusal(progressive, arena).find("`ideal` allocator in `hbm`") != std::string::npos);
  CHECK(refusal(progressive, fair).find("`fifo` links") != std::string::npos);
  CHECK(refusal("{name: offload/exact, set: [s9]}", {}) ==
        "`s9` is not a stage of the chain; expected a name or 1 to 3");
  CHECK(refusal("{name: offload/exact, set: [2]}", {}) ==
        "stage 2 is one of the last two, which are needed back at once and stay");
  CHECK(refusal("{name: offload/exact, set: [1, s1]}", {}) == "stage 1 is in the set twice");
}

}  // namespace plimsoll
