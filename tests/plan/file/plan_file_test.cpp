#include "plan/file/plan_file.hpp"

#include "plan/check/plan_checker.hpp"
#include "plan/small_chain.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <tuple>

#include <catch2/catch.hpp>

using namespace plimsoll;
using namespace plimsoll::test;

namespace {

/// What a plan says, without the places of its lists in the pools. Dependencies after ends come
/// first.
auto content(const Plan& plan) {
  std::vector<std::tuple<Lane::Kind, ProcessorId, std::uint32_t, MemoryId, MemoryId>> lanes;
  for (const Lane& l : plan.lanes) lanes.emplace_back(l.kind, l.processor, l.stream, l.from, l.to);
  std::vector<std::tuple<TensorId, std::uint32_t, std::uint32_t, MemoryId, std::optional<Bytes>>>
      buffers;
  for (const Buffer& b : plan.buffers)
    buffers.emplace_back(b.tensor, b.microbatch, b.instance, b.memory, b.offset);
  std::vector<std::tuple<MemoryId, Bytes, bool>> arenas;
  for (const PlanArena& a : plan.arenas) arenas.emplace_back(a.memory, a.alignment, a.has_offsets);
  using Ids = std::vector<BufferId>;
  using After = std::vector<std::pair<Dependency::Edge, StepId>>;
  std::vector<std::tuple<StepKind, Form, Form, SourceRelease, LaneId, OperatorId, OperatorId,
                         std::uint32_t, std::uint32_t, std::uint32_t, std::optional<Time>,
                         std::optional<Bytes>, Ids, Ids, After>>
      steps;
  for (const Step& s : plan.steps) {
    const auto reads = plan.list(s.reads), writes = plan.list(s.writes);
    After after;
    for (const Dependency& d : plan.after(s)) after.emplace_back(d.edge, d.on);
    std::ranges::stable_sort(after, {}, &After::value_type::first);
    steps.emplace_back(s.kind, s.form, s.second_form, s.source, s.lane, s.op, s.second,
                       s.microbatch, s.second_microbatch, s.instance, s.duration,
                       s.workspace_offset, Ids(reads.begin(), reads.end()),
                       Ids(writes.begin(), writes.end()), after);
  }
  std::vector<std::pair<BufferId, std::vector<StepId>>> releases;
  for (const Release& r : plan.releases) {
    const auto after = plan.after(r);
    releases.emplace_back(r.buffer, std::vector<StepId>(after.begin(), after.end()));
  }
  return std::tuple(plan.policy, plan.microbatches, lanes, buffers, plan.initial, steps, releases,
                    plan.ordered_grants, plan.limits, arenas, plan.steady_from_microbatch,
                    plan.steady_until_microbatch, plan.mini_batch);
}

auto estimates(const Plan& plan) {
  return std::tuple(plan.claims.makespan, plan.claims.period, plan.claims.peak, plan.claims.energy,
                    plan.claims.in_flight, plan.claims.model_makespan, plan.claims.model_period,
                    plan.claims.model_peak, plan.claims.optimal, plan.claims.chosen,
                    plan.claims.left_out, plan.bounds.makespan, plan.bounds.period,
                    plan.bounds.peak, plan.bounds.energy);
}

const Workload kShortChain = small_chain(2);
const Platform kFileMachine = small_machine();

/// What the text of a plan is refused with.
std::string refusal(const std::string& bytes, PlanForm form = PlanForm::json,
                    const Workload& workload = kShortChain) {
  try {
    (void)parse_plan(bytes, form, "a.plan", workload, kFileMachine);
  } catch (const InputError& e) {
    return e.what();
  }
  return "(accepted)";
}

/// s1 and s2 forth and back in JSON, as in the head of plan.proto; `old` replaced by `now`.
std::string good_json(const std::string& old = {}, const std::string& now = {}) {
  std::string text = R"({
  "policy": "by hand", "microbatches": 1,
  "lanes": [{"stream": {"processor": "gpu"}},
            {"channel": {"from_memory": "hbm", "to_memory": "dram"}}],
  "buffers": [
    {"tensor": "input", "memory": "hbm"},
    {"tensor": "s1.output", "memory": "hbm"},
    {"tensor": "s2.saved", "memory": "hbm"},
    {"tensor": "s1.gradient", "memory": "hbm"},
    {"tensor": "s2.gradient", "memory": "hbm"},
    {"tensor": "s1.saved", "memory": "hbm", "instance": 1},
    {"tensor": "input.gradient", "memory": "hbm"}],
  "initial_buffers": [0],
  "steps": [
    {"lane": 0, "compute": {"op": "s1.forward", "form": "FORM_BARE"}, "reads": [0], "writes": [1]},
    {"lane": 0, "compute": {"op": "s2.forward"}, "reads": [1], "writes": [2]},
    {"lane": 0, "compute": {"op": "s2.backward"}, "reads": [2, 1], "writes": [3, 4]},
    {"lane": 0, "compute": {"op": "s1.forward"}, "reads": [0], "writes": [5], "instance": 1},
    {"lane": 0, "compute": {"op": "s1.backward"}, "reads": [3, 5, 0], "writes": [6]}],
  "releases": [{"buffer": 1, "after": [2]}, {"buffer": 2, "after": [2]}, {"buffer": 4, "after": [2]},
               {"buffer": 3, "after": [4]}, {"buffer": 5, "after": [4]}]
})";
  if (const auto at = text.find(old); !old.empty()) {
    REQUIRE(at != std::string::npos);
    text.replace(at, old.size(), now);
  }
  return text;
}

/// The messages without their places, which all must have.
std::string without_places(const std::string& messages) {
  static const std::regex kPlace("a\\.plan:[1-9][0-9]*:[1-9][0-9]*: ");
  std::istringstream lines(messages);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK((line == "(accepted)" || std::regex_search(line, kPlace)));
    text += (text.empty() ? "" : "\n") + std::regex_replace(line, kPlace, "a.plan: ");
  }
  return text;
}

std::string refusal_of(const std::string& old, const std::string& now) {
  return without_places(refusal(good_json(old, now)));
}

std::string file_refusal(const std::filesystem::path& path) {
  try {
    (void)read_plan(path, kShortChain, kFileMachine);
  } catch (const InputError& e) {
    return std::string(e.what()).substr(path.parent_path().string().size() + 1);
  }
  return "(accepted)";
}

}  // namespace

TEST_CASE("a list of more steps than there are names each of them once", "[plan_file]") {
  // Step 4 waits 2,000 times for one of the steps 0 to 3. A shorter list stays as it is written.
  std::string many = "0";
  for (int i = 1; i < 2000; ++i) many += ", " + std::to_string(i % 4);
  const std::string last = R"({"lane": 0, "compute": {"op": "s1.backward"},)";
  const Plan plan = parse_plan(good_json(last, last + R"( "after_end": [)" + many + "],"),
                               PlanForm::json, "a.plan", kShortChain, kFileMachine);
  std::vector<StepId> waited_for;
  for (const Dependency& it : plan.after(plan.steps[4])) waited_for.push_back(it.on);
  CHECK(waited_for == std::vector{StepId{0}, StepId{1}, StepId{2}, StepId{3}});
  const Plan few = parse_plan(good_json(last, last + R"( "after_end": [1, 0, 1],)"), PlanForm::json,
                              "a.plan", kShortChain, kFileMachine);
  CHECK(few.after(few.steps[4]).size() == 3);
}

TEST_CASE("random plans come back from a file as they were, and are still good", "[plan_file]") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const int stages = 1 + static_cast<int>(seed % 7);
    const Workload workload =
        seed % 2 == 0 ? small_chain(stages) : small_chain(stages, Bytes{100}, Optimizer::adam);
    const Plan plan = RandomPlan(workload, kFileMachine, stages, seed).make();
    const Topology topology(kFileMachine);
    REQUIRE(check_plan(plan, workload, kFileMachine, topology) == std::vector<std::string>{});
    for (const PlanForm form : {PlanForm::binary, PlanForm::json}) {
      const std::string bytes = to_bytes(plan, form, workload, kFileMachine);
      CHECK(bytes == to_bytes(plan, form, workload, kFileMachine));
      const Plan back = parse_plan(bytes, form, "plan", workload, kFileMachine);
      REQUIRE(content(back) == content(plan));
      CHECK(to_bytes(back, form, workload, kFileMachine) == bytes);
      CHECK(check_plan(back, workload, kFileMachine, topology) == std::vector<std::string>{});
    }
  }
}

TEST_CASE("a pair, claims, bounds and a steady interval come back", "[plan_file]") {
  PlanBuilder builder(kShortChain, kFileMachine, "pair \"of\" \n two");
  const LaneId gpu = builder.stream(ProcessorId{0}, 1);
  const auto op = [&](const char* name) { return find_operator(kShortChain, name); };
  builder.compute(gpu, op("s1.forward"), 0);
  builder.compute(gpu, op("s2.forward"), 0);
  builder.pair(gpu, {op("s2.backward"), 0}, {op("s1.forward"), 1, Form::bare}, Time{1'500'000'000});
  builder.compute(gpu, op("s1.backward"), 0);
  builder.compute(gpu, op("s2.forward"), 1);
  builder.compute(gpu, op("s2.backward"), 1);
  builder.compute(gpu, op("s1.forward"), 1);
  builder.compute(gpu, op("s1.backward"), 1, Form::keep, Time{7});
  Plan plan = builder.finish();
  plan.steady_from_microbatch = 0;
  plan.steady_until_microbatch = 1;
  plan.mini_batch = 6;
  plan.limits = {{kHbm, Bytes{9 << 20}}, {kDram, Bytes{1 << 20}}};
  plan.arenas = {{kHbm, Bytes{512}, true}, {kDram, Bytes{1}, false}};
  plan.buffers[1].offset = Bytes{512};
  plan.steps[0].workspace_offset = Bytes{0};
  plan.claims = {.makespan = Time{8'500'000'000},
                 .period = Time{0},
                 .peak = {{kHbm, Bytes{9 << 20}}, {kDisk, Bytes{0}}},
                 // Above 64 bits: 2^100.
                 .energy = Energy{Energy::Count{1} << 100},
                 .in_flight = {2, -1},
                 .model_makespan = Time{6},
                 .model_period = Time{7},
                 .model_peak = {{kHbm, Bytes{5}}},
                 .optimal = false,
                 .chosen = "remat/rotor",
                 .left_out = {{"offload/exact", "no memory is linked"}, {"", ""}}};
  plan.bounds = {.makespan = Time{1},
                 .period = std::nullopt,
                 .peak = {{kDram, Bytes{7}}},
                 .energy = Energy{Energy::Count{1} << 90}};
  for (const PlanForm form : {PlanForm::binary, PlanForm::json}) {
    const Plan back = parse_plan(to_bytes(plan, form, kShortChain, kFileMachine), form, "plan",
                                 kShortChain, kFileMachine);
    CHECK(content(back) == content(plan));
    CHECK(estimates(back) == estimates(plan));
  }
  // 2^100 in decimal digits.
  CHECK(to_bytes(plan, PlanForm::json, kShortChain, kFileMachine)
            .find(R"("energy_zj": "1267650600228229401496703205376")") != std::string::npos);
}

TEST_CASE("the example in the head of plan.proto is a good plan", "[plan_file]") {
  const Plan plan = parse_plan(good_json(), PlanForm::json, "example", kShortChain, kFileMachine);
  CHECK(check_plan(plan, kShortChain, kFileMachine, Topology(kFileMachine)) ==
        std::vector<std::string>{});
  // What the builder makes of the same decisions.
  PlanBuilder builder(kShortChain, kFileMachine, "by hand");
  const LaneId gpu = builder.stream(ProcessorId{0});
  builder.channel(kHbm, kDram);
  const auto op = [&](const char* name) { return find_operator(kShortChain, name); };
  builder.compute(gpu, op("s1.forward"), 0, Form::bare);
  builder.compute(gpu, op("s2.forward"));
  builder.compute(gpu, op("s2.backward"));
  builder.compute(gpu, op("s1.forward"));
  builder.compute(gpu, op("s1.backward"));
  const Plan built = builder.finish();
  CHECK(std::get<5>(content(plan)) == std::get<5>(content(built)));
}

TEST_CASE("parts that share a name are told apart by their order", "[plan_file]") {
  // The stage `input` leaves the tensor `input.gradient`, and so does the chain's input.
  ChainSpec chain;
  chain.name = "twins";
  StageSpec stage;
  stage.name = "input";
  stage.backward = Time{1};
  chain.stages.push_back(stage);
  const Workload twins = build(chain, WorkloadOptions{});
  PlanBuilder builder(twins, kFileMachine, "twins");
  const LaneId gpu = builder.stream(ProcessorId{0});
  builder.compute(gpu, find_operator(twins, "input.forward"));
  builder.compute(gpu, find_operator(twins, "input.backward"));
  const Plan plan = builder.finish();
  const std::string bytes = to_bytes(plan, PlanForm::json, twins, kFileMachine);
  CHECK(content(parse_plan(bytes, PlanForm::json, "plan", twins, kFileMachine)) == content(plan));

  std::string without = bytes;
  const std::string second = R"("tensor_occurrence": 1,)";
  REQUIRE(without.find(second) != std::string::npos);
  without.erase(without.find(second), second.size());
  // Buffers: input, input.saved, then the backward's: delta_0 and delta_1.
  CHECK(without_places(refusal(without, PlanForm::json, twins)) ==
        "a.plan: error: buffers[3]: 2 tensors have the name `input.gradient`; `tensor_occurrence` "
        "says which, from 0");
}

TEST_CASE("names that are not there are refused with the nearest", "[plan_file]") {
  CHECK(
      refusal_of("s2.forward", "s2.forwrad") ==
      "a.plan: error: steps[1].compute: unknown operator `s2.forwrad`; did you mean `s2.forward`?");
  CHECK(refusal_of("s2.saved", "s2.save") ==
        "a.plan: error: buffers[2]: unknown tensor `s2.save`; did you mean `s2.saved`?");
  CHECK(refusal_of("dram", "drma") ==
        "a.plan: error: lanes[1].channel.to_memory: unknown memory `drma`; did you mean `dram`?");
  CHECK(refusal_of("gpu", "tpu") ==
        "a.plan: error: lanes[0].stream: unknown processor `tpu`; did you mean `gpu`?");
  CHECK(refusal_of(R"("op": "s2.forward")", "") ==
        "a.plan: error: steps[1].compute: names no operator");
  CHECK(refusal_of(R"("tensor": "s2.saved")", R"("tensor": "s2.saved", "tensor_occurrence": 1)") ==
        "a.plan: error: buffers[2]: only one tensor has the name `s2.saved`; `tensor_occurrence` "
        "says which, from 0");
}

TEST_CASE("indices beyond their lists are refused", "[plan_file]") {
  CHECK(refusal_of(R"("reads": [1])", R"("reads": [7])") ==
        "a.plan: error: steps[1].reads: there is no buffer 7; the plan has 7, counted from 0");
  CHECK(refusal_of(R"("writes": [2])", R"("writes": [4294967295])") ==
        "a.plan: error: steps[1].writes: there is no buffer 4294967295; the plan has 7, counted "
        "from 0");
  CHECK(refusal_of(R"("lane": 0)", R"("lane": 2)") ==
        "a.plan: error: steps[0]: there is no lane 2; the plan has 2, counted from 0");
  CHECK(refusal_of(R"("initial_buffers": [0])", R"("initial_buffers": [0, 9])") ==
        "a.plan: error: initial_buffers: there is no buffer 9; the plan has 7, counted from 0");
  CHECK(refusal_of(R"("lane": 0,)", R"("lane": 0, "after_end": [5], "after_start": [6],)") ==
        "a.plan: error: steps[0].after_end: there is no step 5; the plan has 5, counted from 0\n"
        "a.plan: error: steps[0].after_start: there is no step 6; the plan has 5, counted from 0");
  CHECK(refusal_of(R"({"buffer": 1, "after": [2]})", R"({"buffer": 8, "after": [5]})") ==
        "a.plan: error: releases[0]: there is no buffer 8; the plan has 7, counted from 0\n"
        "a.plan: error: releases[0].after: there is no step 5; the plan has 5, counted from 0");
  CHECK(refusal_of(R"("instance": 1},)", R"("microbatch": 1},)") ==
        "a.plan: error: buffers[5]: there is no microbatch 1; the plan has 1, counted from 0");
}

TEST_CASE("what is left out or makes no sense is refused", "[plan_file]") {
  CHECK(refusal_of(R"("lane": 0,)", "") == "a.plan: error: steps[0]: names no lane");
  CHECK(refusal_of(R"("compute": {"op": "s2.forward"},)", "") ==
        "a.plan: error: steps[1]: is neither compute nor pair nor copy nor reduce");
  CHECK(refusal_of(R"({"stream": {"processor": "gpu"}})", "{}") ==
        "a.plan: error: lanes[0]: is neither a stream nor a channel");
  CHECK(refusal_of(R"("buffer": 1,)", "") == "a.plan: error: releases[0]: names no buffer");
  CHECK(refusal_of(R"("compute": {"op": "s2.forward"},)", R"("copy": {},)") ==
        "a.plan: error: steps[1].copy.source: expected KEEP, WHOLE or PROGRESSIVE");
  CHECK(refusal_of(R"("compute": {"op": "s2.backward"},)",
                   R"("copy": {"source": "SOURCE_RELEASE_WHOLE"},)") ==
        "a.plan: error: steps[2]: a copy reads one buffer and writes one, not 2 and 2");
  CHECK(refusal_of(R"("compute": {"op": "s1.forward"},)",
                   R"("copy": {"source": "SOURCE_RELEASE_WHOLE"},)") ==
        "a.plan: error: steps[3]: a copy has the instance of the buffer that it writes");
  CHECK(refusal_of(R"("compute": {"op": "s2.forward"},)",
                   R"("pair": {"first": {"op": "s2.forward"}, "second": {"op": "s2.forward"},
                               "duration_ps": -1},)") ==
        "a.plan: error: steps[1].pair.duration_ps: is -1; expected 0 to 9223372036854775806");
  CHECK(refusal_of(R"("compute": {"op": "s2.forward"},)",
                   R"("compute": {"op": "s2.forward"}, "duration_ps": -1,)") ==
        "a.plan: error: steps[1].duration_ps: is -1; expected 0 to 9223372036854775806");
  CHECK(refusal_of(R"("compute": {"op": "s2.forward"},)",
                   R"("pair": {"first": {"op": "s2.forward"}, "second": {"op": "s2.forward"}},
                      "duration_ps": 1,)") ==
        "a.plan: error: steps[1].duration_ps: is of a compute alone");
  CHECK(refusal_of(R"("FORM_BARE")", "7") == "a.plan: error: steps[0].compute: unknown form 7");
}

TEST_CASE("counts of microbatches are held to the plan", "[plan_file]") {
  CHECK(refusal_of(R"("microbatches": 1,)", "") ==
        "a.plan: error: microbatches: is 0 or left out; a plan has at least 1");
  // 4 operators, 5 steps of at most two operators each: 10 runs, 12 are needed.
  CHECK(
      refusal_of(R"("microbatches": 1,)", R"("microbatches": 3,)") ==
      "a.plan: error: microbatches: 4 operators for each of 3 microbatches cannot run in 5 steps");
  // Two microbatches have one interval: from the first on.
  const std::string two = R"("microbatches": 2, "steady_from_microbatch": )";
  CHECK(refusal_of(R"("microbatches": 1,)", two + "0,") == "(accepted)");
  CHECK(refusal_of(R"("microbatches": 1,)", two + "1,") ==
        "a.plan: error: steady_from_microbatch: is 1; with 2 microbatches no interval is steady");
  CHECK(refusal_of(R"("microbatches": 1,)", two + R"(0, "steady_until_microbatch": 1,)") ==
        "(accepted)");
  for (const char* until : {"0", "2"})
    CHECK(refusal_of(R"("microbatches": 1,)",
                     two + R"(0, "steady_until_microbatch": )" + until + ",") ==
          "a.plan: error: steady_until_microbatch: is " + std::string(until) +
              "; expected one of 2 microbatches, after `steady_from_microbatch`");
  const auto mini_batch = [](int count) {
    return R"("policy": "by hand", "mini_batch_microbatches": )" + std::to_string(count) + ",";
  };
  CHECK(refusal_of(R"("policy": "by hand",)", mini_batch(6)) == "(accepted)");
  CHECK(refusal_of(R"("policy": "by hand",)", mini_batch(0)) ==
        "a.plan: error: mini_batch_microbatches: is 0; a mini-batch has at least 1");
}

TEST_CASE("claims and bounds are counts", "[plan_file]") {
  const auto claim = [](const std::string& text) {
    return refusal_of(R"("policy": "by hand",)", text + ',');
  };
  CHECK(claim(R"("claims": {"makespan_ps": -5})") ==
        "a.plan: error: claims.makespan_ps: is -5; expected 0 to 9223372036854775806");
  // The greatest of all integers means `unlimited` inside.
  CHECK(claim(R"("bounds": {"period_ps": "9223372036854775807"})") ==
        "a.plan: error: bounds.period_ps: is 9223372036854775807; expected 0 to "
        "9223372036854775806");
  CHECK(claim(R"("claims": {"peak": [{"memory": "hbm", "peak_bytes": -1}]})") ==
        "a.plan: error: claims.peak: is -1; expected 0 to 9223372036854775806");
  CHECK(claim(R"("claims": {"energy_zj": "1e9"})") ==
        "a.plan: error: claims.energy_zj: `1e9` is not an integer of at most 38 decimal digits");
  CHECK(claim(R"("bounds": {"energy_zj": "-1"})") ==
        "a.plan: error: bounds.energy_zj: `-1` is not an integer of at most 38 decimal digits");
  CHECK(claim(R"("ordered_grants": ["hbm2"])") ==
        "a.plan: error: ordered_grants: unknown memory `hbm2`; did you mean `hbm`?");
}

TEST_CASE("text that is not a plan in JSON is refused where it ends to be one", "[plan_file]") {
  CHECK(refusal("") == "a.plan: error: is empty, expected a plan");
  CHECK(refusal("{\n  \"policy\": nope}") == "a.plan:2:14: error: is not JSON from `ope}` on");
  CHECK(refusal("{\"policy\": \"x\"") ==
        "a.plan:1:15: error: the text ends in the middle of the plan");
  CHECK(refusal_of(R"("policy")", R"("polizy")") ==
        "a.plan: error: unknown key `polizy`; did you mean `policy`?");
  CHECK(refusal_of(R"("form")", R"("from")") ==
        "a.plan: error: steps[0].compute: unknown key `from`; did you mean `form`?");
  CHECK(refusal_of(R"("instance": 1},)", R"("memory": "hbm"},)") ==
        "a.plan: error: buffers[5]: the key `memory` is repeated");
  CHECK(refusal(std::string(100'000, '[')) ==
        "a.plan:1:17: error: is nested deeper than 16 levels");
  // Kinds of values are protobuf's to refuse, in its own words.
  CHECK(refusal_of(R"("lane": 0)", R"("lane": "x")")
            .starts_with("a.plan: error: is not a plan in the JSON form of plan.proto: "));
  CHECK(refusal("[]").starts_with("a.plan:1:1: error: is not a plan in the JSON form"));
}

TEST_CASE("what is wrong in JSON is told where it is written", "[plan_file]") {
  const auto refused = [](const std::string& old, const std::string& now) {
    return refusal(good_json(old, now));
  };
  // The lines of good_json(): lanes from 3, buffers from 6, steps from 15. A key is where its quote
  // is, an item of a list where its brace is, a number in a list where it begins.
  CHECK(refused("s2.forward", "s2.forwrad").starts_with("a.plan:16:17: error: steps[1].compute: "));
  CHECK(refused("dram", "drma").starts_with("a.plan:4:48: error: lanes[1].channel.to_memory: "));
  CHECK(refused("s2.saved", "s2.save").starts_with("a.plan:8:5: error: buffers[2]: "));
  CHECK(refused(R"("initial_buffers": [0])", R"("initial_buffers": [0, 9])")
            .starts_with("a.plan:13:3: error: initial_buffers: "));
  CHECK(refused(R"("form")", R"("from")").starts_with("a.plan:15:49: error: "));
  // What is not written is told where its surroundings begin; camel case is the same key.
  CHECK(refused(R"("microbatches": 1,)", "").starts_with("a.plan:1:1: error: microbatches: "));
  CHECK(refused(R"("initial_buffers": [0])", R"("initialBuffers": [9])")
            .starts_with("a.plan:13:3: error: initial_buffers: "));
  // protobuf says which part it cannot read.
  CHECK(refused(R"("lane": 0)", R"("lane": "x")").starts_with("a.plan:15:6: error: "));
  // In the order of the text.
  CHECK(refused(R"({"buffer": 1, "after": [2]})", R"({"after": [5], "buffer": 8})") ==
        "a.plan:20:16: error: releases[0]: there is no buffer 8; the plan has 7, counted from 0\n"
        "a.plan:20:17: error: releases[0].after: there is no step 5; the plan has 5, counted from "
        "0");
}

TEST_CASE("bytes that are not a plan are refused", "[plan_file]") {
  const Plan plan = parse_plan(good_json(), PlanForm::json, "example", kShortChain, kFileMachine);
  const std::string bytes = to_bytes(plan, PlanForm::binary, kShortChain, kFileMachine);
  REQUIRE(refusal(bytes, PlanForm::binary) == "(accepted)");

  const std::string nonsense =
      "a.plan: error: is not a plan in the binary form of plan.proto, or is cut off";
  // Cut inside the last release, whose length says more.
  CHECK(refusal(bytes.substr(0, bytes.size() - 1), PlanForm::binary) == nonsense);
  CHECK(refusal("a plan, so to speak", PlanForm::binary) == nonsense);
  // Field 100, a varint: tag 100 << 3 | 0 = 800 = A0 06.
  CHECK(refusal(bytes + "\xA0\x06\x01", PlanForm::binary) ==
        "a.plan: error: has fields that plan.proto does not have: not a plan, or a newer one");
  // Wherever it is cut: one error, never a crash; whole parts may be missing without a trace.
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const std::string text = refusal(bytes.substr(0, length), PlanForm::binary);
    CHECK((text.starts_with("a.plan: error: ") || text == "(accepted)"));
  }
  std::mt19937_64 random(20);
  for (int i = 0; i < 2000; ++i) {
    std::string mutated = bytes;
    for (int k = 0; k < 3; ++k) mutated[random() % mutated.size()] = static_cast<char>(random());
    const std::string text = refusal(mutated, PlanForm::binary);
    CHECK((text.starts_with("a.plan: error: ") || text == "(accepted)"));
  }
}

TEST_CASE("two bytes that become a message are counted before they do", "[plan_file]") {
  // 32 000 001 empty lanes: tag 3 << 3 | 2 = 1A, length 0.
  std::string lanes(2 * 32'000'001, '\0');
  for (std::size_t i = 0; i < lanes.size(); i += 2) lanes[i] = '\x1A';
  CHECK(refusal(lanes, PlanForm::binary) == "a.plan: error: has more than 32000000 parts");
}

TEST_CASE("a hundred errors are listed, the rest counted", "[plan_file]") {
  std::string reads = "[1000";
  for (int i = 1001; i < 1150; ++i) reads += ',' + std::to_string(i);
  const std::string text = refusal_of(R"("reads": [1])", R"("reads": )" + reads + "]");
  CHECK(std::ranges::count(text, '\n') == 99);
}

TEST_CASE("plans are written whole, under the name that was asked for", "[plan_file]") {
  const test::TemporaryFolder folder;
  const Plan plan = parse_plan(good_json(), PlanForm::json, "example", kShortChain, kFileMachine);
  for (const char* name : {"a.json", "a.pb", "a.bin", "a.json"}) {
    write_plan(plan, kShortChain, kFileMachine, folder / name);
    CHECK(content(read_plan(folder / name, kShortChain, kFileMachine)) == content(plan));
  }
  std::vector<std::string> names = folder.names();
  std::ranges::sort(names);
  CHECK(names == std::vector<std::string>{"a.bin", "a.json", "a.pb"});
  std::ifstream file(folder / "a.json");
  const std::string json(std::istreambuf_iterator<char>(file), {});
  CHECK(json == to_bytes(plan, PlanForm::json, kShortChain, kFileMachine));
}

TEST_CASE("a plan that cannot be written leaves nothing behind", "[plan_file]") {
  const test::TemporaryFolder folder;
  const Plan plan = parse_plan(good_json(), PlanForm::json, "example", kShortChain, kFileMachine);
  const auto refused = [&](const char* name) {
    const std::filesystem::path path = folder / name;
    try {
      write_plan(plan, kShortChain, kFileMachine, path);
    } catch (const InputError& e) {
      return std::string(e.what()).substr((folder / "").string().size());
    }
    return std::string("(written)");
  };
  CHECK(refused("plan.yaml") == "plan.yaml: error: a plan is a file `*.json`, `*.pb` or `*.bin`");
  CHECK(refused("none/plan.json") ==
        "none/plan.json: error: cannot be written: No such file or directory");
  std::filesystem::create_directory(folder / "taken.json");
  CHECK(refused("taken.json") == "taken.json: error: cannot be written: Is a directory");
  CHECK(folder.names() == std::vector<std::string>{"taken.json"});
}

TEST_CASE("files that cannot be plans are refused before they are read", "[plan_file]") {
  const test::TemporaryFolder folder;
  CHECK(file_refusal(folder / "none.json") == "none.json: error: there is no such file");
  CHECK(file_refusal(folder / "plan") ==
        "plan: error: a plan is a file `*.json`, `*.pb` or `*.bin`");
  std::filesystem::create_directory(folder / "folder.pb");
  CHECK(file_refusal(folder / "folder.pb") == "folder.pb: error: is a directory, expected a file");
  folder.write("large.pb", "");
  // A file with a hole: 256 MiB + 1, none of it on the disk.
  std::filesystem::resize_file(folder / "large.pb", 268'435'457);
  CHECK(file_refusal(folder / "large.pb") ==
        "large.pb: error: has 268435457 bytes; plans of more than 268435456 bytes are not read");
}
