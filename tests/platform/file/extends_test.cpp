#include "platform/read_text.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;
using plimsoll::test::Files;
using plimsoll::test::Messages;
using plimsoll::test::read_text;

namespace {

const Files kFiles{
    {"base",
     "platform: base\nabout: \"from below\"\n"
     "memories: {hbm: {capacity: 16 GiB, bandwidth: 900 GB/s}, dram: {capacity: 1 TB}}\n"
     "processors: {gpu: {memory: hbm, compute: {fp32: 10 TFLOP/s, fp16: 20 TFLOP/s}}}\n"
     "links: {pcie: {between: [hbm, dram], bandwidth: {to_hbm: 1 GB/s, to_dram: 2 GB/s}}}\n"},
    {"middle", "platform: middle\nextends: base\nmemories: {hbm: {capacity: 32 GiB}}\n"},
    {"tick", "platform: tick\nextends: tock\n"},
    {"tock", "platform: tock\nextends: tick\n"},
    {"broken", "platform: broken\nmemories: [\n"}};

}  // namespace

TEST_CASE("an extended platform is merged key by key, the last word wins") {
  const auto [platform, messages] = read_text(
      "platform: top\nextends: middle\n"
      "processors: {gpu: {compute: {fp32: 11 TFLOP/s}}}\n"
      "links: {pcie: {bandwidth: 3 GB/s}}\n"
      "power_limit: 5 W\n",
      kFiles);
  CHECK(messages == Messages{});
  CHECK(platform.name == "top");
  CHECK(platform.about == "from below");
  CHECK(platform.memories[0].capacity == Bytes{std::int64_t{32} << 30});
  CHECK(platform.memories[0].read.bandwidth == ByteRate{900'000'000'000});
  CHECK(platform.processors[0].compute[static_cast<std::size_t>(DType::fp32)] ==
        FlopRate{11'000'000'000'000});
  CHECK(platform.processors[0].compute[static_cast<std::size_t>(DType::fp16)] ==
        FlopRate{20'000'000'000'000});
  CHECK(platform.links[0].bandwidth[0] == ByteRate{3'000'000'000});
  CHECK(platform.links[0].bandwidth[1] == ByteRate{3'000'000'000});
  CHECK(platform.power_limit == Power{5'000'000'000});
}

TEST_CASE("another allocator takes the place of the one that is extended, with its settings") {
  const Files files{
      {"base",
       "platform: base\nmemories: {hbm: {capacity: 1 GiB, "
       "allocator: {caching: {roundup_power2_divisions: 4, max_split_size: 32 MiB}}}}\n"
       "processors: {gpu: {memory: hbm}}\n"}};
  const auto allocator_of = [&](const std::string& allocator) {
    const auto [platform, messages] = read_text(
        "platform: top\nextends: base\nmemories: {hbm: {allocator: " + allocator + "}}\n", files);
    CHECK(messages == Messages{});
    return platform.memories[0];
  };
  CHECK(allocator_of("{bfc: {growth: true}}").allocator == AllocatorKind::bfc);
  const Memory merged = allocator_of("{caching: {roundup_power2_divisions: 8}}");
  CHECK(merged.caching.roundup_power2_divisions == 8);
  CHECK(merged.caching.max_split_size == Bytes{32 << 20});
}

TEST_CASE("errors of an extended platform are located where they are written") {
  CHECK(read_text("platform: top\nextends: base\nprocessors: {gpu: {memory: hbn}}\n", kFiles)
            .messages ==
        Messages{"p.yaml:3:28: error: there is no memory `hbn`; did you mean `hbm`?"});
}

TEST_CASE("what cannot be extended is refused") {
  CHECK(read_text("platform: top\nextends: bass\n", kFiles).messages.at(0) ==
        "p.yaml:2:10: error: there is no platform `bass` to extend");
  CHECK(read_text("platform: top\nextends: tick\n", kFiles).messages.at(0) ==
        "tock.yaml:2:10: error: `extends` makes a circle: p.yaml -> tick.yaml -> tock.yaml -> "
        "tick.yaml");
  CHECK(read_text("platform: top\nextends: [base]\n", kFiles)
            .messages.at(0)
            .starts_with("p.yaml:2:10: error: found a list"));
  CHECK(read_text("platform: top\nextends: broken\n", kFiles)
            .messages.at(0)
            .starts_with("broken.yaml:"));
  CHECK(read_text("platform: top\nextends: base\nmemories: {a.b: {capacity: 1 B}}\n", kFiles)
            .messages ==
        Messages{"p.yaml:3:12: error: `a.b`: a name that holds a dot cannot be extended"});
}

TEST_CASE("a chain of extensions has an end") {
  Files files = kFiles;
  for (int i = 0; i < 40; ++i) {
    files["f" + std::to_string(i)] = "platform: f\nextends: f" + std::to_string(i + 1) + "\n";
  }
  CHECK(read_text("platform: top\nextends: f0\n", files).messages.at(0) ==
        "f15.yaml:2:10: error: more than 16 platforms extend each other");
}
