#include "scenario/run/remedies.hpp"

#include "base/document.hpp"
#include "execution/execution.hpp"
#include "plan/check/plan_checker.hpp"
#include "policy/parallel/state_options.hpp"
#include "scenario/document/memo.hpp"
#include "scenario/replay/replay.hpp"
#include "scenario/run/trial.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::size_t kMostStepsTried = 200'000;
constexpr std::size_t kMostBuffersPlaced = 4'096;  ///< by rules that take their square
constexpr std::size_t kMostHomesTried = 2;         ///< memories for state
constexpr std::array kTriedPolicies{"remat/search", "offload/dynamic", "online/dtr", "online/coop"};

AllocatorSettings settings_in(const Memory& memory) {
  return {memory.allocator, memory.alignment, memory.caching, memory.bfc, memory.placed};
}

void set_allocator(Memory& memory, const AllocatorSettings& to) {
  memory.allocator = to.kind;
  memory.alignment = to.alignment;
  memory.caching = to.caching;
  memory.bfc = to.bfc;
  memory.placed = to.placed;
}

class RemedySearch {
 public:
  RemedySearch(const Scenario& scenario, const RunResult& result, std::span<const RunResult> all)
      : scenario_(scenario),
        result_(result),
        all_(all),
        memory_(*scenario.platform.find_memory(result.oom->memory)) {}

  Remedies run() {
    if (result_.plan.steps.size() > kMostStepsTried) return {};
    const bool has_addresses = scenario_.platform[memory_].allocator != AllocatorKind::ideal;
    if (has_addresses && arena_in(result_.plan, memory_) == nullptr) try_allocators();
    try_all_of_memory();
    try_states();
    if (has_one_processor() && result_.plan.microbatches == 1 &&
        !scenario_.workload_options.accumulate)
      for (const char* policy : kTriedPolicies) try_policy(policy);
    return std::move(found_);
  }

  /// State alone: where it is too large for the memory, nothing else helps.
  Remedies run_states() {
    if (result_.plan.steps.size() <= kMostStepsTried) try_states();
    return std::move(found_);
  }

 private:
  void try_allocators() {
    std::vector<ReplayChoice> choices = usual_choices();
    if (result_.plan.buffers.size() <= kMostBuffersPlaced)
      choices.push_back({"static", {.kind = AllocatorKind::placed}});
    const AllocatorSettings has = settings_in(scenario_.platform[memory_]);
    for (const ReplayChoice& choice : choices) {
      // A counter without addresses is nobody's allocator.
      if (choice.settings.kind == AllocatorKind::ideal || choice.settings == has) continue;
      ++found_.allocators.tried;
      if (runs_with(has, choice.settings)) found_.allocators.run.push_back(choice.label);
    }
  }

  /// All memories that are like the full one get the other allocator, too.
  [[nodiscard]] bool runs_with(const AllocatorSettings& has, const AllocatorSettings& other) const {
    Platform platform = scenario_.platform;
    for (Memory& memory : platform.memories)
      if (!memory.is_switch && settings_in(memory) == has) set_allocator(memory, other);
    const Topology topology(platform);
    if (!check_plan(result_.plan, result_.workload_as_run, platform, topology).empty())
      return false;
    try {
      return execute(lower(result_.plan, result_.workload_as_run, platform, topology)).status ==
             RunStatus::ok;
    } catch (const InputError&) {
      return false;  // more blocks than are placed ahead of time
    }
  }

  /// The largest other memories, by their keys: copies of one stand for the nearest.
  [[nodiscard]] std::vector<std::string> other_memories() const {
    std::vector<const Memory*> others;
    const std::string& full = scenario_.platform[memory_].key();
    for (const Memory& memory : scenario_.platform.memories)
      if (!memory.is_switch && memory.key() != full) others.push_back(&memory);
    std::ranges::stable_sort(others, std::greater(), [](const Memory* it) { return it->usable(); });
    std::vector<std::string> keys;
    for (const Memory* memory : others) {
      if (keys.size() == kMostHomesTried) break;
      if (std::ranges::count(keys, memory->key()) == 0) keys.push_back(memory->key());
    }
    return keys;
  }

  /// A processor that can update parameters there.
  [[nodiscard]] const Processor* updater_in(const std::string& memory) const {
    const auto found =
        std::ranges::find_if(scenario_.platform.processors, [&](const Processor& it) {
          return scenario_.platform[it.memory].key() == memory &&
                 it.compute[static_cast<std::size_t>(DType::fp32)];
        });
    return found == scenario_.platform.processors.end() ? nullptr : &*found;
  }

  void try_states() {
    if (result_.from_file || !has_one_processor() || scenario_.state || scenario_.parallel) return;
    for (const std::string& memory : other_memories()) {
      const Processor* updater = updater_in(memory);
      std::vector<std::string> optimizers{fmt::format("optimizer: {{memory: {}}}", memory)};
      if (updater != nullptr)
        optimizers.push_back(
            fmt::format("optimizer: {{memory: {}, on: {}}}", memory, updater->key()));
      for (const std::string& optimizer : optimizers) try_state("{" + optimizer + "}");
      // Gradients follow updates; where these are on the GPU, they are told to go.
      for (const std::string& optimizer : optimizers)
        try_state(fmt::format("{{{}, parameters: {}{}}}", optimizer, memory,
                              optimizer == optimizers.front() ? ", gradients: " + memory : ""));
    }
  }

  void try_all_of_memory() {
    if (result_.from_file) return;
    const Bytes usable = scenario_.platform[memory_].usable();
    Node policy = own_policy(result_);
    if (usable.is_unlimited() || !has_budget() || policy.find("budget") == nullptr) return;
    Diagnostics diagnostics;
    policy.set("budget", parse_value(fmt::format("{} B", usable.count()), "--policy"), diagnostics);
    WorkMeter meter(kWorkOfTrial);
    try {
      found_.with_all_of_memory = tried_step(
          scenario_, policy, {.work = Work(&meter), .compares = false, .is_reported = false});
    } catch (const InputError&) {
      // Its planning was stopped.
    }
  }

  /// Of less than the memory has.
  [[nodiscard]] bool has_budget() const {
    return result_.oom->capacity < scenario_.platform[memory_].usable();
  }

  void try_state(const std::string& written) {
    Scenario elsewhere = scenario_;
    const Node node = parse_value(written, "state");
    Diagnostics diagnostics;
    elsewhere.state = state_format().read(node, diagnostics);
    elsewhere.parallel_key += "state " + key_text(node);
    WorkMeter meter(kWorkOfTrial);
    try {
      if (const auto step =
              tried_step(elsewhere, own_policy(result_),
                         {.work = Work(&meter), .compares = false, .is_reported = false}))
        found_.states.push_back({written, *step});
      else
        found_.failed_states.push_back(written);
    } catch (const InputError&) {
      // No links lead there, or the workload has no state that could live there.
    }
  }

  void try_policy(const std::string& name) {
    if (std::ranges::count(all_, name, &RunResult::policy) > 0) return;
    const std::string written = has_budget() ? fmt::format("{{name: {}, budget: {} B}}", name,
                                                           result_.oom->capacity.count())
                                             : name;
    WorkMeter meter(kWorkOfTrial);
    try {
      if (const auto step =
              tried_step(scenario_, parse_value(written, "--policy"), {.work = Work(&meter)}))
        found_.policies.push_back({written, *step});
      else
        found_.failed.push_back(written);
    } catch (const InputError&) {
      // Not for such workloads or platforms, unless its planning was stopped.
      if (meter.steps() > kWorkOfTrial) found_.undecided.push_back(written);
    }
  }

  [[nodiscard]] bool has_one_processor() const {
    const auto runs = [](const Lane& lane) { return lane.kind == Lane::Kind::stream; };
    const auto& lanes = result_.plan.lanes;
    const auto first = std::ranges::find_if(lanes, runs);
    return first != lanes.end() && std::ranges::all_of(lanes, [&](const Lane& lane) {
             return !runs(lane) || lane.processor == first->processor;
           });
  }

  const Scenario& scenario_;
  const RunResult& result_;
  std::span<const RunResult> all_;
  MemoryId memory_;
  Remedies found_;
};

}  // namespace

Remedies remedies_of(const Scenario& scenario, const RunResult& result,
                     std::span<const RunResult> all) {
  return RemedySearch(scenario, result, all).run();
}

Remedies state_remedies_of(const Scenario& scenario, const RunResult& result) {
  return RemedySearch(scenario, result, {}).run_states();
}

}  // namespace plimsoll
