// Hosts that issue operators while their processors run.
#include "policy/parallel/mesh_runs.hpp"
#include "support/policies.hpp"
#include "workload/cost/cost_model.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace plimsoll;
using namespace plimsoll::test;

namespace {

/// n GPUs, and what else each of them states.
std::string with_hosts(std::int64_t n, const std::string& processor,
                       const std::string& rate = "2 GFLOP/s") {
  return fmt::format(
      "platform: c\nmemories: {{hbm: {{capacity: unlimited}}}}\nprocessors: {{gpu: {{memory: hbm, "
      "compute: {{bf16: {0}, fp32: {0}}}, {1}power: {{idle: 10 W, active: 30 W}}}}}}\n"
      "cluster: {{count: {2}, topology: switch, link: {{name: l}}}}\n",
      rate, processor, n);
}

Time alone(const Workload& step, const std::string& processor) {
  const Platform platform = platform_of(with_hosts(1, processor));
  return std::get<Played>(played_or_smallest("{name: none, on: gpu0}", step, platform))
      .execution.makespan;
}

/// A task of a pipeline: the forward or the backward of a stage for a microbatch, or its updates.
struct Task {
  std::size_t stage = 0;
  Phase phase = Phase::forward;
  std::uint32_t microbatch = 0;
  std::int64_t operators = 0;
};

/// In the order of each stage.
std::vector<Task> tasks_of(const Played& it, const Workload& workload) {
  std::vector<Task> tasks;
  std::map<std::uint32_t, std::size_t> last;  // by lane
  for (const Step& step : it.plan.steps) {
    if (is_move(step.kind)) continue;
    const Phase phase = workload[step.op].phase;
    const auto stage = static_cast<std::size_t>(it.plan[step.lane].processor);
    const auto before = last.find(index(step.lane));
    const bool goes_on = before != last.end() && tasks[before->second].phase == phase &&
                         tasks[before->second].microbatch == step.microbatch;
    if (!goes_on) {
      last[index(step.lane)] = tasks.size();
      tasks.push_back({stage, phase, step.microbatch, 0});
    }
    ++tasks[last[index(step.lane)]].operators;
  }
  return tasks;
}

}  // namespace

// On one device that copies nothing, a host that issues while operators run is what `host_overhead`
// says in closed form: max over i of i h + d_i + .. + d_n.
TEST_CASE("a host that issues operators: one device") {
  const Workload step = workload_of(megatron(3, 16, 24, 4, true), trained({}));
  const Time slow = alone(step, "");
  for (const char* overhead : {"100 ns", "3 us", "40 us", "900 us"}) {
    CAPTURE(overhead);
    const Time by_host = alone(step, fmt::format("host: {{per_operator: {}}}, ", overhead));
    CHECK(by_host == alone(step, fmt::format("host_overhead: {}, ", overhead)));
    CHECK(by_host > slow);
  }
}

// Where operators take no time, a step takes what its host does: of n_f operators that are no backwards
// and n_b that are, n_f h + n_b h'.
TEST_CASE("a host that issues backwards faster") {
  const Workload step = workload_of(megatron(3, 16, 24, 4, true), trained({}));
  const auto is_backward = [](const Operator& it) {
    return it.phase != Phase::forward && it.phase != Phase::optimizer;
  };
  const auto backwards = std::ranges::count_if(step.operators, is_backward);
  const auto others = static_cast<std::int64_t>(step.operators.size()) - backwards;
  for (const std::int64_t faster : {1, 3}) {
    const Platform platform = platform_of(with_hosts(
        1, fmt::format("host: {{per_operator: 7 s, per_backward: {} s}}, ", faster), "unlimited"));
    const auto it = played_or_smallest("{name: none, on: gpu0}", step, platform);
    CHECK(std::get<Played>(it).execution.makespan == seconds(7 * others + faster * backwards));
  }
}

// Where operators take no time, the tasks of a pipeline of p stages take their operators times h, one
// after the other, and each that reads a message begins to be issued when that is there.
TEST_CASE("a host that waits for messages: closed form") {
  for (const char* policy : {"pipeline/1f1b", "pipeline/gpipe"})
    for (const std::int64_t p : {2, 3})
      for (const std::int64_t m : {1, 2, 5}) {
        const Mesh mesh{.pipeline = p,
                        .policy = fmt::format("{{name: {}, microbatches: {}}}", policy, m)};
        const Workload step = workload_of(megatron(4, 8, 12, 2), trained(mesh));
        const auto run = [&](const char* waits) {
          return played(
              mesh, step,
              platform_of(with_hosts(p, fmt::format("host: {{per_operator: 1 s{}}}, ", waits),
                                     "unlimited")));
        };
        const Played it = run(", waits_for_messages: true");
        std::map<std::pair<std::size_t, std::uint32_t>, Time> forward_end, backward_end;
        std::vector<Time> free(static_cast<std::size_t>(p));
        Time end;
        // By stage in order; a task whose message is not there yet is looked at again.
        std::vector<Task> left = tasks_of(it, step);
        while (!left.empty()) {
          std::vector<Task> later;
          std::vector<bool> is_held(static_cast<std::size_t>(p), false);
          for (const Task& task : left) {
            const bool is_forward = task.phase == Phase::forward;
            const bool is_last = task.stage + 1 == static_cast<std::size_t>(p);
            const bool reads =
                is_forward ? task.stage > 0 : task.phase == Phase::backward && !is_last;
            auto& sent = is_forward ? forward_end : backward_end;
            const auto from =
                sent.find({is_forward ? task.stage - 1 : task.stage + 1, task.microbatch});
            if (is_held[task.stage] || (reads && from == sent.end())) {
              is_held[task.stage] = true;
              later.push_back(task);
              continue;
            }
            Time& now = free[task.stage];
            if (reads) now = std::max(now, from->second);
            now += seconds(task.operators);
            if (task.phase != Phase::optimizer) sent[{task.stage, task.microbatch}] = now;
            end = std::max(end, now);
          }
          REQUIRE(later.size() < left.size());
          left = later;
        }
        CAPTURE(policy, p, m);
        CHECK(it.execution.makespan == end);
        // A host that goes on has issued by then what it can.
        CHECK(run("").execution.makespan <= end);
      }
}

// What the ranks of the tensor axis exchange hides behind a host that goes on issuing meanwhile.
TEST_CASE("a host goes on during collectives") {
  const Mesh mesh{.tensor = 2};
  const Workload step = workload_of(megatron(2, 8, 12, 2, true), trained(mesh));
  const auto run = [&](const std::string& processor, const char* link) {
    std::string platform = with_hosts(2, processor, "unlimited");
    platform.replace(platform.find("{name: l}"), 9, fmt::format("{{name: l, {}}}", link));
    return played(mesh, step, platform_of(platform));
  };
  const Time exchange = run("", "latency: 1 us").execution.makespan;
  const Time issue = run("host: {per_operator: 100 us}, ", "latency: 0 us").execution.makespan;
  const Time both = run("host: {per_operator: 100 us}, ", "latency: 1 us").execution.makespan;
  CHECK(both >= issue);
  CHECK(both < issue + exchange);
}

TEST_CASE("one rank stands for all: hosts") {
  for (const char* waits : {"false", "true"})
    for (const std::int64_t pipeline : {1, 2})
      for (const std::int64_t tensor : {1, 2}) {
        Mesh mesh{.tensor = tensor, .data = 2, .pipeline = pipeline, .play = "all"};
        if (pipeline > 1) mesh.policy = "{name: pipeline/1f1b, microbatches: 3}";
        const Workload step = workload_of(megatron(2, 8, 12, 2, true), trained(mesh));
        std::string text = with_hosts(
            mesh.ranks(),
            fmt::format("host: {{per_operator: 5 us, waits_for_messages: {}}}, ", waits));
        text.replace(text.find("{name: l}"), 9, "{name: l, bandwidth: 1 GB/s, latency: 2 us}");
        const Played all = played(mesh, step, platform_of(text));
        mesh.play = "once";
        CAPTURE(waits, pipeline, tensor);
        require_same_figures(played(mesh, step, platform_of(text)), all);
      }
}
