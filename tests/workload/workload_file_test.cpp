#include "workload/workload_file.hpp"

#include "workload/workload_text.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace plimsoll;

TEST_CASE("one source builds many steps") {
  const WorkloadSource source = read_workload(read_document(shipped("mlp")));
  CHECK(default_batch(source) == 1);
  // Kept: two ReLU outputs, log-softmax, label; and once the total weight.
  for (const std::int64_t batch : {1, 8, 64})
    CHECK(build(source, {.batch = batch}).saved_bytes.count() ==
          batch * (4 * (128 + 64 + 10) + 8) + 4);
}

TEST_CASE("the schema names the forms and the layers") {
  const std::string schema = workload_schema();
  CHECK(nlohmann::json::parse(schema).is_object());
  for (const char* word :
       {"chain", "graph", "layers", "profile", "conv2d", "sgd-momentum", "bce-with-logits"})
    CHECK(schema.find(word) != std::string::npos);
  CHECK(schema == workload_schema());
}

TEST_CASE("what is no workload is refused") {
  CHECK(error_of("[1, 2]").find("expected a workload") != std::string::npos);
  CHECK(error_of("workload: w\nchain: []\nlayers: []\n").find("unknown key `layers`") !=
        std::string::npos);
}

TEST_CASE("all errors of a chain come at once") {
  const std::string errors = error_of(
      "workload: w\noptimzer: sgd\nchain:\n"
      "  - {name: a, forward: 1, backward: 1 s, saved: 1 B, output: 2 B}\n"
      "  - {name: a, forward: 1 s, saved: 1 B}\n"
      "  - {name: b, forward: 1 s, backward: 1 s, saved: 1 B, held_for_weight_gradient: 2 B}\n");
  for (const char* expected :
       {"test.yaml:2:1: error: unknown key `optimzer`", "test.yaml:4:24: error: `1` has no unit",
        "test.yaml:4:5: error: stage `a`: saved (1 B) is less than output (2 B)",
        "test.yaml:5:5: error: stage `a`: this name was given to another stage at line 4",
        "test.yaml:5:5: error: stage `a`: no backward",
        "test.yaml:6:5: error: stage `b`: held_for_weight_gradient is more than saved"})
    CHECK(errors.find(expected) != std::string::npos);
}

TEST_CASE("what could not be read causes no further errors") {
  // The backward is there, but misspelt; saved is there, but no size.
  CHECK(error_of("workload: w\nchain: [{name: a, forward: 1 s, backwrd: 1 s, saved: 1 B}]\n") ==
        "test.yaml:2:33: error: unknown key `backwrd` in the stage; did you mean `backward`?");
  CHECK(error_of("workload: w\n"
                 "chain: [{name: a, forward: 1 s, backward: 1 s, saved: 1, output: 2 B}]\n") ==
        "test.yaml:2:55: error: `1` has no unit, expected a size such as `16 GiB`");
  // `outputs` is misspelt: nobody knows what `a` makes.
  CHECK(error_of("workload: w\ngraph:\n"
                 "  - {name: a, outpts: {x: 1 B}, forward: 1 s, backward: 1 s}\n"
                 "  - {name: b, inputs: [x], forward: 1 s, backward: 1 s}\n") ==
        "test.yaml:3:15: error: unknown key `outpts` in the operator; did you mean `outputs`?");
  // The layer of the bad argument has it, and makes a value under its name.
  CHECK(error_of(network("[4]",
                         "  - linear: {features: [1]}\n"
                         "  - [1]\n"
                         "  - add: {skip: somewhere}\n"))
            .find("somewhere") == std::string::npos);
  CHECK(error_of(network("[4]", "  - linear: {features: [1]}\n")) ==
        "test.yaml:5:24: error: expected a whole number or an expression, found a list");
}

TEST_CASE("all errors of a graph come at once") {
  const std::string errors = error_of(
      "workload: w\nbatch: 0\ngraph:\n"
      "  - {name: a, inputs: [y], outputs: {x: 2 B}, forward: 1, backward: 1 s, saved: 1 B}\n"
      "  - {name: b, inputs: [x, z], outputs: {y: 1}, forward: 1 s, backward: 1 s}\n");
  for (const char* expected :
       {"test.yaml:2:8: error: found `0`", "test.yaml:4:56: error: `1` has no unit",
        "test.yaml:4:5: error: operator `a`: saved (1 B) is less than the outputs (2 B)",
        "test.yaml:5:27: error: unknown value `z`", "test.yaml:5:44: error: `1` has no unit",
        "error: the operators form a cycle: `a` needs `b` needs `a`"})
    CHECK(errors.find(expected) != std::string::npos);
}

TEST_CASE("all errors of a network come at once") {
  const std::string errors = error_of(
      "workload: w\ninput: {shape: 3}\nloss: crossentropy\nlayers:\n"
      "  - conv2D: 3\n  - relu: [1]\n  - linear: widht\n");
  for (const char* expected :
       {"test.yaml:2:16: error: ", "test.yaml:3:7: error: ", "test.yaml:5:5: error: unknown layer",
        "test.yaml:6:11: error: ", "test.yaml:7:13: error: unknown number `widht`"})
    CHECK(errors.find(expected) != std::string::npos);
}
