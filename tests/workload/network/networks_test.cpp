#include "workload/workload_text.hpp"

#include <tuple>

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

struct Published {
  const char* name;
  std::int64_t parameters, macs;
};

/// V h + P h + L (12 h^2 + 13 h) + 2 h; MACs L (12 s h^2 + 2 s^2 h) + s h V.
constexpr Published expected_gpt2(const char* name, std::int64_t h, std::int64_t layers) {
  constexpr std::int64_t v = 50257, s = 1024;
  return {name, v * h + s * h + layers * (12 * h * h + 13 * h) + 2 * h,
          layers * (12 * s * h * h + 2 * s * s * h) + s * h * v};
}

/// Patches of 16 x 16 x 3, a class token, positions, blocks, final norm, head; s = 14 * 14 + 1.
/// MACs (s - 1) 768 h + L (12 s h^2 + 2 s^2 h) + 1000 h.
constexpr Published vit(const char* name, std::int64_t h, std::int64_t layers) {
  constexpr std::int64_t s = 197;
  return {name, 768 * h + h + h + s * h + layers * (12 * h * h + 13 * h) + 2 * h + 1000 * h + 1000,
          (s - 1) * 768 * h + layers * (12 * s * h * h + 2 * s * s * h) + 1000 * h};
}

/// (V + P + 2) h + 2 h + L (12 h^2 + 13 h) + (h^2 + h + 2 h + V);
/// MACs L (12 s h^2 + 2 s^2 h) + s h^2 + s h V.
constexpr Published bert(const char* name, std::int64_t h, std::int64_t layers) {
  constexpr std::int64_t v = 30522, s = 512;
  return {name, (v + s + 2) * h + 2 * h + layers * (12 * h * h + 13 * h) + h * h + h + 2 * h + v,
          layers * (12 * s * h * h + 2 * s * s * h) + s * h * h + s * h * v};
}

/// Patches of 4 x 4 x 3 and a norm; blocks of width c with a table of 13 x 13 numbers a head, whose
/// 49 positions a window attend to one another; between stages a norm and a dense layer from 4 c to
/// 2 c; final norm, head.
constexpr Published swin(const char* name, std::int64_t c) {
  constexpr std::int64_t depths[] = {2, 2, 6, 2};
  std::int64_t positions = 56 * 56, parameters = 48 * c + c + 2 * c, macs = positions * 48 * c;
  for (const std::int64_t blocks : depths) {
    parameters += blocks * (12 * c * c + 13 * c + 169 * c / 32);
    macs += blocks * positions * (12 * c * c + 2 * 49 * c);
    if (positions == 49) break;
    parameters += 8 * c + 8 * c * c;
    macs += positions * 2 * c * c;
    positions /= 4;
    c *= 2;
  }
  return {name, parameters + 2 * c + 1000 * c + 1000, macs + 1000 * c};
}

}  // namespace

TEST_CASE("the shipped networks have their published sizes") {
  // torchvision's documentation for the image networks (parameters; MACs are its GFLOPS figures in
  // full). MLP: 784*128 + 128 + 128*64 + 64 + 64*10 + 10. LeNet-5: 156 + 2,416 + 48,120 + 10,164 +
  // 850. NASNet-A: 5,289,978, those of the slim library's checkpoint, and its auxiliary head, which
  // are the 34,343,816 bytes that PipeDream's profile of it counts; MACs 564 million in the paper.
  constexpr std::int64_t head = 528 * 128 + 2 * 128 + 25 * 128 * 768 + 2 * 768 + 769 * 1000;
  const Published expected[] = {
      {"mlp", 109'386, 784 * 128 + 128 * 64 + 64 * 10},
      {"lenet", 61'706, 6 * 784 * 25 + 16 * 100 * 150 + 400 * 120 + 120 * 84 + 84 * 10},
      {"alexnet", 61'100'840, 714'188'480},
      {"vgg16", 138'357'544, 15'470'264'320},
      {"vgg19", 143'667'240, 19'632'062'464},
      {"resnet18", 11'689'512, 1'814'073'344},
      {"resnet34", 21'797'672, 3'663'761'408},
      {"resnet50", 25'557'032, 4'089'184'256},
      {"resnet101", 44'549'160, 7'801'405'440},
      {"resnet152", 60'192'808, 11'513'626'624},
      {"densenet121", 7'978'856, 2'834'161'664},
      {"densenet169", 14'149'480, 3'359'843'328},
      {"densenet201", 20'013'928, 4'291'365'888},
      {"googlenet", 6'624'904, 1'498'376'192},
      {"resnext50-32x4d", 25'028'904, 4'230'479'872},
      {"squeezenet", 1'235'496, 349'151'936},
      {"mobilenet-v2", 3'504'872, 300'774'272},
      {"mobilenet-v2-035", 1'677'128, 20'220'672},
      {"inception-v3", 27'161'264, 5'718'899'296},
      {"nasnet-a-mobile", 5'289'978 + head,
       563'638'816 + 25 * 528 * 128 + 25 * 128 * 768 + 768 * 1000},
      {"resnet18-cifar", 11'173'962, 555'422'720},
      // MLPerf Tiny's models as Keras counts them, without the two running statistics of each
      // normalized channel: 240, 9 x 64, 8 + 13 blocks of channels in and out, 8 x 128 + 8.
      {"resnet8", 78'666 - 2 * 240, 12'501'632},
      {"ds-cnn", 24'908 - 2 * 576, 2'656'768},
      {"mobilenet-v1-025", 221'794 - 2 * (8 + 1240 + 1488), 7'489'664},
      {"deep-autoencoder", 269'992 - 2 * 1032, 264'192},
      vit("vit-s-16", 384, 12),
      vit("vit-b-16", 768, 12),
      vit("vit-l-16", 1024, 24),
      swin("swin-t", 96),
      expected_gpt2("gpt2-small", 768, 12),
      expected_gpt2("gpt2-medium", 1024, 24),
      expected_gpt2("gpt2-large", 1280, 36),
      bert("bert-base", 768, 12),
      bert("bert-large", 1024, 24),
  };
  for (const Published& network : expected) {
    CAPTURE(network.name);
    const WorkloadSource source = read_workload(read_document(shipped(network.name)));
    CHECK(name_of(source) == network.name);
    const Workload workload = build(source);
    CHECK(workload.parameters == network.parameters);
    CHECK(workload.parameter_bytes.count() == 4 * network.parameters);
    CHECK(workload.macs == network.macs);
  }
}

TEST_CASE("the shipped networks can be made smaller") {
  const auto parameters = [](const char* name, const char* number, std::int64_t value) {
    return build(read_workload(read_document(shipped(name))), {.with = {{{number, {}}, value}}})
        .parameters;
  };
  // Width 8 in place of 64. Convolutions, by width w: 3*9 w + 4 * 9 w^2, then for k = 2, 4, 8 with
  // c = k w: 9 (c/2) c + 3 * 9 c^2 + (c/2) c; batch norms 2 (5 w + 5 * 2w + 5 * 4w + 5 * 8w); dense
  // 8 w * 10 + 10.
  const auto narrow = [](std::int64_t w) {
    std::int64_t sum = 27 * w + 36 * w * w;
    for (const std::int64_t c : {2 * w, 4 * w, 8 * w}) sum += 5 * c * c + 27 * c * c;
    return sum + 2 * 5 * (w + 2 * w + 4 * w + 8 * w) + 80 * w + 10;
  };
  CHECK(narrow(64) == 11'173'962);
  CHECK(parameters("resnet18-cifar", "width", 8) == narrow(8));
  CHECK(parameters("resnet50", "classes", 10) == 25'557'032 - 2049 * 990);
  CHECK(parameters("gpt2-small", "blocks", 6) == 124'439'808 - 6 * 7'087'872);
}

TEST_CASE("ViT has the sizes that torchvision and timm document") {
  CHECK(vit("", 384, 12).parameters == 22'050'664);
  CHECK(vit("", 768, 12).parameters == 86'567'656);
  CHECK(vit("", 1024, 24).parameters == 304'326'632);
}

TEST_CASE("Swin-T has the size that torchvision documents") {
  CHECK(swin("", 96).parameters == 28'288'354);
  CHECK(swin("", 96).macs / 1'000'000 == 4'490);
}

TEST_CASE("networks for segmentation and language have the sizes of their tables") {
  const auto built = [](const char* name, const NamedIntegers& with = {}) {
    return build(read_workload(read_document(shipped(name))), {.with = with});
  };
  // U-Net with batch norm, 3 channels in and 2 classes out. A pair of convolutions from i to o
  // channels: 9 i o + 9 o^2 + 4 o; up from 2 c to c: 8 c^2 + c; the last one 2 * 64 + 2.
  std::int64_t unet = 2 * 64 + 2;
  const auto pair = [](std::int64_t i, std::int64_t o) { return 9 * i * o + 9 * o * o + 4 * o; };
  for (const std::int64_t c : {64, 128, 256, 512})
    unet += pair(c == 64 ? 3 : c / 2, c) + 8 * c * c + c + pair(2 * c, c);
  unet += pair(512, 1024);
  CHECK(unet == 31'037'698);
  CHECK(built("unet").parameters == unet);
  CHECK(built("unet").macs == 48'171'581'440);
  // SegNet. VGG-16 has 14,714,688 numbers in its convolutions (the paper's 14.7 million), 4,224 of
  // them biases, and as many norms of two. The mirror image has the same weights but for its last
  // convolution, from 64 channels to 12 classes, not to 3 colours; 3,712 norms and biases more, and
  // 12 biases of the last convolution.
  constexpr std::int64_t vgg = 14'714'688, weights = vgg - 4224 + 9 * 64 * (12 - 3);
  CHECK(built("segnet").parameters == vgg + 2 * 4224 + weights + 3 * 3712 + 12);
  CHECK(built("segnet").parameters == 29'449'932);
  // V h + 2 (8 h^2 + 8 h) + h V + V: the 20 and 66 million of the literature.
  const auto lstm = [](std::int64_t h) {
    return 10'000 * h + 2 * (8 * h * h + 8 * h) + 10'000 * h + 10'000;
  };
  CHECK(lstm(650) == 19'780'400);
  CHECK(lstm(1500) == 66'034'000);
  CHECK(built("lstm-lm").parameters == lstm(650));
  CHECK(built("lstm-lm", {{{"hidden", {}}, 1500}}).parameters == lstm(1500));
  // 25,002 words of 100 features; an LSTM each way of 100, then of 512 features; a logit.
  const auto both_ways = [](std::int64_t in) { return 2 * 4 * 256 * (in + 256); };
  CHECK(built("bilstm").parameters ==
        25'002 * 100 + both_ways(100) + both_ways(512) + 2 * (2 * 8 * 256) + 513);
  CHECK(built("bilstm").parameters == 4'810'857);
  CHECK(built("bilstm").macs == 256 * (both_ways(100) + both_ways(512)) + 512);
  CHECK(built("lstm-lm").macs == 2 * 35 * 4 * 650 * (650 + 650) + 35 * 650 * 10'000);
}

namespace {

/// A network as a table gives it: s positions of a vocabulary v, blocks of width h with a heads and
/// k of key and value of d features, and MLPs of width f.
struct Llama {
  std::int64_t s, v, blocks, h, a, k, d, f;
  std::int64_t window = 0;
  bool norms_heads = false;

  [[nodiscard]] std::int64_t attention() const { return 2 * h * a * d + 2 * h * k * d; }
  /// 3 h f for the MLP, or more; embedding and head apart.
  [[nodiscard]] std::int64_t parameters(std::int64_t mlp) const {
    return 2 * v * h + h + blocks * (attention() + mlp + 2 * h + (norms_heads ? 2 * d : 0));
  }
  /// Query and key, probabilities and value, for each position and those before it, of a window the
  /// nearest.
  [[nodiscard]] std::int64_t macs(std::int64_t mlp) const {
    const std::int64_t seen = window == 0 ? s : window;
    const std::int64_t pairs = seen * (seen + 1) / 2 + (s - seen) * seen;
    return s * v * h + blocks * (s * (attention() + mlp) + 2 * pairs * a * d);
  }
};

}  // namespace

TEST_CASE("language models of today have their published sizes") {
  const auto check = [](const char* name, std::int64_t published, std::int64_t parameters,
                        std::int64_t macs) {
    CAPTURE(name);
    CHECK(parameters == published);
    const Workload net = build(read_workload(read_document(shipped(name))));
    CHECK(net.parameters == published);
    CHECK(net.macs == macs);
  };
  // Parameters: those of the published weights (model cards on Hugging Face, "safetensors").
  const std::tuple<const char*, std::int64_t, Llama> dense[] = {
      {"llama2-7b", 6'738'415'616, {4096, 32'000, 32, 4096, 32, 32, 128, 11'008}},
      {"llama3-8b", 8'030'261'248, {8192, 128'256, 32, 4096, 32, 8, 128, 14'336}},
      {"llama3-70b", 70'553'706'496, {8192, 128'256, 80, 8192, 64, 8, 128, 28'672}},
      {"llama3-405b", 405'853'388'800, {8192, 128'256, 126, 16'384, 128, 8, 128, 53'248}},
      {"qwen3-8b", 8'190'735'360, {4096, 151'936, 36, 4096, 32, 8, 128, 12'288, 0, true}},
      {"qwen3-32b", 32'762'123'264, {4096, 151'936, 64, 5120, 64, 8, 128, 25'600, 0, true}},
      {"mistral-7b", 7'241'732'096, {8192, 32'000, 32, 4096, 32, 8, 128, 14'336, 4096}},
  };
  for (const auto& [name, published, it] : dense)
    check(name, published, it.parameters(3 * it.h * it.f), it.macs(3 * it.h * it.f));
  // Eight experts and their router, of which two are run.
  const Llama mixtral{4096, 32'000, 32, 4096, 32, 8, 128, 14'336};
  const std::int64_t expert = 3 * mixtral.h * mixtral.f, router = 8 * mixtral.h;
  check("mixtral-8x7b", 46'702'792'704, mixtral.parameters(8 * expert + router),
        mixtral.macs(2 * expert + router));
}

TEST_CASE("DeepSeek-V3 has 671 billion parameters, of which 37 billion are run") {
  constexpr std::int64_t s = 4096, v = 129'280, h = 7168, a = 128;
  // Queries of rank 1,536, keys and values of rank 512; heads of 128 features without positions, 64
  // with, values of 128; two norms of the ranks.
  constexpr std::int64_t latent =
      h * 1536 + 1536 * a * (128 + 64) + h * (512 + 64) + 512 * a * (128 + 128) + a * 128 * h;
  constexpr std::int64_t dense = 3 * h * 18'432, expert = 3 * h * 2048, router = h * 256;
  constexpr std::int64_t norms = 61 * (2 * h + 1536 + 512) + h;
  constexpr std::int64_t parameters =
      2 * v * h + 61 * latent + 3 * dense + 58 * (257 * expert + router) + norms;
  // Published: 671 billion; its checkpoint's main model has 14,848 biases of routers more.
  CHECK(parameters + 58 * 256 == 671'026'419'200);
  constexpr std::int64_t run = v * h + 61 * latent + 3 * dense + 58 * (9 * expert + router);
  CHECK((run + v * h) / 1'000'000'000 == 37);
  const Workload net = build(read_workload(read_document(shipped("deepseek-v3"))));
  CHECK(net.parameters == parameters);
  CHECK(net.macs == s * run + 61 * s * (s + 1) / 2 * a * (128 + 64 + 128));
}

TEST_CASE("earlier language models have their published sizes") {
  const auto check = [](const char* name, std::int64_t parameters, std::int64_t macs) {
    CAPTURE(name);
    const Workload net = build(read_workload(read_document(shipped(name))));
    CHECK(net.parameters == parameters);
    CHECK(net.macs == macs);
  };
  // A tied head; blocks of 12 h^2 + 13 h. In billions: 1.5 (A. Radford et al., 2019: 1,542 million
  // in their table, 1,557,611,200 in the released weights), 175 (T. Brown et al., 2020), and 22,
  // 175, 530 and 1,000 (V. Korthikanti et al., 2022).
  const auto gpt = [&](const char* name, std::int64_t s, std::int64_t v, std::int64_t h,
                       std::int64_t blocks) {
    const std::int64_t parameters = (v + s + 2) * h + blocks * (12 * h * h + 13 * h);
    check(name, parameters, blocks * (12 * s * h * h + 2 * s * s * h) + s * h * v);
    return parameters;
  };
  CHECK(gpt("gpt2-xl", 1024, 50'257, 1600, 48) == 1'557'611'200);
  constexpr std::int64_t billion = 1'000'000'000, half = billion / 2;
  CHECK((gpt("gpt3-175b", 2048, 50'257, 12'288, 96) + half) / billion == 175);
  CHECK((gpt("megatron-22b", 2048, 51'200, 6144, 48) + half) / billion == 22);
  CHECK((gpt("megatron-175b", 2048, 51'200, 12'288, 96) + half) / billion == 175);
  CHECK((gpt("megatron-530b", 2048, 51'200, 20'480, 105) + half) / billion == 530);
  CHECK((gpt("megatron-1t", 2048, 51'200, 25'600, 128) + 5 * billion) / (10 * billion) == 101);
  // Tokens of 512 features, two dense layers to and from 1,024 without biases, positions 2,050, no
  // last norm: 331,196,416 in the released weights.
  constexpr std::int64_t h = 1024, s = 2048, v = 50'272;
  constexpr std::int64_t opt = v * 512 + 2050 * h + 2 * 512 * h + 24 * (12 * h * h + 13 * h);
  CHECK(opt == 331'196'416);
  check("opt-350m", opt, s * (v * 512 + 2 * 512 * h) + 24 * (12 * s * h * h + 2 * s * s * h));
  // Query, key and value without biases: 2,651,307,520 in the released weights.
  constexpr std::int64_t w = 2560, neo = (50'257 + s + 2) * w + 32 * (12 * w * w + 10 * w);
  CHECK(neo == 2'651'307'520);
  check("gpt-neo-2.7b", neo, s * w * 50'257 + 32 * (12 * s * w * w + 2 * s * s * w));
  // Without biases: attention 4 h^2, MLP 8 h^2, norms h; tables of 32 distances for 16 heads:
  // 737,668,096 in the released weights. The decoder has another attention, to what is encoded.
  constexpr std::int64_t words = 32'128, p = 512, tables = 2 * 32 * 16;
  constexpr std::int64_t t5 =
      words * h + 24 * (12 * h * h + 2 * h) + 24 * (16 * h * h + 3 * h) + 2 * h + tables;
  CHECK(t5 == 737'668'096);
  check("t5-large", t5, p * words * h + 24 * p * 28 * h * h + 24 * 3 * 2 * p * p * h);
}

TEST_CASE("Megatron's blocks keep what its authors count") {
  // V. Korthikanti et al., 2022, eq. 1: s b h (34 + 5 a s / h) in 16 bits. Here besides: statistics
  // of two norms, the number that scores are scaled by, and the causal mask.
  constexpr std::int64_t s = 2048, h = 6144, a = 64, b = 4;
  const auto saved = [&](std::int64_t blocks) {
    return build(read_workload(read_document(shipped("megatron-22b"))),
                 {.batch = b, .dtype = DType::fp16, .with = {{{"blocks", {}}, blocks}}})
        .saved_bytes.count();
  };
  CHECK(saved(3) - saved(2) == s * b * h * 34 + 5 * a * s * s * b + 16 * s * b + 8 + s * s);
}

TEST_CASE("Llama 3 in PyTorch 2 keeps what its closed form says") {
  // bf16, a block: inputs of two norms with a number each, what they made; query, key and value
  // with positions, the result with a number a head; gate, its SiLU, the other product, theirs.
  constexpr std::int64_t b = 2, s = 8192, h = 4096, heads = 32, kv = 8 * 128, f = 14'336;
  const auto saved = [&](std::int64_t blocks) {
    return build(read_workload(read_document(shipped("llama3-8b"))),
                 {.batch = b, .dtype = DType::bf16, .with = {{{"blocks", {}}, blocks}}})
        .saved_bytes.count();
  };
  CHECK(saved(3) - saved(2) == b * s * (2 * (4 * h + 2 * h + 2 * kv + 4 * f) + 4 * (2 + heads)));
}
