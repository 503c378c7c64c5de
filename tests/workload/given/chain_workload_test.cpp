#include "workload/given/chain_workload.hpp"

#include "workload/workload_text.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;
using Catch::Matchers::Contains;

namespace {

const std::string kTwoStages = R"(
workload: toy
input: 1 MiB
chain:
  - {name: s1, forward: 10 ms, backward: 20 ms, output: 1 MiB, saved: 6 MiB}
  - {name: s2, forward: 5 ms, backward_input: 4 ms, backward_weight: 3 ms, output: 2 MiB, saved: 4 MiB,
     held_for_weight_gradient: 1 MiB, gradient: 3 MiB, parameters: 5 MiB, forward_workspace: 7 B,
     backward_workspace: 8 B, energy: {forward: 1 mJ, backward: 2 mJ}}
)";

std::string stage_error(const std::string& stage) {
  return error_of("workload: w\nchain:\n  - " + stage + "\n");
}

constexpr std::int64_t kMiB = 1 << 20;

}  // namespace

TEST_CASE("a chain reads and makes what the model says") {
  const Workload chain = build_text(kTwoStages);
  REQUIRE(chain.is_chain);
  REQUIRE(chain.operators.size() == 4);
  CHECK(chain.forwards == 2);
  CHECK(chain.optimizer_begin == 4);

  const Operator& f1 = chain.operators[0];
  CHECK(names(chain, f1.reads) == "input");
  CHECK(names(chain, f1.kept) == "s1.saved");
  CHECK(names(chain, f1.bare) == "s1.output");
  CHECK(chain[chain[chain.list(f1.bare)[0]].inside].name == "s1.saved");

  const Operator& f2 = chain.operators[1];
  CHECK(names(chain, f2.reads) == "s1.output s2.parameters");
  CHECK(f2.workspace == Bytes{7});
  CHECK(f2.given_energy == parse_quantity<Energy>("1 mJ").value);

  // The last backward makes delta_L itself, and the gradient buffer of its parameters.
  const Operator& b2 = chain.operators[2];
  CHECK(b2.phase == Phase::backward);
  CHECK(names(chain, b2.reads) == "s2.saved s1.output s2.parameters");
  CHECK(names(chain, b2.kept) == "s1.gradient s2.gradient s2.parameters.gradient");
  CHECK(chain[chain.list(b2.kept)[1]].bytes == Bytes{3 * kMiB});
  CHECK(chain[chain.list(b2.kept)[2]].lifetime == Lifetime::accumulated);
  CHECK(b2.given_time == Time{7'000'000'000});  // 4 ms + 3 ms
  CHECK(b2.workspace == Bytes{8});

  const Operator& b1 = chain.operators[3];
  CHECK(names(chain, b1.reads) == "s1.gradient s1.saved input");
  CHECK(names(chain, b1.kept) == "input.gradient");
  CHECK(chain[chain.list(b1.kept)[0]].lifetime == Lifetime::stays);
  CHECK(chain.saved_bytes == Bytes{10 * kMiB});
  CHECK(chain.parameter_bytes == Bytes{5 * kMiB});
}

TEST_CASE("a split backward keeps the held part for its second half") {
  const std::string text =
      "workload: w\nchain:\n"
      "  - {name: s, forward: 1 s, backward_input: 2 s, backward_weight: 3 s, saved: 10 B, "
      "held_for_weight_gradient: 4 B, parameters: 6 B}\n";
  const Workload chain = build_text(text, {.split_backward = true});
  REQUIRE(chain.operators.size() == 3);
  CHECK(names(chain, chain.operators[0].kept) == "s.saved s.held");
  CHECK(chain[chain.list(chain.operators[0].kept)[0]].bytes == Bytes{6});
  CHECK(chain.operators[1].phase == Phase::backward_input);
  CHECK(chain.operators[1].given_time == Time{2'000'000'000'000});
  CHECK(names(chain, chain.operators[1].reads) == "s.saved s.held input s.parameters");
  CHECK(names(chain, chain.operators[1].kept) == "input.gradient s.gradient");
  CHECK(chain.operators[2].phase == Phase::backward_weight);
  CHECK(names(chain, chain.operators[2].reads) == "s.held");
  CHECK(names(chain, chain.operators[2].kept) == "s.parameters.gradient");
  CHECK(chain.saved_bytes == Bytes{10});
  CHECK_THAT(error_of(kTwoStages, {.split_backward = true}),
             Contains("test.yaml:5:5") && Contains("gives only `backward`"));
}

TEST_CASE("optimizer state comes with an optimizer only, the batch from file or scenario") {
  const auto state = [](Optimizer optimizer) {
    const Workload chain = build_text(kTwoStages, {.optimizer = optimizer});
    Bytes sum;
    for (const Tensor& tensor : chain.tensors)
      if (tensor.tensor_class == TensorClass::optimizer_state) sum += tensor.bytes;
    return sum.count() / kMiB;
  };
  CHECK(state(Optimizer::none) == 0);
  CHECK(state(Optimizer::sgd) == 0);
  CHECK(state(Optimizer::sgd_momentum) == 5);
  CHECK(state(Optimizer::adamw) == 10);
  CHECK(build_text(kTwoStages).batch == 1);
  CHECK(build_text(kTwoStages + "batch: 8\n").batch == 8);
  const Workload chain = build_text(kTwoStages + "batch: 8\n", {.batch = 16, .microbatch = 4});
  CHECK(chain.batch == 16);
  CHECK(chain.microbatch == 4);
}

TEST_CASE("an optimizer's step reads the gradient and changes parameters and state") {
  const Workload chain = build_text(
      "workload: w\noptimizer: adam\nstep_overhead: 7 s\nchain:\n"
      "  - {name: a, forward: 1 s, backward: 1 s, saved: 1 B, parameters: 6 B, "
      "optimizer_step: 2 s}\n"
      "  - {name: b, forward: 1 s, backward: 1 s, saved: 1 B, optimizer_step: 3 s}\n"
      "  - {name: c, forward: 1 s, backward: 1 s, saved: 1 B, parameters: 6 B}\n");
  REQUIRE(chain.operators.size() == chain.optimizer_begin + 3);
  const Operator& a = chain.operators[chain.optimizer_begin];
  CHECK(a.name == "a.update");
  CHECK(a.phase == Phase::optimizer);
  CHECK(a.given_time == Time{2'000'000'000'000});
  CHECK(names(chain, a.reads) == "a.parameters.gradient a.parameters a.optimizer_state");
  CHECK(names(chain, a.updates) == "a.parameters a.optimizer_state");
  // Parameters of no bytes, so that it waits for the stage's last backward.
  const Operator& b = chain.operators[chain.optimizer_begin + 1];
  CHECK(names(chain, b.reads).starts_with("b.parameters.gradient"));
  CHECK(chain.parameter_bytes == Bytes{12});
  // The host comes last, and reads nothing.
  const Operator& host = chain.operators.back();
  CHECK(host.phase == Phase::optimizer);
  CHECK(host.given_time == Time{7'000'000'000'000});
  CHECK(names(chain, host.reads).empty());
  // A scenario's word counts before the file's.
  CHECK(build_text(kTwoStages, {.step_overhead = Time{5}}).operators.back().given_time == Time{5});
  CHECK(build_text(kTwoStages, {.step_overhead = Time{}}).operators.size() == 4);
}

TEST_CASE("stages that contradict themselves are refused with their place") {
  CHECK_THAT(stage_error("{name: s, forward: 1 s, backward: 1 s, output: 2 B, saved: 1 B}"),
             Contains("test.yaml:3:5") && Contains("saved (1 B) is less than output (2 B)"));
  CHECK_THAT(stage_error("{name: s, forward: 1 s, saved: 1 B}"), Contains("no backward"));
  CHECK_THAT(stage_error("{name: s, forward: 1 s, backward_input: 1 s, saved: 1 B}"),
             Contains("`backward_input` without `backward_weight`"));
  CHECK_THAT(stage_error("{name: s, forward: 1 s, backward: 1 s, backward_input: 1 s, saved: 1 B}"),
             Contains("both `backward` and its halves"));
  CHECK_THAT(stage_error("{name: s, forward: 1 s, backward: 1 s, saved: 1 B, "
                         "held_for_weight_gradient: 2 B}"),
             Contains("more than saved"));
  CHECK_THAT(error_of("workload: w\nchain:\n"
                      "  - {name: s, forward: 1 s, backward: 1 s, saved: 1 B}\n"
                      "  - {name: s, forward: 1 s, backward: 1 s, saved: 1 B}\n"),
             Contains("test.yaml:4:5") && Contains("at line 3"));
  CHECK_THAT(error_of("workload: w\nchain: []\n"), Contains("test.yaml:2"));
  CHECK_THAT(error_of(kTwoStages, {.loss = Loss::mse}), Contains("takes no `loss`"));
  CHECK_THAT(stage_error("{repeat: 3, items: [{name: \"s{i}\", forward: 1 s, backward: 1 s, "
                         "saved: 4000000000000000000 B}]}"),
             Contains("add up to more than can be counted"));
}

TEST_CASE("repeats make a million stages, which is the most") {
  const auto repeated = [](const char* times) {
    return std::string("workload: w\nchain:\n- repeat: ") + times +
           "\n  items:\n  - {name: 's{i}', forward: 1 ms, backward: 2 ms, output: 1 MB, "
           "saved: 2 MB, gradient: 1 MB}\n";
  };
  const WorkloadSource source = read_workload(parse_document(repeated("1000000"), "workload.yaml"));
  const auto& stages = std::get<ChainSpec>(source).stages;
  REQUIRE(stages.size() == 1'000'000);
  CHECK(stages.back().name == "s1000000");
  CHECK_THAT(error_of(repeated("1000001")), Contains("at most 1000000"));
}

TEST_CASE("repeated stages get their own names") {
  const Workload chain = build_text(
      "workload: w\nchain:\n  - repeat: 1000\n    items:\n"
      "      - {name: \"s{i}\", forward: 1 ms, backward: 2 ms, output: 1 B, saved: 3 B}\n");
  CHECK(chain.forwards == 1000);
  CHECK(chain.operators[999].name == "s1000.forward");
  CHECK(chain.saved_bytes == Bytes{3000});
}
