#include "workload/onnx/onnx_file.hpp"
#include "workload/recorded_tensors.hpp"
#include "workload/workload_text.hpp"

#include <fstream>
#include <map>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace plimsoll;

namespace {

const std::string kOracles = std::string(PLIMSOLL_SOURCE_DIR) + "/tests/oracles/";

nlohmann::json read_onnx_oracle() {
  std::ifstream file(kOracles + "onnx_saved_tensors.json");
  return nlohmann::json::parse(file);
}

WorkloadOptions exported_options(const nlohmann::json& row) {
  WorkloadOptions options;
  options.batch = row.at("batch").get<std::int64_t>();
  options.loss = row.at("loss") == "sum" ? Loss::sum : Loss::cross_entropy;
  return options;
}

/// An exporter writes an adaptive pooling that changes nothing as an average pooling.
std::string node_of(const std::string& recorded) {
  return recorded == "AdaptiveAvgPool2D" ? "AvgPool2D" : recorded;
}

/// Autograd sees the same bytes with dimensions of 1 more or less, dense layers as rows, products
/// with batch and heads in one.
Dims seen_by(const std::string& node, const Dims& dims) {
  Dims result;
  for (const std::int64_t dim : dims)
    if (dim != 1) result.push_back(dim);
  const std::size_t rank = node == "Addmm" ? 2 : node == "Bmm" ? 3 : result.size();
  while (result.size() > rank) {
    result[1] *= result[0];
    result.erase(result.begin());
  }
  return result;
}

using Kept = std::map<std::string, int>;

std::string line(const std::string& node, const Dims& dims, const std::string& dtype,
                 std::int64_t bytes, std::int64_t storage, bool is_input) {
  return node + " " + to_text(seen_by(node, dims)) + " " + dtype + " " + std::to_string(bytes) +
         " of " + std::to_string(storage) + (is_input ? " input" : "");
}

Kept recorded(const nlohmann::json& row) {
  Kept kept;
  for (const nlohmann::json& t : row.at("tensors"))
    kept[line(node_of(t[0].get<std::string>()), t[1].get<Dims>(), t[2].get<std::string>(),
              t[3].get<std::int64_t>(), t[4].get<std::int64_t>(), t[5].get<bool>())] +=
        t[6].get<int>();
  return kept;
}

/// The lines of which one side has more than the other.
std::string difference(const Kept& found, const Kept& expected) {
  Kept counts = found;
  for (const auto& [tensor, count] : expected) counts[tensor] -= count;
  std::string text;
  for (const auto& [tensor, count] : counts)
    if (count != 0) text += (count > 0 ? "+" : "") + std::to_string(count) + " " + tensor + "\n";
  return text;
}

}  // namespace

TEST_CASE("what an ONNX network keeps is what was recorded, tensor by tensor") {
  const nlohmann::json oracle = read_onnx_oracle();
  REQUIRE(oracle.at("rows").size() == 13);
  for (const nlohmann::json& row : oracle.at("rows")) {
    const std::string file = row.at("file").get<std::string>();
    CAPTURE(file, row.at("batch").dump());
    const OnnxGraph graph = read_onnx(kOracles + "onnx/" + file);
    Kept found;
    std::map<std::int64_t, int> storages;
    std::int64_t unique = 0, references = 0;
    for (const KeptTensor& kept : kept_tensors(expand(graph, exported_options(row)))) {
      ++found[line(node_of(kept), kept.dims, dtype_of(kept), kept.bytes.count(),
                   kept.storage_bytes.count(), kept.is_input)];
      if (kept.is_input) continue;
      references += kept.bytes.count();
      if (kept.is_shared) continue;
      unique += kept.storage_bytes.count();
      ++storages[kept.storage_bytes.count()];
    }
    CHECK(difference(found, recorded(row)) == "");
    std::map<std::int64_t, int> expected;
    for (const nlohmann::json& storage : row.at("storages"))
      expected[storage[0].get<std::int64_t>()] = storage[1].get<int>();
    CHECK(storages == expected);
    CHECK(unique == row.at("saved_bytes").get<std::int64_t>());
    CHECK(references == row.at("references").get<std::int64_t>());
  }
}

TEST_CASE("an ONNX file is a workload like any other") {
  const nlohmann::json oracle = read_onnx_oracle();
  for (const nlohmann::json& row : oracle.at("rows")) {
    const std::string file = row.at("file").get<std::string>();
    CAPTURE(file, row.at("batch").dump());
    const WorkloadSource source = read_onnx_workload(kOracles + "onnx/" + file);
    CHECK(name_of(source) + ".onnx" == file);
    const Workload workload = build(source, exported_options(row));
    CHECK(workload.saved_bytes.count() == row.at("saved_bytes").get<std::int64_t>());
    CHECK(workload.parameters == row.at("parameters").get<std::int64_t>());
    CHECK(workload.macs == row.at("macs").get<std::int64_t>());
  }
}

TEST_CASE("the batch of an ONNX file is its own, or the one that is asked for") {
  const WorkloadSource inception = read_onnx_workload(kOracles + "onnx/inception_v3.onnx");
  CHECK(default_batch(inception) == 2);
  CHECK(build(inception).batch == 2);
  // All but statistics (8 bytes a channel), 4 bytes of each of two losses, and 8 of a weight grows
  // with the batch.
  const auto saved = [&](std::int64_t batch) {
    return build(inception, {.batch = batch}).saved_bytes.count();
  };
  CHECK(saved(6) - saved(2) == 4 * (saved(3) - saved(2)));
  // 66 sbh + 9 a s^2 b + 16 sb + 8, the input of 4 sbh apart, at any batch (BERT-base, 512).
  const WorkloadSource bert = read_onnx_workload(kOracles + "onnx/bert_block.onnx");
  constexpr std::int64_t s = 512, h = 768, a = 12;
  for (const std::int64_t b : {1, 5})
    CHECK(build(bert, {.batch = b, .loss = Loss::sum}).saved_bytes.count() ==
          62 * s * b * h + 9 * a * s * s * b + 16 * s * b + 8);
}

TEST_CASE("kept tensors add up to the kept bytes of every network") {
  for (const char* name : {"resnet18", "mobilenet-v2", "gpt2-small", "alexnet"}) {
    const WorkloadSource source = read_workload(read_document(shipped(name)));
    std::int64_t sum = 0;
    for (const KeptTensor& kept : kept_tensors(expand(std::get<LayersSpec>(source), {})))
      if (!kept.is_shared && !kept.is_input) sum += kept.storage_bytes.count();
    CHECK(sum == build(source).saved_bytes.count());
  }
}
