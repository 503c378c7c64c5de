#include "workload/workload_text.hpp"

#include <fstream>
#include <map>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace plimsoll;

namespace {

nlohmann::json read_oracle() {
  std::ifstream file(std::string(PLIMSOLL_SOURCE_DIR) + "/tests/oracles/saved_tensors.json");
  return nlohmann::json::parse(file);
}

WorkloadOptions options_of(const nlohmann::json& row) {
  WorkloadOptions options;
  options.batch = row.at("batch").get<std::int64_t>();
  for (const auto& [name, value] : row.at("with").items())
    options.with.push_back({{name, {}}, value.get<std::int64_t>()});
  return options;
}

/// One block of a shipped network alone: the block's input is the network's.
Workload build_block(const nlohmann::json& row) {
  Node file = block_alone(row.at("block_of").get<std::string>());
  Diagnostics diagnostics;
  file.set("loss", parse_value("sum", "test"), diagnostics);
  diagnostics.throw_if_errors();
  return build(read_workload(file), options_of(row));
}

/// The storages that backwards read, by size.
std::map<std::int64_t, int> kept_storages(const Workload& workload) {
  std::map<std::int64_t, int> sizes;
  for (const Tensor& tensor : workload.tensors)
    if (tensor.tensor_class == TensorClass::saved) ++sizes[tensor.bytes.count()];
  return sizes;
}

}  // namespace

TEST_CASE("every recorded network keeps the recorded storages, to the byte") {
  const nlohmann::json recorded = read_oracle();
  for (const nlohmann::json& row : recorded.at("rows")) {
    const bool is_block = row.contains("block_of");
    CAPTURE(row.value("workload", row.value("block_of", "")), row.at("with").dump(),
            row.at("batch").dump());
    const Workload workload =
        is_block
            ? build_block(row)
            : build(read_workload(read_document(shipped(row.at("workload").get<std::string>()))),
                    options_of(row));
    CHECK(workload.saved_bytes.count() == row.at("saved_bytes").get<std::int64_t>());
    CHECK(workload.parameters == row.at("parameters").get<std::int64_t>());
    CHECK(workload.macs == row.at("macs").get<std::int64_t>());
    std::map<std::int64_t, int> expected;
    for (const nlohmann::json& storage : row.at("storages"))
      expected[storage[0].get<std::int64_t>()] = storage[1].get<int>();
    CHECK(kept_storages(workload) == expected);
  }
}

TEST_CASE("whole transformers keep what the closed form says") {
  // One block of width h, a heads, s positions, float32: 66 sbh + 9 a s^2 b + 16 sb + 8, its input
  // included, and s^2 for the causal mask.
  const auto block = [](std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t a,
                        bool causal) {
    return 66 * s * b * h + 9 * a * s * s * b + 16 * s * b + 8 + (causal ? s * s : 0);
  };
  constexpr std::int64_t h = 768, a = 12, layers = 12;
  for (const std::int64_t b : {1, 3}) {
    // GPT-2: embedding dropout, position ids, final norm, log-softmax, targets, total weight.
    std::int64_t s = 1024, vocabulary = 50257;
    const Workload gpt2 = build(read_workload(read_document(shipped("gpt2-small"))), {.batch = b});
    CHECK(gpt2.saved_bytes.count() == layers * block(b, s, h, a, true) + s * b * h + 8 * s +
                                          8 * s * b * h + 8 * s * b + 4 * s * b * vocabulary +
                                          8 * s * b + 4);
    // BERT: embedding norm, its dropout, position and segment ids, head transform, GELU, norm,
    // decoder input, log-softmax, targets, total weight.
    s = 512;
    vocabulary = 30522;
    const Workload bert = build(read_workload(read_document(shipped("bert-base"))), {.batch = b});
    CHECK(bert.saved_bytes.count() ==
          layers * block(b, s, h, a, false) + 4 * s * b * h + 8 * s * b + s * b * h + 8 * s +
              8 * s * b + 4 * s * b * h + 4 * s * b * h + (4 * s * b * h + 8 * s * b) +
              4 * s * b * h + 4 * s * b * vocabulary + 8 * s * b + 4);
  }
}

TEST_CASE("a vision transformer keeps what the closed form says") {
  // torchvision's block, whose dropouts have the rate 0: 64 sbh + 4 a s^2 b + 16 sb + 8, its input
  // included; after the last one the norm's x and statistics and, though the head reads one
  // position only, all of its y.
  const auto by_hand = [](std::int64_t b, std::int64_t h, std::int64_t a, std::int64_t layers) {
    constexpr std::int64_t s = 197;
    return layers * (64 * s * b * h + 4 * a * s * s * b + 16 * s * b + 8) + 8 * s * b * h +
           8 * s * b + 4 * b * 1000 + 8 * b + 4;
  };
  const auto saved = [](const char* name, std::int64_t b) {
    return build(read_workload(read_document(shipped(name))), {.batch = b}).saved_bytes.count();
  };
  CHECK(saved("vit-s-16", 1) == by_hand(1, 384, 6, 12));
  CHECK(saved("vit-b-16", 5) == by_hand(5, 768, 12, 12));
  CHECK(saved("vit-l-16", 2) == by_hand(2, 1024, 16, 24));
  // Learned positions are a matrix: Adafactor has a number for each of its rows and columns, and
  // nobody calls them a bias. By Adafactor's rule over the parameters of torchvision's module,
  // and counted of torch.optim.Adam in PyTorch 1.13.1.
  const auto state = [](const char* name, std::int64_t resolution, Optimizer optimizer,
                        std::optional<Trained> trained) {
    const Workload net = build(read_workload(read_document(shipped(name))),
                               {.batch = 1,
                                .optimizer = optimizer,
                                .with = {{{"resolution", {}}, resolution}},
                                .trained = trained});
    std::int64_t bytes = 0;
    for (const Tensor& tensor : net.tensors)
      if (tensor.tensor_class == TensorClass::optimizer_state) bytes += tensor.bytes.count();
    return bytes;
  };
  CHECK(state("vit-b-16", 224, Optimizer::adafactor, std::nullopt) == 1'391'192);
  CHECK(state("vit-s-16", 64, Optimizer::adam, Trained{Trained::What::bias, kWhole}) == 419'648);
}

namespace {

/// A replay of policy `none` that knows nothing of the engine: tensors come with their operator and
/// go after their last reader; gradients of parameters are added to buffers that exist and are not
/// counted.
std::int64_t peak_of_none(const Workload& workload) {
  std::vector<std::size_t> last(workload.tensors.size(), 0);
  for (std::size_t i = 0; i < workload.operators.size(); ++i)
    for (const TensorList slice : {workload.operators[i].kept, workload.operators[i].reads})
      for (const TensorId id : workload.list(slice)) last[static_cast<std::size_t>(id)] = i;
  std::vector<std::vector<std::size_t>> ends(workload.operators.size());
  for (std::size_t t = 0; t < last.size(); ++t)
    if (workload.tensors[t].lifetime == Lifetime::step) ends[last[t]].push_back(t);

  std::int64_t live = 0, peak = 0;
  for (std::size_t i = 0; i < workload.operators.size(); ++i) {
    std::int64_t passing = workload.operators[i].workspace.count();
    for (const TensorId id : workload.list(workload.operators[i].kept)) {
      const bool stays = workload[id].lifetime == Lifetime::step;
      (stays ? live : passing) += workload[id].bytes.count();
    }
    peak = std::max(peak, live + passing);
    for (const std::size_t t : ends[i]) live -= workload.tensors[t].bytes.count();
  }
  return peak;
}

}  // namespace

TEST_CASE("the peak of backward is the measured one") {
  // Measured in PyTorch 1.13.1 on a CPU, one step, new bytes; the loss and its gradient are 8 bytes
  // that a workload leaves out. VGG-16, batch 4, 112 x 112: at the first dense layer, whose weight
  // gradient alone is 411 MB.
  const Workload vgg16 = build(read_workload(read_document(shipped("vgg16"))),
                               {.batch = 4, .with = {{{"resolution", {}}, 112}}});
  CHECK(peak_of_none(vgg16) + 8 == 484'401'160);
  // ResNet-18, batch 8: at the last 3 x 3 convolution, where that CPU library holds the weight
  // gradient of 512 x 512 x 3 x 3 elements twice.
  const Workload resnet18 = build(read_workload(read_document(shipped("resnet18"))), {.batch = 8});
  CHECK(peak_of_none(resnet18) + 512 * 512 * 3 * 3 * 4 + 8 == 192'316'936);
}
