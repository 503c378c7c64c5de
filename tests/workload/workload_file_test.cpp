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
  for (const char* word : {"chain", "graph", "layers", "conv2d", "sgd-momentum", "bce-with-logits"})
    CHECK(schema.find(word) != std::string::npos);
  CHECK(schema == workload_schema());
}

TEST_CASE("what is no workload is refused") {
  CHECK(error_of("[1, 2]").find("expected a workload") != std::string::npos);
  CHECK(error_of("workload: w\nchain: []\nlayers: []\n").find("unknown key `layers`") !=
        std::string::npos);
}
