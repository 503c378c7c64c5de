// Plans of pipelines written as PyTorch's CSV, and read again.
#include "policy/pipeline/orders/schedule_csv_writer.hpp"

#include "policy/pipeline/orders/schedule_csv.hpp"
#include "policy/pipeline/schedule/plan_tasks.hpp"
#include "property/random_chains.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/split_pipelines.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Dice;
using test::Played;

/// Four devices, each linked to every other, with `link`'s latency and bandwidth.
std::string mesh(const std::string& link) {
  std::string memories, processors, links;
  for (int i = 0; i < 4; ++i) {
    memories += fmt::format("  hbm{}: {{capacity: unlimited}}\n", i);
    processors += fmt::format("  gpu{0}: {{memory: hbm{0}}}\n", i);
    for (int j = 0; j < i; ++j)
      links += fmt::format("  l{0}{1}: {{between: [hbm{0}, hbm{1}], {2}}}\n", j, i, link);
  }
  return "platform: mesh\nmemories:\n" + memories + "processors:\n" + processors + "links:\n" +
         links;
}

Schedule tasks(const Plan& plan, const Workload& workload) {
  return tasks_of(plan, workload, pipeline_view(workload), {"--schedule-csv", 0, 0});
}

struct Scheduled {
  const char* name;
  std::int64_t chunks;
};
constexpr Scheduled kSchedules[] = {
    {"gpipe", 1},          {"1f1b", 1},       {"zb-h1", 1},
    {"zb-h2", 1},          {"zb-1p", 1},      {"zb-2p", 1},
    {"bpipe", 1},          {"zb-v", 2},       {"v-half", 2},
    {"v-min", 2},          {"1f1b-v", 2},     {"dualpipe-v", 2},
    {"hanayo", 2},         {"looped-bfs", 2}, {"interleaved-1f1b", 2},
    {"interleaved-zb", 2}, {"gis", 2},        {"gis-h", 2},
};

std::string policy_of(const Scheduled& it) {
  // BPipe moves nothing where a device keeps three microbatches at most.
  return fmt::format("{{name: pipeline/{}, microbatches: {}, virtual_stages: {}}}", it.name,
                     it.name == std::string("bpipe") ? 3 : 8, it.chunks);
}

/// Plays the CSV of `run`'s plan on the workload built as the file asks.
template <class Build>
Played read_back(const std::string& csv, const Platform& platform, Build build_for) {
  const test::TemporaryFolder folder;
  const std::string policy =
      fmt::format("{{name: pipeline/csv, file: {}}}", folder.write("s.csv", csv).string());
  const Workload workload = build_for(test::bound_policy(policy).splits_backward);
  return test::play_policy(policy, workload, platform);
}

std::string split_chain_of(Dice& dice, std::int64_t stages) {
  std::string text = "workload: w\nchain:\n";
  for (std::int64_t i = 0; i < stages; ++i) {
    const std::int64_t output = dice(0, 2), saved = output + dice(0, 4);
    text += fmt::format(
        "  - {{name: s{}, forward: {} s, backward_input: {} s, backward_weight: {} s, output: {} "
        "B, saved: {} B, held_for_weight_gradient: {} B}}\n",
        i, dice(1, 4), dice(1, 4), dice(1, 4), output, saved, dice(0, saved));
  }
  return text;
}

void require_same(const Played& read, const Played& run) {
  REQUIRE(read.execution.status == RunStatus::ok);
  CHECK(read.execution.makespan == run.execution.makespan);
  CHECK(read.execution.period == run.execution.period);
  for (std::uint32_t m = 0; m < 4; ++m) CHECK(read.peak(MemoryId{m}) == run.peak(MemoryId{m}));
}

std::string refusal(const std::string& policy) {
  std::string text = mesh("latency: 0 s");
  text.replace(text.find("processors:"), 0, "  dram: {capacity: unlimited}\n");
  for (int i = 0; i < 4; ++i)
    text += fmt::format("  pcie{0}: {{between: [hbm{0}, dram], bandwidth: 1 B/s}}\n", i);
  const Platform platform = test::platform_of(text);
  const Workload workload = test::workload_of(test::split_chain_yaml(4, {"1 s", "1 s", "1 s"}));
  try {
    (void)tasks(test::planned(policy, workload, platform), workload);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("csv by hand: 1f1b on two devices, in columns of unit time") {
  // Rank 1 waits a column for its first forward; rank 0 one for each of its backwards.
  const Workload workload = test::workload_of(
      "workload: w\nchain:\n  - {name: s0, forward: 1 s, backward: 1 s, saved: 1 B}\n"
      "  - {name: s1, forward: 1 s, backward: 1 s, saved: 1 B}\n");
  const Platform platform = test::platform_of(test::row_yaml(2, "0 s"));
  const Schedule schedule =
      tasks(test::planned("{name: pipeline/1f1b, microbatches: 2}", workload, platform), workload);
  CHECK(compute_csv(schedule) == "0F0,0F1,,0B0,,0B1\r\n,1F0,1B0,1F1,1B1,\r\n");
  CHECK(communication_csv(schedule) ==
        "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\r\n"
        "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\r\n");
}

TEST_CASE("every schedule, written and read again, is the same execution") {
  Dice dice(20251203);
  for (const Scheduled& schedule : kSchedules)
    for (int round = 0; round < 6; ++round) {
      const std::string chain = split_chain_of(dice, 4 * schedule.chunks);
      const Platform platform = test::platform_of(mesh(
          fmt::format("latency: {} s, bandwidth: {} B/s, sharing: fifo", dice(0, 2), dice(1, 4))));
      const std::string policy = policy_of(schedule);
      CAPTURE(schedule.name, chain);
      const auto build_for = [&](bool split) {
        WorkloadOptions options;
        options.split_backward = split;
        return test::workload_of(chain, options);
      };
      const Workload workload = build_for(test::bound_policy(policy).splits_backward);
      const Played run = test::play_policy(policy, workload, platform);
      const Schedule written = tasks(run.plan, workload);
      CHECK(written.placement.size() == static_cast<std::size_t>(4 * schedule.chunks));
      require_same(read_back(compute_csv(written), platform, build_for), run);
      // With messages receives hold ranks up, so that nothing is earlier.
      const Played messages = read_back(communication_csv(written), platform, build_for);
      CHECK(messages.execution.status == RunStatus::ok);
      CHECK(messages.execution.makespan >= run.execution.makespan);
    }
}

TEST_CASE("a network's schedule, written and read again, is the same execution") {
  const Platform platform = test::library_platform("pcie-4gpu-workstation");
  for (const Scheduled& schedule : {Scheduled{"1f1b", 1}, Scheduled{"zb-h1", 1},
                                    Scheduled{"dualpipe-v", 2}, Scheduled{"interleaved-zb", 2}})
    for (const bool decodes : {false, true}) {
      INFO(schedule.name << (decodes ? " on T5" : " on GPT-2"));
      const auto build_for = [&](bool split) {
        WorkloadOptions options{.batch = 8, .microbatch = 1};
        options.split_backward = split;
        return decodes ? test::large_network("t5-large", 6, options)
                       : build(test::library_network("gpt2-small"), options);
      };
      const std::string policy = policy_of(schedule);
      const Workload workload = build_for(test::bound_policy(policy).splits_backward);
      const Played run = test::play_policy(policy, workload, platform);
      require_same(read_back(compute_csv(tasks(run.plan, workload)), platform, build_for), run);
    }
}

TEST_CASE("what the CSV cannot say is refused") {
  CHECK_THAT(refusal("{name: pipeline/chimera, microbatches: 4}"),
             Catch::Contains("runs a stage on several devices"));
  CHECK_THAT(refusal("{name: pipeline/1f1b, recompute: full}"),
             Catch::Contains("recomputes what stages keep"));
  CHECK_THAT(refusal("{name: pipeline/gpipe, microbatches: 8, offload: all}"),
             Catch::Contains("moves what stages keep to other memories"));
  CHECK_THAT(refusal("{name: pipeline/pipedream, microbatches: 8}"),
             Catch::Contains("does not end in a flush"));
}

}  // namespace plimsoll
