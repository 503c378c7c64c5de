#include "workload/workload_text.hpp"

#include <fstream>
#include <map>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace plimsoll;
using Catch::Matchers::Contains;

namespace {

/// One block over values [sequence, hidden] that ends in a sum, as recorded ones do.
std::string block_text(const nlohmann::json& row) {
  const nlohmann::json& numbers = row.at("with");
  std::string with;
  for (const auto& [name, value] : numbers.items())
    with += (with.empty() ? "" : ", ") + name + ": " + value.dump();
  std::string attention =
      "grouped_attention: {heads: heads, kv_heads: kv_heads, size: size, out: hidden";
  if (numbers.contains("window")) attention += ", window: window";
  if (numbers.contains("norm")) attention += ", norm: true";
  if (numbers.contains("rank"))
    attention =
        "latent_attention: {heads: heads, query_rank: query_rank, rank: rank, size: size, rotated: "
        "rotated, value: value, out: hidden";
  std::string mlp = "gated_mlp: {features: 136, out: hidden";
  if (numbers.contains("gelu")) mlp += ", gelu: true";
  if (numbers.contains("experts"))
    mlp = "mixture: {experts: experts, top_k: top_k, features: 136, out: hidden";
  return "workload: net\nwith: {" + with + "}\ninput: [sequence, hidden]\nloss: sum\nlayers:\n" +
         "  - rms_norm\n  - " + attention + "}\n  - add: {skip: input, name: middle}\n" +
         "  - rms_norm\n  - " + mlp + "}\n  - add: {skip: middle}\n";
}

/// The storages that backwards read, by size.
std::map<std::int64_t, int> storages_of_block(const Workload& workload) {
  std::map<std::int64_t, int> sizes;
  for (const Tensor& tensor : workload.tensors)
    if (tensor.tensor_class == TensorClass::saved) ++sizes[tensor.bytes.count()];
  return sizes;
}

}  // namespace

TEST_CASE("transformer blocks of today keep what PyTorch was recorded to keep, to the byte") {
  std::ifstream file(std::string(PLIMSOLL_SOURCE_DIR) + "/tests/oracles/transformer_blocks.json");
  const nlohmann::json recorded = nlohmann::json::parse(file);
  for (const nlohmann::json& row : recorded.at("rows")) {
    CAPTURE(row.at("block").dump(), row.at("batch").dump());
    const Workload block =
        build_text(block_text(row), {.batch = row.at("batch").get<std::int64_t>()});
    CHECK(block.saved_bytes.count() == row.at("saved_bytes").get<std::int64_t>());
    CHECK(block.parameters == row.at("parameters").get<std::int64_t>());
    // Experts are one layer here, and one after the other there.
    if (row.at("with").contains("experts")) continue;
    std::map<std::int64_t, int> expected;
    for (const nlohmann::json& storage : row.at("storages"))
      expected[storage[0].get<std::int64_t>()] = storage[1].get<int>();
    CHECK(storages_of_block(block) == expected);
  }
}
