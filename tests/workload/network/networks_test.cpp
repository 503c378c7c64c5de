#include "workload/workload_text.hpp"

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
  CHECK(built("lstm-lm").macs == 2 * 35 * 4 * 650 * (650 + 650) + 35 * 650 * 10'000);
}
