#include "platform/read_text.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;
using plimsoll::test::Files;
using plimsoll::test::Messages;
using plimsoll::test::read_text;

namespace {

const std::string kParts =
    "memories: {hbm: {capacity: 16 GiB, bandwidth: 900 GB/s}}\n"
    "processors: {gpu: {memory: hbm, compute: {fp32: 10 TFLOP/s}}}\n";

const Files kPlatformFiles{
    {"base", "platform: base\n" + kParts +
                 "provenance:\n"
                 "  memories.hbm: {quality: measured, source: bench}\n"
                 "  memories.hbm.capacity: {quality: datasheet, source: sheet}\n"
                 "  processors: {quality: headline, source: poster}\n"}};

std::vector<std::string> entries(const Platform& platform) {
  std::vector<std::string> result;
  for (const Provenance& p : platform.provenance) {
    result.push_back(p.path + ": " + to_text(p.quality) + ", " + p.source);
  }
  return result;
}

using Entries = std::vector<std::string>;

}  // namespace

TEST_CASE("the worst quality of any number counts, and an estimate where there is none") {
  const auto base = read_text(kPlatformFiles.at("base"));
  CHECK(base.messages == Messages{});
  CHECK(base.platform.without_provenance == Entries{});
  CHECK(base.platform.worst_quality() == Quality::headline);

  const auto some = read_text("platform: p\n" + kParts +
                              "provenance: {memories: {quality: measured, source: bench}}\n");
  CHECK(some.platform.without_provenance == Entries{"processors.gpu.compute.fp32"});
  CHECK(some.platform.worst_quality() == Quality::estimate);

  CHECK(read_text("platform: p\n" + kParts).platform.worst_quality() == Quality::estimate);
}

TEST_CASE("a number that is overridden loses the provenance that it had") {
  const auto [platform, messages] = read_text(
      "platform: p\nextends: base\nmemories: {hbm: {capacity: 32 GiB}}\n", kPlatformFiles);
  CHECK(messages == Messages{});
  CHECK(platform.without_provenance == Entries{"memories.hbm.capacity"});
  CHECK(entries(platform) ==
        Entries{"memories.hbm: measured, bench", "processors: headline, poster"});
}

TEST_CASE("an override may bring its own provenance, and better that of what it extends") {
  const auto [platform, messages] = read_text(
      "platform: p\nextends: base\nmemories: {hbm: {capacity: 32 GiB}}\n"
      "provenance:\n"
      "  memories.hbm.capacity: {quality: derived, source: mine}\n"
      "  processors: {quality: measured, source: again}\n",
      kPlatformFiles);
  CHECK(messages == Messages{});
  CHECK(platform.without_provenance == Entries{});
  CHECK(entries(platform) == Entries{"memories.hbm: measured, bench",
                                     "memories.hbm.capacity: derived, mine",
                                     "processors: measured, again"});
  CHECK(platform.worst_quality() == Quality::derived);
}

TEST_CASE("a value set from outside has no provenance") {
  Diagnostics diagnostics;
  Node node = parse_document(kPlatformFiles.at("base"), "base.yaml");
  node.set("memories.hbm.bandwidth", parse_value("1 TB/s", "--set #1"), diagnostics);
  const Platform platform = read_platform(node, diagnostics);
  CHECK_FALSE(diagnostics.has_errors());
  CHECK(platform.memories[0].read.bandwidth == ByteRate{1'000'000'000'000});
  CHECK(platform.without_provenance == Entries{"memories.hbm.bandwidth"});
}

TEST_CASE("provenance of what is not there is refused, with the nearest path") {
  CHECK(read_text("platform: p\n" + kParts +
                  "provenance: {processors.gpu.compute.fp23: {quality: measured, source: x}}\n")
            .messages ==
        Messages{
            "p.yaml:4:14: error: provenance of `processors.gpu.compute.fp23`, which this platform "
            "does not have; did you mean `processors.gpu.compute.fp32`?"});
  CHECK(
      read_text("platform: p\n" + kParts + "provenance: {memories: {quality: guess, source: x}}\n")
          .messages.at(0)
          .starts_with("p.yaml:4:34: error: found `guess`, expected one of `measured`"));
}

TEST_CASE("one number set where there were shares apart takes their provenance away") {
  Node document = parse_document(
      "platform: p\nmemories: {hbm: {capacity: 16 GiB}}\n"
      "processors: {gpu: {memory: hbm, efficiency: {matmul: {compute: 120 %, bandwidth: 0.5}}}}\n"
      "provenance:\n"
      "  memories: {quality: measured, source: bench}\n"
      "  processors.gpu.efficiency.matmul.compute: {quality: measured, source: bench}\n"
      "  processors.gpu.efficiency.matmul.bandwidth: {quality: measured, source: bench}\n",
      "p.yaml");
  Diagnostics diagnostics;
  document.set("processors.gpu.efficiency.matmul", parse_value("0.7", "--set #1"), diagnostics);
  const Platform platform = read_platform(document, diagnostics, {});
  CHECK_FALSE(diagnostics.has_errors());
  CHECK(platform.processors.at(0).efficiency[0] == Ratio{700'000'000});
  CHECK(platform.without_provenance == Entries{"processors.gpu.efficiency.matmul"});
  // In a file of its own, one number where the provenance says more is a mistake.
  CHECK_FALSE(read_text("platform: p\n" + kParts +
                        "provenance: {processors.gpu.compute.fp32.peak: {quality: measured, "
                        "source: bench}}\n")
                  .messages.empty());
}
