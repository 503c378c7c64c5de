#include "workload/given/profile_workload.hpp"

#include "workload/chain/chain_view.hpp"
#include "workload/workload_text.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;
using Catch::Matchers::Contains;

namespace {

const std::string kHead =
    "workload: net\nbatch: 4\nprofile:\n  version: 1\n  inputs: {x: 4 B}\n"
    "  parameters: {w: 8 B, v: 16 B}\n  buffers: {mean: 2 B}\n  operators:\n";

// x -> a -> y, changed in place by r, -> b -> z. The gradient of y is handed on by r's backward.
const std::string kNet =
    kHead +
    "    - name: a\n      class: convolution\n"
    "      forward: {time: 1 s, reads: [x, w], makes: {y: 32 B}, keeps: {mask: 64 B}}\n"
    "      backward: {time: 2 s, reads: [w, mask, dy], gradients: [w], workspace: 128 B}\n"
    "    - name: r\n"
    "      forward: {time: 1 s, reads: [y], updates: [y]}\n"
    "      backward: {time: 1 s, reads: [y, dy], updates: [dy]}\n"
    "    - name: b\n"
    "      forward: {time: 1 s, reads: [y, v, mean], makes: {z: 256 B}, workspace: 512 B}\n"
    "      backward: {time: 3 s, reads: [y, v], makes: {dy: 32 B}, gradients: [v]}\n";

std::string profile_error(const std::string& operators) {
  return error_of(kHead + operators);
}

std::string operator_text(const std::string& forward, const std::string& backward = "") {
  return "    - {name: a, forward: {time: 1 s" + forward + "}" +
         (backward.empty() ? "" : ", backward: {time: 1 s" + backward + "}") + "}\n";
}

}  // namespace

TEST_CASE("a profile runs its forwards as they stand, its backwards in reverse") {
  const Workload net = build_text(kNet);
  std::string order;
  for (const Operator& op : net.operators) order += op.name + " ";
  CHECK(order == "a.forward r.forward b.forward b.backward r.backward a.backward ");
  CHECK(net.batch == 4);
  CHECK(net.microbatch == 4);
  CHECK(find_operator(net, "a.forward").operator_class == OperatorClass::convolution);
  CHECK(find_operator(net, "b.backward").given_time == Time{3'000'000'000'000});
  CHECK(find_operator(net, "b.forward").workspace == Bytes{512});
}

TEST_CASE("a profile's storages are kept as long as its operators say") {
  const Workload net = build_text(kNet);
  const Operator& a = find_operator(net, "a.forward");
  CHECK(names(net, a.bare) == "y");
  CHECK(names(net, a.kept) == "y mask");
  CHECK(names(net, find_operator(net, "r.forward").updates) == "y");
  CHECK(names(net, find_operator(net, "b.backward").kept) == "dy v.parameters.gradient");
  CHECK(names(net, find_operator(net, "r.backward").updates) == "dy");
  // y and mask are read by backwards; z is not, x, w, v and mean are there throughout.
  CHECK(net.saved_bytes == Bytes{32 + 64});
  CHECK(net.parameter_bytes == Bytes{8 + 16});
  // y is changed in place by r, so the chain is cut after r, and nowhere else.
  CHECK(chain_view(net).stages.size() == 2);
}

TEST_CASE("every run leaves what others than the backward of its operator read of what it keeps") {
  // `one` is read by the operator's own backward, `two` by the next forward, `three` by the next
  // backward.
  const Workload net = build_text(kHead +
                                  "    - name: a\n"
                                  "      forward: {time: 1 s, reads: [x], makes: {y: 1 B}, "
                                  "keeps: {one: 2 B, two: 4 B, three: 8 B}}\n"
                                  "      backward: {time: 1 s, reads: [one, two, three]}\n"
                                  "    - name: b\n"
                                  "      forward: {time: 1 s, reads: [y, two], makes: {z: 1 B}}\n"
                                  "      backward: {time: 1 s, reads: [y, three]}\n");
  CHECK(names(net, find_operator(net, "a.forward").bare) == "y two three");
  CHECK(names(net, find_operator(net, "a.forward").kept) == "y one two three");
}

TEST_CASE("a profile is one stage from what a backward reads to the operator that made it") {
  const auto stages = [](const std::string& of_a, const std::string& of_c) {
    const auto step = [](const std::string& name, const std::string& reads,
                         const std::string& backward) {
      return "    - {name: " + name + ", forward: {time: 1 s, reads: [" + reads + "], makes: {" +
             name + "y: 1 B}, keeps: {" + name + "k: 1 B}}, backward: {time: 1 s, " + backward +
             "}}\n";
    };
    return chain_view(build_text(kHead + step("a", "x", of_a) + step("b", "ay", "reads: [bk]") +
                                 step("c", "by", of_c)))
        .stages.size();
  };
  CHECK(stages("reads: [ak]", "reads: [ck, by]") == 3);
  // c's backward reads what a left: ak and by separate b from c.
  CHECK(stages("reads: [ak]", "reads: [ck, ak]") == 1);
  // a's backward reads what b or c leaves later: it needs them to have run last.
  CHECK(stages("reads: [ak, bk]", "reads: [ck]") == 2);
  CHECK(stages("reads: [ak, ck]", "reads: [ck]") == 1);
  // by is not as b made it once c's backward has run, and b's forward would make it again.
  CHECK(stages("reads: [ak, by]", "reads: [ck, by], updates: [by]") == 1);
}

TEST_CASE("the state of an optimizer is placed where the parameter is read") {
  const Workload net = build_text(kNet, {.optimizer = Optimizer::adam});
  CHECK(names(net, find_operator(net, "a.forward").reads) == "x w.parameters w.optimizer_state");
  for (const Tensor& tensor : net.tensors)
    if (tensor.name == "w.optimizer_state") CHECK(tensor.bytes == Bytes{2 * 8});
}

TEST_CASE("two backwards that add to one gradient make it once") {
  const Workload net = build_text(
      kHead +
      "    - {name: a, forward: {time: 1 s, reads: [x, w], makes: {y: 1 B}},\n"
      "       backward: {time: 1 s, reads: [x, dy], gradients: [w]}}\n"
      "    - {name: b, forward: {time: 1 s, reads: [y, w], makes: {z: 1 B}},\n"
      "       backward: {time: 1 s, reads: [y, w], makes: {dy: 1 B}, gradients: [w]}}\n");
  const Operator& a = find_operator(net, "a.backward");
  CHECK(names(net, a.kept) == "w.parameters.gradient");
  CHECK(net.list(a.kept)[0] == net.list(find_operator(net, "b.backward").kept)[1]);
}

TEST_CASE("a profile that cannot have been recorded is refused with its place") {
  CHECK_THAT(profile_error(operator_text(", reads: [meen]")),
             Contains("test.yaml:9:46") && Contains("`meen` is read before anything makes it") &&
                 Contains("did you mean `mean`?"));
  CHECK_THAT(profile_error(operator_text(", reads: [y], makes: {y: 1 B}")),
             Contains("test.yaml:9:46: error: `y` is read before anything makes it"));
  CHECK_THAT(profile_error(operator_text(", reads: [x, x]")), Contains("`x` is named twice"));
  CHECK_THAT(profile_error(operator_text(", makes: {x: 1 B}")),
             Contains("test.yaml:9:46: error: the storage `x` is made twice"));
  CHECK_THAT(profile_error(operator_text(", updates: [x]")),
             Contains("`x` is changed in place, but not read"));
  CHECK_THAT(profile_error(operator_text(", reads: [mean], updates: [mean]")),
             Contains("`mean` is there throughout, so it cannot be changed in place"));
  CHECK_THAT(profile_error(operator_text("", ", gradients: [mean]")),
             Contains("test.yaml:9:73: error: unknown parameter `mean`"));
  CHECK_THAT(profile_error(operator_text("", ", gradients: [w, w]")),
             Contains("`w` is named twice"));
  CHECK_THAT(profile_error(operator_text("") + operator_text("")),
             Contains("operator `a`: this name was given to another operator at line 9"));
  CHECK_THAT(profile_error(operator_text(", time: 2 s")), Contains("repeated key `time`"));
  CHECK_THAT(profile_error("    - {name: a, class: convolve, forward: {time: 1 s}}\n"),
             Contains("test.yaml:9:24: error: found `convolve`, expected one of `matmul`"));
}

TEST_CASE("a backward reads what later operators' backwards made, never an earlier one's") {
  // b's backward runs before a's.
  CHECK_THAT(profile_error(
                 "    - {name: a, forward: {time: 1 s}, backward: {time: 1 s, makes: {g: 1 B}}}\n"
                 "    - {name: b, forward: {time: 1 s}, backward: {time: 1 s, reads: [g]}}\n"),
             Contains("test.yaml:10:69: error: `g` is read before anything makes it"));
}

TEST_CASE("a profile of another version is refused") {
  CHECK_THAT(error_of("workload: net\nprofile:\n  version: 2\n  operators:\n" + operator_text("")),
             Contains("test.yaml:3:12: error: this profile is of version 2; expected version 1"));
}

TEST_CASE("a profile is of the batch and the dtype that were recorded") {
  CHECK(build_text(kNet, {.batch = 4}).batch == 4);
  // Four microbatches of the recorded size make a mini-batch of 16.
  const Workload micro = build_text(kNet, {.batch = 16, .microbatch = 4});
  CHECK(micro.batch == 16);
  CHECK(micro.microbatch == 4);
  CHECK_THAT(error_of(kNet, {.batch = 8}),
             Contains("was recorded with 4 samples, which are one microbatch; found 8"));
  CHECK_THAT(error_of(kNet, {.dtype = DType::fp16}), Contains("a profile takes no `dtype`"));
  CHECK_THAT(error_of(kNet, {.loss = Loss::mse}), Contains("a profile takes no `loss`"));
  CHECK_THAT(error_of(kNet, {.split_backward = true}),
             Contains("a profile cannot split its backward"));
}
