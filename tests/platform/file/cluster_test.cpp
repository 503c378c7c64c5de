#include "platform/read_text.hpp"

#include <catch2/catch.hpp>

using namespace plimsoll;
using plimsoll::test::Messages;
using plimsoll::test::read_text;

namespace {

std::string node(const std::string& cluster) {
  return "platform: c\n"
         "memories: {hbm: {capacity: 16 GiB}, dram: {capacity: 1 TB}}\n"
         "processors: {gpu: {memory: hbm}, cpu: {memory: dram}}\n"
         "links: {pcie: {between: [hbm, dram], bandwidth: {to_hbm: 1 GB/s, to_dram: 2 GB/s}}}\n"
         "cluster: {" +
         cluster + "}\n";
}

std::vector<std::string> names(const auto& parts) {
  std::vector<std::string> result;
  for (const auto& part : parts) result.push_back(part.name);
  return result;
}

std::vector<std::string> ends(const Platform& platform) {
  std::vector<std::string> result;
  for (const Link& link : platform.links) {
    result.push_back(platform[link.between[0]].name + "-" + platform[link.between[1]].name);
  }
  return result;
}

using Names = std::vector<std::string>;
const std::string kLink = ", link: {name: nv, bandwidth: 25 GB/s}";

}  // namespace

TEST_CASE("copies are numbered from 0; what is shared stays, with its processor") {
  const auto [platform, messages] = read_text(node("count: 2, shared: [dram]"));
  CHECK(messages == Messages{});
  CHECK(names(platform.memories) == Names{"hbm0", "hbm1", "dram"});
  CHECK(names(platform.processors) == Names{"gpu0", "gpu1", "cpu"});
  CHECK(names(platform.links) == Names{"pcie0", "pcie1"});
  // By its key in the file, each is told of.
  CHECK(platform.memories[1].key() == "hbm");
  CHECK(platform.memories[2].key() == "dram");
  CHECK(platform.processors[1].key() == "gpu");
  CHECK(ends(platform) == Names{"hbm0-dram", "hbm1-dram"});
  CHECK(platform[platform.processors[1].memory].name == "hbm1");
  CHECK(platform.links[1].bandwidth[0] == ByteRate{2'000'000'000});  // to dram
}

TEST_CASE("the named topologies") {
  const auto links = [](const std::string& cluster) {
    const auto [platform, messages] = read_text(node(cluster + ", shared: [dram]" + kLink));
    CHECK(messages == Messages{});
    Names made = ends(platform);
    return Names(made.begin() + 4, made.end());  // after the four PCIe links
  };
  CHECK(links("count: 4, topology: chain") == Names{"hbm0-hbm1", "hbm1-hbm2", "hbm2-hbm3"});
  CHECK(links("count: 4, topology: ring") ==
        Names{"hbm0-hbm1", "hbm1-hbm2", "hbm2-hbm3", "hbm3-hbm0"});
  CHECK(links("count: 4, topology: switch") == Names{"hbm0-nv", "hbm1-nv", "hbm2-nv", "hbm3-nv"});
  CHECK(links("count: 4, topology: mesh") ==
        Names{"hbm0-hbm1", "hbm0-hbm2", "hbm0-hbm3", "hbm1-hbm2", "hbm1-hbm3", "hbm2-hbm3"});
}

TEST_CASE("links of a topology are named by what they join") {
  const auto [ring, none] = read_text(node("count: 3, topology: ring, shared: [dram]" + kLink));
  CHECK(none == Messages{});
  CHECK(names(ring.links) == Names{"pcie0", "pcie1", "pcie2", "nv0-1", "nv1-2", "nv2-0"});
  const auto [hub, nothing] = read_text(node("count: 2, topology: switch, shared: [dram]" + kLink));
  CHECK(nothing == Messages{});
  CHECK(names(hub.links) == Names{"pcie0", "pcie1", "nv0", "nv1"});
  CHECK(hub.memories.back().is_switch);
  CHECK(hub.memories.back().capacity == Bytes{0});
}

TEST_CASE("a link may name copies, and shared switches") {
  const auto [platform, messages] = read_text(R"(platform: c
memories: {hbm: {capacity: 16 GiB}}
switches: [plx]
processors: {gpu: {memory: hbm}}
links:
  up: {between: [hbm, plx]}
  nv: {between: [hbm1, hbm0]}
cluster: {count: 2, shared: [plx]}
)");
  CHECK(messages == Messages{});
  CHECK(names(platform.links) == Names{"up0", "up1", "nv"});
  CHECK(ends(platform) == Names{"hbm0-plx", "hbm1-plx", "hbm1-hbm0"});
}

TEST_CASE("clusters that cannot be are refused") {
  const auto messages = [](const std::string& cluster) {
    return read_text(node(cluster)).messages;
  };
  CHECK(messages("count: 4097") ==
        Messages{"p.yaml:5:18: error: found `4097`, expected a whole number from 1 to 4096"});
  CHECK(messages("count: 2, shared: [drom]") ==
        Messages{"p.yaml:5:30: error: there is no memory `drom` to share; did you mean `dram`?"});
  CHECK(messages("count: 2, shared: [dram, dram]") ==
        Messages{"p.yaml:5:36: error: `dram` is shared twice"});
  CHECK(messages("count: 2, shared: [dram], topology: ring" + kLink) ==
        Messages{"p.yaml:5:10: error: a ring has at least 3 copies"});
  CHECK(messages("count: 2, shared: [dram], topology: chain") ==
        Messages{"p.yaml:5:10: error: the cluster has a `topology` but no `link`"});
  CHECK(messages("count: 2, shared: [dram]" + kLink) ==
        Messages{"p.yaml:5:10: error: the cluster has a `link` but no `topology`"});
  CHECK(
      messages("count: 2, topology: chain" + kLink) ==
      Messages{"p.yaml:5:44: error: the cluster's link needs `joins`: which memory of each copy"});
  CHECK(messages("count: 2, shared: [dram], topology: chain, link: {name: nv, joins: dram}") ==
        Messages{
            "p.yaml:5:78: error: `dram` is not a memory that each copy has; there is only `hbm`"});
  // 400 x 399 / 2 links of the mesh and 400 PCIe links.
  CHECK(
      messages("count: 400, shared: [dram], topology: mesh" + kLink) ==
      Messages{
          "p.yaml:5:10: error: this cluster makes 80200 parts of a kind, expected at most 65536"});
}

TEST_CASE("nodes are copies of a cluster, whose numbers go on") {
  const auto [platform, messages] =
      read_text(node("count: 2, shared: [dram], topology: switch" + kLink +
                     ", nodes: {count: 2, topology: switch, link: {name: ib, latency: 1 us}}"));
  CHECK(messages == Messages{});
  CHECK(names(platform.memories) ==
        Names{"hbm0", "hbm1", "hbm2", "hbm3", "dram0", "dram1", "nv0", "nv1", "ib"});
  CHECK(names(platform.processors) == Names{"gpu0", "gpu1", "gpu2", "gpu3", "cpu0", "cpu1"});
  CHECK(names(platform.links) ==
        Names{"pcie0", "pcie1", "pcie2", "pcie3", "nv0", "nv1", "nv2", "nv3", "ib0", "ib1"});
  CHECK(ends(platform) == Names{"hbm0-dram0", "hbm1-dram0", "hbm2-dram1", "hbm3-dram1", "hbm0-nv0",
                                "hbm1-nv0", "hbm2-nv1", "hbm3-nv1", "nv0-ib", "nv1-ib"});
  CHECK(platform.links[9].latency == Time{1'000'000});
}

TEST_CASE("copies at the same place of their nodes share a rail") {
  const auto of = [](const std::string& nodes) {
    return read_text(R"(platform: c
memories: {hbm: {capacity: 16 GiB}, dram: {capacity: 1 TB}}
switches: [rail, spine]
processors: {gpu: {memory: hbm}}
links: {nic: {between: [hbm, rail]}, up: {between: [rail, spine]}, host: {between: [dram, rail]}}
cluster:
  count: 2
  shared: [dram]
  nodes: {)" + nodes +
                     "}\n");
  };
  const auto [platform, messages] = of("count: 3, shared: [spine], rails: [rail]");
  CHECK(messages == Messages{});
  CHECK(names(platform.memories) == Names{"hbm0", "hbm1", "hbm2", "hbm3", "hbm4", "hbm5", "dram0",
                                          "dram1", "dram2", "rail0", "rail1", "spine"});
  CHECK(ends(platform) == Names{"hbm0-rail0", "hbm1-rail1", "hbm2-rail0", "hbm3-rail1",
                                "hbm4-rail0", "hbm5-rail1", "rail0-spine", "rail1-spine",
                                "dram0-rail0", "dram0-rail1", "dram1-rail0", "dram1-rail1",
                                "dram2-rail0", "dram2-rail1"});
  CHECK(of("count: 2, rails: [dram]").messages ==
        Messages{"p.yaml:9:29: error: `dram` is a memory; expected a switch for a rail"});
  CHECK(of("count: 2, shared: [rail], rails: [rail]").messages ==
        Messages{"p.yaml:9:45: error: `rail` is shared by the copies of a node, and is no rail: "
                 "each has one of its own"});
  CHECK(of("count: 2, rails: [rial]").messages ==
        Messages{"p.yaml:9:29: error: there is no memory `rial` to share; did you mean `rail`?"});
}

TEST_CASE("nodes are joined at what their copies share, and may share that, too") {
  const auto of = [](const std::string& nodes) {
    return read_text(R"(platform: c
memories: {hbm: {capacity: 16 GiB}, dram: {capacity: 1 TB}, disk: {capacity: 1 TB}}
switches: [nic]
processors: {gpu: {memory: hbm}}
links: {up: {between: [hbm, nic]}, pcie: {between: [hbm, dram]}, bus: {between: [dram, disk]}}
cluster:
  count: 2
  shared: [dram, disk, nic]
  topology: mesh
  link: {name: nv}
  nodes: {)" + nodes +
                     "}\n");
  };
  const auto [platform, messages] = of(
      "count: 3, shared: [disk], topology: ring, link: {name: ib, joins: nic, bandwidth: 1 GB/s}");
  CHECK(messages == Messages{});
  CHECK(names(platform.memories) == Names{"hbm0", "hbm1", "hbm2", "hbm3", "hbm4", "hbm5", "dram0",
                                          "dram1", "dram2", "disk", "nic0", "nic1", "nic2"});
  const Names made = ends(platform);
  CHECK(Names(made.begin() + 12, made.end()) == Names{"dram0-disk", "dram1-disk", "dram2-disk",
                                                      "hbm0-hbm1", "hbm2-hbm3", "hbm4-hbm5",
                                                      "nic0-nic1", "nic1-nic2", "nic2-nic0"});
  CHECK(names(platform.links).back() == "ib2-0");
  CHECK(of("count: 2, topology: mesh, link: {name: ib}").messages ==
        Messages{"p.yaml:11:43: error: the link of nodes needs `joins`: which shared memory or "
                 "switch of each"});
  CHECK(of("count: 2, topology: mesh, link: {name: ib, joins: hbm}").messages ==
        Messages{"p.yaml:11:61: error: `hbm` is not a part that each node has; there are `disk`, "
                 "`dram` and `nic`"});
  CHECK(
      of("count: 2, shared: [hbm], topology: mesh, link: {name: ib}").messages ==
      Messages{"p.yaml:10:9: error: the cluster's link needs `joins`: which memory of each copy"});
  CHECK(of("count: 2, topology: mesh").messages ==
        Messages{"p.yaml:11:10: error: the cluster's nodes have a `topology` but no `link`"});
  CHECK(of("count: 2, shared: [drum]").messages ==
        Messages{"p.yaml:11:30: error: there is no memory `drum` to share; did you mean `dram`?"});
  // 400 x 399 / 2 links of the mesh, and those of the nodes.
  CHECK_THAT(of("count: 400, topology: mesh, link: {name: ib, joins: nic, bandwidth: 1 GB/s}")
                 .messages.front(),
             Catch::Contains("parts of a kind, expected at most 65536"));
}

TEST_CASE("a copy does not take the name of another part") {
  CHECK(read_text("platform: c\nmemories: {m: {capacity: 1 GB}, m1: {capacity: 1 GB}}\n"
                  "processors: {p: {memory: m}}\ncluster: {count: 2, shared: [m1]}\n")
            .messages == Messages{"p.yaml:2:33: error: there is already a memory `m1`"});
}

TEST_CASE("what is wrong with a part is said once, not for each copy") {
  CHECK(read_text(
            "platform: c\nmemories: {m: {capacity: 1 GB, bandwidth: 1 GB/s}, d: {capacity: 1 GB}}\n"
            "processors: {p: {memory: m}}\nlinks: {l: {between: [m, d], bandwidth: 2 GB/s}}\n"
            "cluster: {count: 8, shared: [d]}\n")
            .messages ==
        Messages{"p.yaml:4:12: warning: links.l0.bandwidth of 2 GB/s is never reached: "
                 "reading `m0` takes 1 GB/s"});
}

TEST_CASE("4,096 copies are made in a moment") {
  const auto [platform, messages] =
      read_text(node("count: 4096, shared: [dram], topology: ring" + kLink));
  CHECK(messages == Messages{});
  CHECK(platform.processors.size() == 4097);
  CHECK(platform.links.size() == 2 * 4096);
}
