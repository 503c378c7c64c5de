// The platforms that ship: each loads, and no number of theirs is without a source.
#include "platform/core/topology.hpp"
#include "platform/file/platform_file.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

const std::filesystem::path kFolder = std::filesystem::path(PLIMSOLL_SOURCE_DIR) / "platforms";

Platform load(const std::string& name) {
  Diagnostics diagnostics;
  return load_platform(kFolder / (name + ".yaml"), diagnostics);
}

std::vector<std::filesystem::path> all_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

/// Paths of the numbers of a document, found without the loader's help.
void collect_numbers(const Node& node, const std::string& path, std::vector<std::string>& numbers) {
  for (const Node::Entry& entry : node.entries()) {
    const std::string& key = entry.key.scalar();
    if (key == "provenance" || key == "about" || key == "platform" || key == "extends") continue;
    collect_numbers(entry.value, path.empty() ? key : path + "." + key, numbers);
  }
  if (node.is_scalar() && std::isdigit(static_cast<unsigned char>(node.scalar().front())) != 0) {
    numbers.push_back(path);
  }
}

bool is_covered(const std::string& number, const Node& provenance) {
  return std::ranges::any_of(provenance.entries(), [&](const Node::Entry& entry) {
    const std::string& path = entry.key.scalar();
    return number == path || number.starts_with(path + ".");
  });
}

MemoryId memory(const Platform& platform, const std::string& name) {
  return platform.find_memory(name).value();
}

}  // namespace

TEST_CASE("every platform that ships loads without errors or warnings") {
  for (const auto& file : all_files()) {
    INFO(file);
    Diagnostics diagnostics;
    const Platform platform = load_platform(file, diagnostics);
    CHECK(platform.name == file.stem().string());
    CHECK_FALSE(platform.about.empty());
    for (const Diagnostic& d : diagnostics.all()) FAIL_CHECK(to_text(d));
  }
}

TEST_CASE("every number of the platforms that ship has a quality and a source") {
  for (const auto& file : all_files()) {
    INFO(file);
    const Node document = read_document(file);
    const Node* provenance = document.find("provenance");
    REQUIRE(provenance != nullptr);
    std::vector<std::string> numbers;
    collect_numbers(document, "", numbers);
    CHECK_FALSE(numbers.empty());
    for (const std::string& number : numbers) {
      INFO(number);
      CHECK(is_covered(number, *provenance));
    }
    const Platform platform = load(file.stem().string());
    CHECK(platform.without_provenance == std::vector<std::string>{});
    for (const Provenance& entry : platform.provenance) CHECK_FALSE(entry.source.empty());
  }
}

TEST_CASE("the platforms that the manual promises are there") {
  for (const std::string name : {"v100-sxm2-16gb",
                                 "v100-sxm2-32gb",
                                 "v100-pcie-16gb",
                                 "v100-pcie-32gb",
                                 "a100-sxm-40gb",
                                 "a100-sxm-80gb",
                                 "a100-pcie-40gb",
                                 "a100-pcie-80gb",
                                 "h100-sxm-80gb",
                                 "h100-pcie-80gb",
                                 "h200-sxm-141gb",
                                 "rtx-3090",
                                 "rtx-4090",
                                 "t4",
                                 "p100-sxm2-16gb",
                                 "titan-v-12gb",
                                 "dgx-1-v100",
                                 "dgx-a100",
                                 "dgx-h100",
                                 "v100-sxm2-host",
                                 "pcie-4gpu-workstation",
                                 "raspberry-pi-4b",
                                 "jetson-orin-nano-8gb",
                                 "stm32h743",
                                 "stm32u575",
                                 "stm32l4r5",
                                 "stm32h7a3",
                                 "efr32mg24",
                                 "gap9",
                                 "esp32s3",
                                 "jetson-tx2",
                                 "nrf52840",
                                 "nrf52840-storages",
                                 "mkr1000"}) {
    INFO(name);
    CHECK(std::filesystem::exists(kFolder / (name + ".yaml")));
  }
}

TEST_CASE("an SD card over SPI is no faster than the bus") {
  for (const auto& [board, most] : {std::pair("mkr1000", 1'500'000), {"nrf52840", 4'000'000}}) {
    CAPTURE(board);
    const Platform platform = load(board);
    const auto spi = std::ranges::find(platform.links, "spi", &Link::name);
    REQUIRE(spi != platform.links.end());
    for (const ByteRate rate : spi->bandwidth) CHECK(rate == ByteRate{most});
    const Memory& sd = platform[memory(platform, "sd")];
    CHECK(sd.read.bandwidth > spi->bandwidth[0]);
    CHECK(std::ranges::count(platform.without_provenance, "links.spi.bandwidth") == 0);
  }
}

TEST_CASE("the example of the manual overrides what it says and nothing else") {
  const Platform platform = load("v100-sxm2-host");
  const Memory& hbm = platform[memory(platform, "hbm")];
  CHECK(hbm.capacity == Bytes{std::int64_t{16} << 30});
  CHECK(hbm.usable() == Bytes{(std::int64_t{16} << 30) - (std::int64_t{450} << 20)});
  CHECK(hbm.read.bandwidth == ByteRate{900'000'000'000});
  REQUIRE(platform.processors.size() == 1);
  const Processor& gpu = platform.processors[0];
  CHECK(gpu.compute[static_cast<std::size_t>(DType::fp32)] == FlopRate{15'700'000'000'000});
  CHECK(gpu.efficiency[static_cast<std::size_t>(OperatorClass::convolution)] == Ratio{750'000'000});
  CHECK(gpu.power->idle == Power{55'000'000'000});
  REQUIRE(platform.links.size() == 1);
  CHECK(platform.links[0].bandwidth[0] == ByteRate{12'300'000'000});
}

TEST_CASE("in the DGX-1 mesh each GPU has six NVLinks, and peers at most two hops away") {
  const Platform platform = load("dgx-1-v100");
  const Topology topology(platform);
  for (int i = 0; i < 8; ++i) {
    const MemoryId from = memory(platform, "hbm" + std::to_string(i));
    std::int64_t rate = 0;
    for (const Link& link : platform.links) {
      const bool is_end = link.between[0] == from || link.between[1] == from;
      if (is_end && link.name.starts_with("nvlink")) rate += link.bandwidth[0].count();
    }
    CHECK(rate == 6 * 25'000'000'000);
    int neighbours = 0;
    for (int j = 0; j < 8; ++j) {
      const Route* route = topology.route(from, memory(platform, "hbm" + std::to_string(j)));
      REQUIRE(route != nullptr);
      CHECK(route->hops.size() <= 2);
      neighbours += route->hops.size() == 1 ? 1 : 0;
    }
    CHECK(neighbours == 4);
  }
}

TEST_CASE(
    "DGX-1 routes: direct, over a common neighbour, and to the host through a shared switch") {
  const Platform platform = load("dgx-1-v100");
  const Topology topology(platform);
  const auto route = [&](const char* from, const char* to) {
    return *topology.route(memory(platform, from), memory(platform, to));
  };
  CHECK(platform[route("hbm0", "hbm1").hops.at(0).link].name == "nvlink0-1");
  CHECK(route("hbm0", "hbm1").bandwidth == ByteRate{25'000'000'000});
  CHECK(route("hbm0", "hbm3").bandwidth == ByteRate{50'000'000'000});

  // 0 to 5: over 1 the links give 25 and 50 GB/s, over 4 they give 50 and 25: a tie at 25, equal
  // latencies, so the first link decides: nvlink0-1 stands before nvlink0-4.
  const Route over = route("hbm0", "hbm5");
  REQUIRE(over.hops.size() == 2);
  CHECK(platform[over.hops[0].link].name == "nvlink0-1");
  CHECK(platform[over.hops[1].link].name == "nvlink1-5");
  CHECK(over.latency == Time{4'000'000});

  // 0 to 7: over 3 50 and 25, over 4 50 and 50 GB/s: the wider one.
  CHECK(platform[route("hbm0", "hbm7").hops.at(0).link].name == "nvlink0-4");

  const Route host = route("hbm1", "dram");
  REQUIRE(host.hops.size() == 2);
  CHECK(platform[host.hops[1].link].name == "uplink0");
  CHECK(host.latency == Time{10'000'000});
}

TEST_CASE("behind an NVSwitch every GPU is two hops from every other") {
  const Platform platform = load("dgx-h100");
  CHECK(platform.processors.size() == 8);
  CHECK(platform.memories.size() == 8 + 1 + 1);  // hbm0..7, dram, the switch
  const Topology topology(platform);
  const Route* route = topology.route(memory(platform, "hbm2"), memory(platform, "hbm7"));
  REQUIRE(route != nullptr);
  CHECK(route->hops.size() == 2);
  CHECK(route->bandwidth == ByteRate{450'000'000'000});
  CHECK(platform[memory(platform, "nvswitch")].is_switch);
}
