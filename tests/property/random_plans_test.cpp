// Pipelines and graphs: the engine against the second opinion of replay.hpp, and claims against the
// engine, on thousands of random platforms.
#include "property/random_graphs.hpp"
#include "property/random_pipelines.hpp"
#include "property/replay.hpp"
#include "support/policies.hpp"

namespace plimsoll {
namespace {

using test::Dice;

constexpr int kPlanRounds = 1500;

void require_replay_agrees(const test::Played& it, const Workload& workload,
                           const Platform& platform) {
  const test::Replay replay(it.plan, workload, platform);
  REQUIRE((it.execution.status == RunStatus::ok) == replay.finished);
  REQUIRE(it.execution.makespan.count() == replay.makespan);
  for (std::uint32_t m = 0; m < platform.memories.size(); ++m)
    REQUIRE(it.peak(MemoryId{m}) == replay.peak[m]);
  // One stream each: from the first start on it works or waits, to its last end, or, where steps
  // are left, to the end of the run.
  std::vector<bool> left(platform.processors.size(), false);
  for (std::size_t s = 0; s < it.plan.steps.size(); ++s)
    if (const Lane& lane = it.plan[it.plan.steps[s].lane]; lane.kind == Lane::Kind::stream)
      if (it.execution.end[s].is_unlimited()) left[static_cast<std::size_t>(lane.processor)] = true;
  for (std::size_t p = 0; p < platform.processors.size(); ++p) {
    const ProcessorRecord& processor = it.execution.processors[p];
    Time waited;
    for (const Time stall : processor.stall) waited += stall;
    const Time end = left[p] ? it.execution.makespan : processor.last_end;
    const Time spent = processor.first_start ? end - *processor.first_start : Time{};
    REQUIRE(spent == processor.busy + waited);
  }
}

/// Whatever the end: what was allocated and not freed is resident, and what left a memory over the
/// links arrived in another.
void require_conserved(const test::Played& it, const Workload& workload, const Platform& platform) {
  const Plan& plan = it.plan;
  std::vector<Bytes> held(platform.memories.size());
  const auto started = [&](StepId s) { return !it.start(s).is_unlimited(); };
  const auto ended = [&](StepId s) { return !it.end(s).is_unlimited(); };
  const auto bytes = [&](BufferId b) { return workload[plan[b].tensor].bytes; };
  const auto in = [&](BufferId b) -> Bytes& {
    return held[static_cast<std::size_t>(plan[b].memory)];
  };
  for (const BufferId b : plan.initial) {
    const Bytes usable = platform[plan[b].memory].usable();
    if (!usable.is_unlimited() && in(b) + bytes(b) > usable) break;  // the run ended there
    in(b) += bytes(b);
  }
  std::vector<bool> taken(plan.buffers.size(), false), in_use(plan.buffers.size(), false);
  Bytes out, arrived, moved;
  for (std::uint32_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    for (const BufferId b : plan.list(step.reads)) {
      const auto at = static_cast<std::size_t>(b);
      if (step.kind == StepKind::copy && step.source != SourceRelease::keep) taken[at] = true;
      if (!ended(StepId{s})) in_use[at] = true;
    }
    if (started(StepId{s}))
      for (const BufferId b : plan.list(step.writes)) in(b) += bytes(b);
    if (step.kind == StepKind::copy && ended(StepId{s}))
      moved += bytes(plan.list(step.writes).front());  // it may be a part of what is read
  }
  for (const Release& release : plan.releases)
    if (std::ranges::all_of(plan.after(release), ended))
      in(release.buffer) -= bytes(release.buffer);
  for (std::uint32_t b = 0; b < plan.buffers.size(); ++b)
    if (taken[b] && !in_use[b]) in(BufferId{b}) -= bytes(BufferId{b});
  for (std::size_t m = 0; m < held.size(); ++m) {
    Bytes resident;
    for (const Bytes of_class : it.execution.memories[m].at_end) resident += of_class;
    REQUIRE(resident == held[m]);
    out += it.execution.memories[m].bytes_read;
    arrived += it.execution.memories[m].bytes_written;
  }
  REQUIRE(out == moved);
  REQUIRE(arrived == moved);
}

/// What never waited for memory runs the same where there is any amount of it.
void require_memory_waits_are_told(const test::Played& it, const Workload& workload,
                                   Platform platform) {
  if (it.execution.waited_for_memory || it.execution.oom) return;
  for (Memory& memory : platform.memories) memory.capacity = Bytes::unlimited();
  const Execution unlimited = execute(lower(it.plan, workload, platform, Topology(platform)));
  REQUIRE(unlimited.start == it.execution.start);
  REQUIRE(unlimited.end == it.execution.end);
}

std::string random_pipeline(Dice& dice) {
  return fmt::format("{{name: pipeline/{}, microbatches: {}}}", dice(0, 1) == 0 ? "gpipe" : "1f1b",
                     dice(1, 5));
}

/// Any policy of one processor, with its defaults.
std::string random_single(Dice& dice) {
  const std::string eager = fmt::format("{{name: offload/eager, distance: {}}}", dice(1, 4));
  const std::vector<std::string> all{"none",         "remat/sqrt",  "remat/every-stage",
                                     "remat/blocks", "offload/all", eager};
  return all[static_cast<std::size_t>(dice(0, static_cast<std::int64_t>(all.size()) - 1))];
}

}  // namespace

TEST_CASE("random pipelines: engine, replay and claims agree") {
  Dice dice(20240611);
  int claimed = 0, played = 0;
  for (int round = 0; round < kPlanRounds; ++round) {
    const std::int64_t devices = dice(2, 4);
    test::Chain chain = test::random_chain(dice, 8);
    if (static_cast<std::int64_t>(chain.stages()) < devices) continue;
    const std::string cluster = test::random_cluster(dice, devices);
    const std::string policy = random_pipeline(dice);
    INFO("round " << round << ", " << policy << "\n" << test::chain_yaml(chain) << cluster);
    const Workload workload = test::chain_workload(chain);
    const Platform platform = test::platform_of(cluster);
    const test::Played it = test::play_policy(policy, workload, platform);
    require_replay_agrees(it, workload, platform);
    require_conserved(it, workload, platform);
    require_memory_waits_are_told(it, workload, platform);
    test::require_claims_hold(it);
    ++played;
    if (it.plan.claims.makespan) ++claimed;
  }
  INFO(claimed << " of " << played << " claimed");
  CHECK(claimed > played / 4);
}

TEST_CASE("random graphs: engine, replay and claims agree on one processor") {
  Dice dice(20240612);
  int claimed = 0;
  for (int round = 0; round < kPlanRounds; ++round) {
    const std::string graph = test::random_graph(dice);
    const test::OneGpu gpu = test::random_gpu(dice, 10);
    const std::string policy = random_single(dice);
    INFO("round " << round << ", " << policy << "\n" << graph << test::platform_yaml(gpu));
    const Workload workload = test::workload_of(graph);
    const Platform platform = test::one_gpu(gpu);
    const test::Played it = test::play_policy(policy, workload, platform);
    require_replay_agrees(it, workload, platform);
    require_conserved(it, workload, platform);
    test::require_claims_hold(it);
    if (it.plan.claims.makespan) ++claimed;
  }
  CHECK(claimed > kPlanRounds / 2);
}

TEST_CASE("random chains on arenas that break up: claims hold") {
  Dice dice(20240614);
  int claimed = 0, failed = 0;
  for (int round = 0; round < kPlanRounds; ++round) {
    const test::Chain chain = test::random_chain(dice);
    test::OneGpu gpu = test::random_gpu(dice, chain.output.front());
    gpu.capacity = chain.output.front() + dice(1, 40);
    gpu.allocator = fmt::format("best-fit, alignment: {} B", 1 << dice(0, 2));
    const std::string policy = random_single(dice);
    INFO("round " << round << ", " << policy << "\n"
                  << test::chain_yaml(chain) << test::platform_yaml(gpu));
    const test::Played it =
        test::play_policy(policy, test::chain_workload(chain), test::one_gpu(gpu));
    test::require_claims_hold(it);
    if (it.plan.claims.makespan) ++claimed;
    if (it.execution.status != RunStatus::ok) ++failed;
  }
  CHECK(claimed > kPlanRounds / 5);
  CHECK(failed > kPlanRounds / 5);
}

TEST_CASE("a plan's limit of a memory is as good as that capacity") {
  Dice dice(20261121);
  int waited = 0;
  for (int round = 0; round < kPlanRounds; ++round) {
    const test::Chain chain = test::random_chain(dice);
    test::OneGpu gpu = test::random_gpu(dice, chain.output.front());
    const Bytes limit{chain.output.front() + dice(1, 40)};
    const Workload workload = test::chain_workload(chain);
    gpu.capacity = limit.count();
    const Platform small = test::one_gpu(gpu);
    gpu.capacity = std::nullopt;
    const Platform large = test::one_gpu(gpu);
    Plan plan = test::planned(random_single(dice), workload, small);
    plan.claims = {};
    const test::Played full = test::play(plan, workload, small);
    plan.limits.emplace_back(MemoryId{0}, limit);
    const test::Played limited = test::play(plan, workload, large);
    CAPTURE(round);
    REQUIRE(limited.execution.status == full.execution.status);
    REQUIRE(limited.execution.start == full.execution.start);
    REQUIRE(limited.peak(MemoryId{0}) == full.peak(MemoryId{0}));
    REQUIRE(limited.peak(MemoryId{0}) <= limit.count());
    if (full.execution.makespan > test::play_policy("none", workload, large).execution.makespan)
      ++waited;
  }
  CHECK(waited > kPlanRounds / 10);
}

TEST_CASE("random graphs in a pipeline: engine, replay and claims agree") {
  Dice dice(20240613);
  int played = 0;
  for (int round = 0; round < kPlanRounds; ++round) {
    const std::string graph = test::random_graph(dice, 12);
    const Workload workload = test::workload_of(graph);
    const std::int64_t devices = dice(2, 3);
    if (static_cast<std::int64_t>(chain_view(workload).stages.size()) < devices) continue;
    const std::string cluster = test::random_cluster(dice, devices);
    const std::string policy = random_pipeline(dice);
    INFO("round " << round << ", " << policy << "\n" << graph << cluster);
    const Platform platform = test::platform_of(cluster);
    const test::Played it = test::play_policy(policy, workload, platform);
    require_replay_agrees(it, workload, platform);
    require_conserved(it, workload, platform);
    require_memory_waits_are_told(it, workload, platform);
    test::require_claims_hold(it);
    ++played;
  }
  CHECK(played > kPlanRounds / 5);
}

TEST_CASE("random graphs: offloading never needs more than keeping, for it only takes away") {
  // The stream runs the same operators in the same order; what is in the processor's memory at a
  // start is part of what `none` holds there.
  Dice dice(20240615);
  int less = 0;
  for (int round = 0; round < 2 * kPlanRounds; ++round) {
    const std::string graph = test::random_graph(dice);
    test::OneGpu gpu = test::random_gpu(dice, 10);
    gpu.capacity.reset();
    const std::string policy = dice(0, 1) == 0 ? "offload/all" : "offload/eager";
    INFO("round " << round << ", " << policy << "\n" << graph << test::platform_yaml(gpu));
    const Workload workload = test::workload_of(graph);
    const Platform platform = test::one_gpu(gpu);
    const std::int64_t none = test::play_policy("none", workload, platform).peak(MemoryId{0});
    const std::int64_t other = test::play_policy(policy, workload, platform).peak(MemoryId{0});
    REQUIRE(other <= none);
    less += other < none ? 1 : 0;
  }
  CHECK(less > kPlanRounds / 5);
}

}  // namespace plimsoll
