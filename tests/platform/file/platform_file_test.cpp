#include "platform/file/platform_file.hpp"

#include "platform/read_text.hpp"

#include <set>

#include <catch2/catch.hpp>

using namespace plimsoll;
using plimsoll::test::Messages;
using plimsoll::test::read_text;

namespace {

/// A platform with `memory` as the inside of hbm, `gpu` of the processor and `more` below.
std::string with(const std::string& memory, const std::string& gpu = "",
                 const std::string& more = "") {
  return "platform: p\n"
         "memories:\n"
         "  hbm: {" +
         memory +
         "}\n"
         "  dram: {capacity: 64 GiB}\n"
         "processors:\n"
         "  gpu: {memory: hbm" +
         gpu + "}\n" + more;
}

const std::string kSize = "capacity: 16 GiB";

Messages messages(const std::string& text) {
  return read_text(text).messages;
}

}  // namespace

TEST_CASE("a platform is read with all its keys") {
  const auto [platform, messages] = read_text(R"(platform: board
about: "all keys"
memories:
  sram: {capacity: 768 KiB, bandwidth: 320 MB/s, reserved: 64 KiB, allocator: best-fit, alignment: 32 B}
  flash:
    capacity: unlimited
    latency: 1 us
    read: {latency: 109 us, bandwidth: 5 MB/s, energy: 2 nJ/B}
    write: {bandwidth: 4 MB/s}
    energy: 3 nJ/B
    block: 512 B
    erase: {block: 4 KiB, time: 85 ms}
    endurance: 10000
processors:
  cpu:
    memory: sram
    streams: 2
    compute: {fp32: 6.37 MFLOP/s, int8: unlimited}
    efficiency: {matmul: 82 %}
    launch_overhead: 2 us
    host_overhead: 9 us
    collectives: {start: 36 us, memory: 100 MB/s, slows: 10 %}
    decision_overhead: {per_operator: 5 us, per_candidate: 100 ns}
    power: {idle: 4 mW, active: 25.2 mW}
links:
  bus: {between: [sram, flash], bandwidth: {to_sram: 2 MB/s, to_flash: 1 MB/s}, latency: 3 us, duplex: half,
        sharing: fair, power: {idle: 0 W, active: 1 mW}}
battery: {energy: 9 kJ, usable: 0.8, max_power: 1 W}
energy: {boundary: board, regulator_efficiency: 0.9}
power_limit: 500 mW
)");
  CHECK(messages == Messages{});
  CHECK(platform.name == "board");
  CHECK(platform.about == "all keys");
  const Memory& sram = platform.memories.at(0);
  CHECK(sram.usable() == Bytes{704 * 1024});
  CHECK(sram.allocator == AllocatorKind::best_fit);
  CHECK(sram.alignment == Bytes{32});
  CHECK(sram.write.bandwidth == ByteRate{320'000'000});
  const Memory& flash = platform.memories.at(1);
  CHECK(flash.capacity.is_unlimited());
  CHECK(flash.read.latency == Time{109'000'000});
  CHECK(flash.write.latency == Time{1'000'000});
  CHECK(flash.read.energy == EnergyPerByte{2'000'000'000});
  CHECK(flash.write.energy == EnergyPerByte{3'000'000'000});
  CHECK(flash.block == Bytes{512});
  CHECK(flash.erase_block == Bytes{4096});
  CHECK(flash.erase_time == Time{85'000'000'000});
  CHECK(flash.endurance == 10'000);
  const Processor& cpu = platform.processors.at(0);
  CHECK(cpu.memory == MemoryId{0});
  CHECK(cpu.streams == 2);
  CHECK(cpu.compute[static_cast<std::size_t>(DType::fp32)] == FlopRate{6'370'000});
  CHECK(cpu.compute[static_cast<std::size_t>(DType::int8)]->is_unlimited());
  CHECK_FALSE(cpu.compute[static_cast<std::size_t>(DType::fp16)].has_value());
  CHECK(cpu.efficiency[static_cast<std::size_t>(OperatorClass::matmul)] == Ratio{820'000'000});
  CHECK(cpu.efficiency[static_cast<std::size_t>(OperatorClass::other)] == kWhole);
  CHECK(cpu.launch_overhead == Time{2'000'000});
  CHECK(cpu.host_overhead == Time{9'000'000});
  CHECK(cpu.collectives ==
        CollectiveCost{Time{36'000'000}, ByteRate{100'000'000}, Ratio{100'000'000}});
  CHECK(cpu.host == IssuingHost{});
  CHECK(cpu.decision_overhead.per_operator == Time{5'000'000});
  CHECK(cpu.decision_overhead.per_candidate == Time{100'000});
  CHECK(cpu.power->active == Power{25'200'000});
  const Link& bus = platform.links.at(0);
  CHECK(bus.bandwidth[0] == ByteRate{1'000'000});  // from sram to flash
  CHECK(bus.bandwidth[1] == ByteRate{2'000'000});
  CHECK(bus.duplex == Duplex::half);
  CHECK(bus.sharing == Sharing::fair);
  CHECK(platform.battery->usable == Ratio{800'000'000});
  CHECK(platform.regulator_efficiency == Ratio{900'000'000});
  CHECK(platform.energy_boundary == "board");
  CHECK(platform.power_limit == Power{500'000'000});
  CHECK(platform.has_energy());
}

TEST_CASE("what is left out has the defaults of the manual") {
  const auto [platform, messages] =
      read_text(with(kSize, "", "links: {pcie: {between: [hbm, dram]}}\n"));
  CHECK(messages == Messages{});
  CHECK(platform.memories[0].allocator == AllocatorKind::ideal);
  CHECK(platform.memories[0].reserved == Bytes{0});
  CHECK(platform.memories[0].read.bandwidth.is_unlimited());
  CHECK(platform.links[0].latency == Time{0});
  CHECK(platform.links[0].duplex == Duplex::full);
  CHECK(platform.links[0].sharing == Sharing::fifo);
  CHECK(platform.links[0].bandwidth[1].is_unlimited());
  CHECK_FALSE(platform.has_energy());
}

TEST_CASE("a caching allocator is given by its name, or with its settings") {
  const auto caching_of = [](const std::string& allocator) {
    const auto [platform, messages] = read_text(with(kSize + ", allocator: " + allocator));
    CHECK(messages == Messages{});
    CHECK(platform.memories[0].allocator == AllocatorKind::caching);
    return platform.memories[0].caching;
  };
  CHECK(caching_of("caching") == CachingSettings{});
  CHECK(caching_of("{caching: {}}") == CachingSettings{});
  const CachingSettings separate = caching_of(
      "{caching: {max_split_size: 128 MiB, roundup_power2_divisions: 8, "
      "garbage_collection_threshold: 80 %, expandable_segments: false}}");
  CHECK(separate.max_split_size == Bytes{128 << 20});
  CHECK(separate.roundup_power2_divisions == 8);
  CHECK(separate.garbage_collection_threshold == Ratio{800'000'000});
  CHECK_FALSE(separate.expandable_segments);
  CHECK(caching_of("{caching: {expandable_segments: true}}").expandable_segments);
  CHECK(caching_of("{caching: {max_split_size: unlimited, expandable_segments: true}}")
            .expandable_segments);
}

TEST_CASE("settings of a caching allocator that mean nothing are refused") {
  const auto messages_of = [](const std::string& settings) {
    return messages(with(kSize + ", allocator: {caching: {" + settings + "}}"));
  };
  CHECK(messages_of("max_split_size: 20 MiB") ==
        Messages{"p.yaml:3:65: error: found `20 MiB`, expected more than 20 MiB, the size of a "
                 "segment"});
  CHECK(messages_of("roundup_power2_divisions: 6") ==
        Messages{"p.yaml:3:75: error: found `6`, expected a power of two"});
  CHECK(messages_of("expandable_segments: true, max_split_size: 64 MiB") ==
        Messages{"p.yaml:3:48: error: `expandable_segments` leaves nothing to do for "
                 "`max_split_size` and `garbage_collection_threshold`, which are about separate "
                 "segments; leave them out"});
  CHECK(messages_of("max_spilt_size: 64 MiB").size() == 1);
  CHECK(messages(with(kSize + ", allocator: {cashing: {}}")).size() == 1);
}

TEST_CASE("allocators that are still to come say so") {
  CHECK(
      messages(with(kSize + ", allocator: cuda-malloc-async")) ==
      Messages{"p.yaml:3:38: error: allocator `cuda-malloc-async` is not available yet; available "
               "are `ideal`, `best-fit`, `first-fit`, `caching`, `bfc` and `static`"});
  CHECK(messages(with(kSize + ", allocator: best-fitt")) ==
        Messages{"p.yaml:3:38: error: found `best-fitt`, expected one of `ideal`, `best-fit`, "
                 "`first-fit`, `caching`, `bfc`, `static`; did you mean `best-fit`?"});
}

TEST_CASE("every allocator takes its settings as a mapping") {
  const auto memory_of = [](const std::string& more) {
    const auto [platform, messages] = read_text(with(kSize + more));
    CHECK(messages == Messages{});
    return platform.memories[0];
  };
  CHECK(memory_of(", allocator: {ideal: {}}").allocator == AllocatorKind::ideal);
  CHECK(memory_of(", allocator: first-fit, alignment: 64 B").alignment == Bytes{64});
  const Memory first = memory_of(", allocator: {first-fit: {alignment: 64 B}}");
  CHECK(first.allocator == AllocatorKind::first_fit);
  CHECK(first.alignment == Bytes{64});
  CHECK(memory_of(", allocator: bfc").bfc == BfcSettings{});
  const Memory regions =
      memory_of(", allocator: {bfc: {growth: true, first_region: 1 MiB, give_back_regions: true}}");
  CHECK(regions.allocator == AllocatorKind::bfc);
  CHECK(regions.bfc == BfcSettings{true, Bytes{1 << 20}, true});
}

TEST_CASE("a memory that is placed ahead of time names its method") {
  const auto memory_of = [](const std::string& more) {
    const auto [platform, messages] = read_text(with(kSize + more));
    CHECK(messages == Messages{});
    return platform.memories[0];
  };
  const Memory plain = memory_of(", allocator: static");
  CHECK(plain.allocator == AllocatorKind::placed);
  CHECK(plain.placed.rule == PlacementRule::best);
  const Memory exact = memory_of(", allocator: {static: {method: exact, alignment: 64 B}}");
  CHECK(exact.allocator == AllocatorKind::placed);
  CHECK_FALSE(exact.placed.rule);
  CHECK(exact.alignment == Bytes{64});
  CHECK(memory_of(", allocator: {static: {method: xla-temporal}}").placed.rule ==
        PlacementRule::xla_temporal);
  const Memory olla = memory_of(", allocator: {static: {method: olla}}");
  CHECK_FALSE(olla.placed.rule);
  CHECK(olla.placed.plans_order);
  CHECK_FALSE(exact.placed.plans_order);
}

TEST_CASE("settings of other allocators that mean nothing are refused") {
  CHECK(messages(with(kSize + ", allocator: {bfc: {give_back_regions: true}}")) ==
        Messages{"p.yaml:3:64: error: `give_back_regions` is about regions that are taken as they "
                 "are needed; expected `growth: true` beside it"});
  CHECK(messages(with(kSize + ", allocator: {best-fit: {alignment: 48 B}}")) ==
        Messages{"p.yaml:3:61: error: found `48 B`, expected a power of two"});
  CHECK(messages(with(kSize + ", allocator: {best-fit: {alignment: 8 B}}, alignment: 8 B")) ==
        Messages{"p.yaml:3:79: error: found an alignment beside that of `allocator`, expected one "
                 "of the two"});
  CHECK(messages(with(kSize + ", allocator: {bfc: {}, caching: {}}")) ==
        Messages{"p.yaml:3:38: error: found 2 allocators, expected one of `ideal`, `best-fit`, "
                 "`first-fit`, `caching`, `bfc` and `static`"});
  CHECK(messages(with(kSize + ", allocator: {}")).size() == 1);
}

TEST_CASE("names that lead nowhere are refused, with the nearest one") {
  CHECK(messages(
            "platform: p\nmemories: {hbm: {capacity: 1 GB}}\nprocessors: {gpu: {memory: hbn}}\n") ==
        Messages{"p.yaml:3:28: error: there is no memory `hbn`; did you mean `hbm`?"});
  CHECK(messages(with(kSize, "", "links:\n  pcie: {between: [hbm, drum]}\n")) ==
        Messages{"p.yaml:8:25: error: there is no memory `drum`; did you mean `dram`?"});
  CHECK(messages(with(kSize, "", "switches: [plx]\n") + "links: {a: {between: [plx, hbm]}}\n") ==
        Messages{});
  CHECK(messages("platform: p\nmemories: {hbm: {capacity: 1 GB}}\nswitches: [s]\n"
                 "processors: {gpu: {memory: s}}\n") ==
        Messages{"p.yaml:4:28: error: `s` is a switch, which holds no data"});
}

TEST_CASE("a link joins two parts") {
  CHECK(messages(with(kSize, "", "links:\n  pcie: {between: [hbm, hbm]}\n")) ==
        Messages{"p.yaml:8:25: error: link `pcie` joins `hbm` with itself"});
  CHECK(messages(with(kSize, "", "links:\n  pcie: {between: [hbm]}\n")) ==
        Messages{"p.yaml:8:19: error: the list has 1 item, expected at least 2"});
  CHECK(
      messages(with(kSize, "",
                    "links:\n  pcie: {between: [hbm, dram], bandwidth: {to_drum: 1 GB/s, to_hbm: 1 "
                    "GB/s}}\n")) ==
      Messages{"p.yaml:8:44: error: found `to_drum`, expected `to_dram` or `to_hbm`; did you mean "
               "`to_dram`?",
               "p.yaml:8:9: error: the link's bandwidth has no `to_dram`"});
}

TEST_CASE("rates and sizes are more than zero") {
  CHECK(messages(with("capacity: 0 B")) ==
        Messages{"p.yaml:3:19: error: found `0 B`, expected more than zero"});
  CHECK(messages(with(kSize + ", bandwidth: 0 GB/s")) ==
        Messages{"p.yaml:3:38: error: found `0 GB/s`, expected more than zero"});
  CHECK(messages(with(kSize, ", compute: {fp32: 0 FLOP/s}")) ==
        Messages{"p.yaml:6:38: error: found `0 FLOP/s`, expected more than zero"});
  CHECK(messages(with(kSize, "", "links:\n  a: {between: [hbm, dram], latency: 2 min}\n")) ==
        Messages{"p.yaml:8:38: error: found `2 min`, expected at most 100 s"});
  CHECK(read_text(with(kSize + ", bandwidth: -1 GB/s")).messages.size() == 1);
  CHECK(read_text(with("capacity: 16")).messages.size() == 1);
}

TEST_CASE("reserved memory is part of the capacity, an alignment is a power of two") {
  CHECK(messages(with(kSize + ", reserved: 17 GiB")) ==
        Messages{"p.yaml:3:37: error: 17 GiB reserved of a capacity of 16 GiB"});
  CHECK(messages(with(kSize + ", alignment: 48 B")) ==
        Messages{"p.yaml:3:38: error: found 48 B, expected a power of two"});
}

TEST_CASE("the same work is not paid for by power and by action") {
  const std::string power = ", power: {idle: 1 W, active: 2 W}";
  const std::string end =
      " has both a power and an energy per action; give one, or the same work counts twice";
  CHECK(messages(with(kSize + power + ", read: {energy: 1 pJ/B}")) ==
        Messages{"p.yaml:3:34: error: memory `hbm`" + end});
  CHECK(messages(with(kSize, power + ", energy_per_flop: 1 pJ/FLOP")) ==
        Messages{"p.yaml:6:29: error: processor `gpu`" + end});
  CHECK(messages(with(kSize, "",
                      "links:\n  a: {between: [hbm, dram]" + power + ", energy: 1 pJ/B}\n")) ==
        Messages{"p.yaml:8:36: error: link `a`" + end});
}

TEST_CASE("a platform has parts, and their names fit into paths") {
  CHECK(messages("platform: p\n") == Messages{"p.yaml:1:1: error: a platform needs a memory",
                                              "p.yaml:1:1: error: a platform needs a processor"});
  CHECK(
      messages("platform: p\nmemories: {a.b: {capacity: 1 B}}\nprocessors: {g: {memory: a.b}}\n") ==
      Messages{"p.yaml:2:12: error: found `a.b`, expected a name without dots and slashes"});
  CHECK(messages(with(kSize, "", "switches: [dram]\n")) ==
        Messages{"p.yaml:7:12: error: there is already a memory `dram`"});
  CHECK(messages("12\n") == Messages{"p.yaml:1:1: error: found `12`, expected a platform"});
}

TEST_CASE("all errors of a file come at once") {
  CHECK(messages("platform: p\n"
                 "memories: {hbm: {capacity: 0 B}, sd: {capacity: 1 GB, reserved: 2 GB}}\n"
                 "processors: {gpu: {memory: hbm}, cpu: {memory: rom}}\n"
                 "provenance: {memories.hbm.size: {quality: measured, source: x}}\n") ==
        Messages{"p.yaml:2:28: error: found `0 B`, expected more than zero",
                 "p.yaml:2:65: error: 1.863 GiB reserved of a capacity of 953.7 MiB",
                 "p.yaml:3:48: error: there is no memory `rom`; there are `hbm` and `sd`",
                 "p.yaml:4:14: error: provenance of `memories.hbm.size`, which this platform does "
                 "not have; did you mean `memories.hbm`?"});
}

TEST_CASE("numbers that contradict each other are warned about") {
  // 200 W + 150 W.
  CHECK(messages(with(kSize + ", power: {idle: 1 W, active: 200 W}",
                      ", power: {idle: 1 W, active: 150 W}", "power_limit: 300 W\n")) ==
        Messages{
            "p.yaml:7:14: warning: all parts at work draw 350 W, above the power_limit of 300 W"});
  // 2 GFLOP/s x 24.95 nJ/FLOP = 49.9 W: one source's rate with another's energy.
  CHECK(messages(with(kSize, ", compute: {fp32: 2 GFLOP/s}, energy_per_flop: 24.95 nJ/FLOP",
                      "power_limit: 15 W\n")) ==
        Messages{
            "p.yaml:7:14: warning: all parts at work draw 49.9 W, above the power_limit of 15 W"});
  CHECK(
      messages(with(kSize, ", power: {idle: 3 W, active: 2 W}")) ==
      Messages{
          "p.yaml:6:8: warning: processors.gpu draws more when idle (3 W) than when active (2 W)"});
  CHECK(
      messages(with(kSize, ", compute: {fp64: 2 GFLOP/s, fp32: 1 GFLOP/s}")) ==
      Messages{"p.yaml:6:8: warning: processors.gpu is faster in fp64 (2 GFLOP/s) than in fp32 (1 "
               "GFLOP/s)"});
  CHECK(messages(with(kSize + ", read: {bandwidth: 20 GB/s}", "",
                      "links:\n  pcie: {between: [hbm, dram], bandwidth: 25 GB/s}\n")) ==
        Messages{"p.yaml:8:9: warning: links.pcie.bandwidth of 25 GB/s is never reached: reading "
                 "`hbm` takes 20 GB/s"});
}

TEST_CASE("an efficiency above the peak is refused") {
  CHECK(messages(with(kSize, ", efficiency: {matmul: 1.2}")) ==
        Messages{"p.yaml:6:43: error: found `1.2`, expected a share above 0 and at most 1, such as "
                 "`0.82` or `82 %`"});
}

TEST_CASE("kinds of kernels are like others unless they are stated") {
  using K = KernelKind;
  const auto at = [](const Platform& platform, KernelKind kind) {
    return platform.processors.at(0).efficiency[static_cast<std::size_t>(kind)];
  };
  const auto [same, none] = read_text(
      with(kSize, ", efficiency: {convolution: 0.5, pooling: {compute: 1, bandwidth: 0.3}}"));
  CHECK(none == Messages{});
  for (const K kind : {K::direct_convolution, K::pointwise_convolution, K::depthwise_convolution,
                       K::convolution_backward, K::depthwise_convolution_backward}) {
    CAPTURE(to_text(kind));
    CHECK(at(same, kind) == Ratio{500'000'000});
  }
  CHECK(at(same, K::pooling_backward) == Efficiency(kWhole, Ratio{300'000'000}));
  CHECK(at(same, K::convolution_bias_backward) == kWhole);
  CHECK(same.processors.at(0).kernels == Kernels{});
  const auto [apart, nothing] = read_text(with(
      kSize,
      ", efficiency: {convolution: 0.5, direct_convolution: 0.4, pooling_backward: 0.2, "
      "attention: 0.8, fused_attention: 0.3, "
      "elementwise: 0.9, depthwise_convolution_backward: 0.1}, kernels: {tile: 64, bias: true, "
      "additions: true}"));
  CHECK(nothing == Messages{});
  CHECK(at(apart, K::direct_convolution) == Ratio{400'000'000});
  CHECK(at(apart, K::pointwise_convolution_backward) == Ratio{400'000'000});
  CHECK(at(apart, K::depthwise_convolution) == Ratio{400'000'000});
  CHECK(at(apart, K::depthwise_convolution_backward) == Ratio{100'000'000});
  CHECK(at(apart, K::convolution_backward) == Ratio{500'000'000});
  CHECK(at(apart, K::pooling_backward) == Ratio{200'000'000});
  CHECK(at(apart, K::convolution_bias) == Ratio{900'000'000});
  CHECK(at(apart, kind_of(OperatorClass::pooling)) == kWhole);
  CHECK(at(apart, kind_of(OperatorClass::attention)) == Ratio{800'000'000});
  CHECK(at(apart, K::fused_attention_backward) == Ratio{300'000'000});
  CHECK(apart.processors.at(0).kernels == Kernels{64, true, true});
  CHECK(messages(with(kSize, ", kernels: {tile: 0}"))
            .at(0)
            .find("expected a whole number from 1 to 65536") != std::string::npos);
}

TEST_CASE("every kind has a name, and stands after the one that stands for it") {
  std::set<std::string> names;
  for (std::size_t i = 0; i < kKernelKinds; ++i) {
    const auto kind = static_cast<KernelKind>(i);
    CHECK(names.insert(to_text(kind)).second);
    if (!is_class(kind)) CHECK(parent_of(kind) < kind);
    const std::string backward = to_text(backward_of(kind));
    CHECK((backward == to_text(kind) || backward == to_text(kind) + "_backward"));
  }
}

TEST_CASE("a class may reach a share of arithmetic and one of traffic") {
  const auto [platform, none] =
      read_text(with(kSize, ", efficiency: {convolution: {compute: 150 %, bandwidth: 25 %}}"));
  CHECK(none == Messages{});
  const auto& efficiency = platform.processors.at(0).efficiency;
  CHECK(efficiency[static_cast<std::size_t>(OperatorClass::convolution)] ==
        Efficiency(Ratio{1'500'000'000}, Ratio{250'000'000}));
  CHECK(efficiency[static_cast<std::size_t>(OperatorClass::matmul)] == kWhole);
  CHECK(messages(with(kSize, ", efficiency: {matmul: {compute: 410 %, bandwidth: 1.2}}")) ==
        Messages{"p.yaml:6:53: error: found `410 %`, expected a share above 0 and at most 400 %",
                 "p.yaml:6:71: error: found `1.2`, expected a share above 0 and at most 1, such as "
                 "`0.82` or `82 %`"});
  CHECK(messages(with(kSize, ", efficiency: {matmul: {compute: 0.5}}")) ==
        Messages{"p.yaml:6:43: error: the pair of shares has no `bandwidth`"});
}

TEST_CASE("the JSON Schema comes from the description that the loader reads") {
  const std::string schema = platform_json_schema();
  for (const char* key :
       {"launch_overhead", "regulator_efficiency", "topology", "to_X", "best-fit"}) {
    INFO(key);
    CHECK(schema.find(key) != std::string::npos);
  }
  CHECK(schema == platform_json_schema());
}
