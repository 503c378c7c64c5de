#include "platform/file/platform_spec.hpp"

#include "platform/file/allocator_format.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {
namespace {

/// A quantity of `inner` within (0, most].
template <class T>
Format<T> bounded(Format<T> inner, T least, T most, const std::string& expected) {
  Format<T> format = inner;
  format.read = [=](const Node& node, Diagnostics& diagnostics) -> std::optional<T> {
    const auto value = inner.read(node, diagnostics);
    if (value && (*value < least || *value > most)) {
      diagnostics.error(node.where(),
                        fmt::format("found {}, expected {}", node.describe(), expected));
      return std::nullopt;
    }
    return value;
  };
  return format;
}

/// Reads on after an error inside, so that the rest of the file is still checked.
template <class T>
Format<std::optional<T>> lenient(Format<T> inner) {
  auto read = [inner = inner.read](const Node& node, Diagnostics& diagnostics) {
    return std::optional<std::optional<T>>(std::in_place, inner(node, diagnostics));
  };
  return {std::move(read), std::move(inner.shape)};
}

template <class T>
Format<T> positive(Unlimited unlimited = Unlimited::refused) {
  return bounded(quantity<T>(unlimited), T{1}, T::unlimited(), "more than zero");
}

Format<Time> latency() {
  return bounded(quantity<Time>(), Time{}, kMaxLatency, "at most 100 s");
}

Format<PowerStates> power_states() {
  return Record<PowerStates>("power", "Power by state.")
      .required("idle", &PowerStates::idle, quantity<Power>(), "drawn while there is nothing to do")
      .required("active", &PowerStates::active, quantity<Power>(), "drawn while working, instead")
      .format();
}

Format<ProcessorPower> processor_power() {
  using Spec = ProcessorPower;
  Power Spec::*idle = &Spec::idle;
  Power Spec::*active = &Spec::active;
  Record<Spec> record("processor power", "Power by state.");
  record.required("idle", idle, quantity<Power>(), "drawn while there is nothing to do")
      .required("active", active, quantity<Power>(), "drawn while computing, instead")
      .optional("memory", &Spec::memory, quantity<Power>(),
                "while an operator waits for its operands (active)")
      .optional("launch", &Spec::launch, quantity<Power>(),
                "while an operator waits to be launched (active)")
      .optional("sleep", &Spec::sleep, quantity<Power>(), "drawn at rest, instead of idle")
      .optional("sleep_after", &Spec::sleep_after, latency(),
                "of idling within a step; without it only rest between steps is sleep");
  return record
      .check({"sleep", "sleep_after"},
             [](Spec& it, const Node& node, Diagnostics& diagnostics) {
               if (it.sleep_after && !it.sleep)
                 diagnostics.error(
                     node.find("sleep_after")->where(),
                     "`sleep_after` says when it sleeps, and nothing says what it draws then; "
                     "expected `sleep` beside it");
             })
      .format();
}

Format<OperatingPointSpec> operating_point_format() {
  using Spec = OperatingPointSpec;
  return Record<Spec>("operating point", "A clock, and what is drawn at it.")
      .required("name", &Spec::name, located(name()), "what `operating_point` calls it")
      .required("clock", &Spec::clock,
                located(bounded(quantity<Frequency>(), Frequency{1'000}, Frequency{100'000'000'000},
                                "from 1 kHz to 100 GHz")),
                "rates and launches hold at the first point's, and go with it")
      .optional(
          "voltage", &Spec::voltage,
          bounded(quantity<Voltage>(), Voltage{1'000}, Voltage{1'000'000'000}, "from 1 mV to 1 kV"),
          "of the core")
      .optional(
          "power", &Spec::power, located(power_states()),
          "left out: the dynamic power of the first with clock x voltage squared, its idle one")
      .format();
}

Format<AccessSpec> access_format() {
  return Record<AccessSpec>("access", "One direction of access of a memory.")
      .optional("latency", &AccessSpec::latency, latency(), "added to every copy")
      .optional("bandwidth", &AccessSpec::bandwidth, positive<ByteRate>(Unlimited::allowed),
                "most bytes per second")
      .optional("energy", &AccessSpec::energy, quantity<EnergyPerByte>(),
                "per byte moved; not beside an active power")
      .format();
}

Format<EraseSpec> erase_format() {
  return Record<EraseSpec>("erase", "What flash erases before it writes.")
      .required("block", &EraseSpec::block, positive<Bytes>(), "bytes erased at once")
      .required("time", &EraseSpec::time, latency(), "time to erase a block")
      .format();
}

Format<MemorySpec> memory_format() {
  using Spec = MemorySpec;
  return Record<Spec>("memory",
                      "A memory or a storage. `bandwidth`, `latency` and `energy` hold for both "
                      "directions; `read` and `write` override them.")
      .where(&Spec::where)
      .required("capacity", &Spec::capacity, positive<Bytes>(Unlimited::allowed), "its size")
      .optional("reserved", &Spec::reserved, located(quantity<Bytes>()),
                "context and libraries: reduces the capacity available to plans (0 B)")
      .optional("allocator", &Spec::allocator, allocator_format(),
                "how space is handed out: `ideal`, `best-fit`, `first-fit`, `caching`, `bfc` or "
                "`static`, or "
                "one of "
                "them with its settings, `{caching: {...}}` (ideal)")
      .optional("alignment", &Spec::alignment, located(positive<Bytes>()),
                "of every block of an arena, a power of two (1 B)")
      .optional("latency", &Spec::latency, latency(), "of both directions (0 s)")
      .optional("bandwidth", &Spec::bandwidth, positive<ByteRate>(Unlimited::allowed),
                "of each direction (unlimited)")
      .optional("energy", &Spec::energy, quantity<EnergyPerByte>(), "per byte of each direction")
      .optional("read", &Spec::read, access_format(), "copies out of it and reads")
      .optional("write", &Spec::write, access_format(), "copies into it and writes")
      .optional("block", &Spec::block, positive<Bytes>(), "copies are rounded up to it (1 B)")
      .optional("erase", &Spec::erase, erase_format(), "flash only")
      .optional("endurance", &Spec::endurance, integer(1, 1'000'000'000'000), "writes per block")
      .optional(
          "write_amplification", &Spec::write_amplification,
          bounded(fraction(), kWhole, Ratio{1'000 * kWhole.count()}, "from 100 % to 100000 %"),
          "bytes that wear it for each that is written: what its controller moves (100 %)")
      .optional("power", &Spec::power, located(power_states()), "by state")
      .format();
}

Format<ComputeSpec> compute_format() {
  const auto rate = positive<FlopRate>(Unlimited::allowed);
  return Record<ComputeSpec>("compute", "Peak rates by number format; a multiply-add is 2 FLOP.")
      .optional("fp64", &ComputeSpec::fp64, rate, "64-bit floating point")
      .optional("fp32", &ComputeSpec::fp32, rate, "32-bit floating point")
      .optional("tf32", &ComputeSpec::tf32, rate, "TensorFloat-32")
      .optional("bf16", &ComputeSpec::bf16, rate, "bfloat16")
      .optional("fp16", &ComputeSpec::fp16, rate, "16-bit floating point")
      .optional("fp8", &ComputeSpec::fp8, rate, "8-bit floating point")
      .optional("int8", &ComputeSpec::int8, rate, "8-bit integers, operations counted as FLOP")
      .format();
}

/// As it is written: `{compute: 1.5, bandwidth: 0.25}`.
struct SharesSpec {
  Ratio compute, bandwidth;
};

Format<Efficiency> class_efficiency() {
  const auto shares =
      Record<SharesSpec>("pair of shares",
                         "Arithmetic and traffic each take their own time, one after the other.")
          .required(
              "compute", &SharesSpec::compute,
              bounded(fraction(), Ratio{1}, kMostCompute, "a share above 0 and at most 400 %"),
              "of peak FLOP/s; above 1 where a library multiplies less than is counted")
          .required("bandwidth", &SharesSpec::bandwidth, efficiency(), "of the bandwidth")
          .format();
  return either<Efficiency>(
      mapped<Ratio, Efficiency>(efficiency(), [](Ratio both) { return Efficiency(both); }),
      mapped<SharesSpec, Efficiency>(shares, [](const SharesSpec& apart) {
        return Efficiency(apart.compute, apart.bandwidth);
      }));
}

/// What a kind within a class is.
std::string about(KernelKind kind) {
  switch (kind) {
    case KernelKind::direct_convolution:
      return "convolutions with a stride, a dilation or groups";
    case KernelKind::pointwise_convolution:
      return "convolutions of one position";
    case KernelKind::depthwise_convolution:
      return "convolutions of groups of one channel";
    case KernelKind::convolution_bias:
      return "kernels that add a convolution's bias";
    case KernelKind::fused_attention:
      return "attention that never stores its scores";
    default:
      return "the backward of that";
  }
}

std::string about_share(KernelKind kind) {
  if (is_class(kind)) return "default 1";
  return about(kind) + "; default: as `" + to_text(parent_of(kind)) + "`";
}

Format<EfficiencySpec> efficiency_format() {
  Record<EfficiencySpec> record(
      "efficiency",
      "The share of peak FLOP/s, or of bandwidth where bandwidth-bound, that a kind of operators "
      "reaches; or both apart, as `{compute: ..., bandwidth: ...}`.");
  for (std::size_t i = 0; i < kKernelKinds; ++i) {
    const auto kind = static_cast<KernelKind>(i);
    record.element(to_text(kind), i, class_efficiency(), about_share(kind));
  }
  return record.format();
}

Format<KernelsSpec> kernels_format() {
  using Spec = KernelsSpec;
  constexpr std::int64_t kMost = 65'536;
  return Record<Spec>("kernels", "How its libraries cut operators into pieces.")
      .optional("tile", &Spec::tile, integer(1, kMost),
                "channels of a convolution's products are rounded up to multiples of it (1)")
      .optional("bias", &Spec::bias, boolean(),
                "a convolution's bias is added by a kernel of its own, and its gradient summed by "
                "another (false)")
      .optional("additions", &Spec::additions, boolean(),
                "a gradient is added to another by a kernel of its own (false)")
      .format();
}

Format<DecisionOverhead> decision_overhead_format() {
  using Overhead = DecisionOverhead;
  return Record<Overhead>("decision_overhead", "What the decisions of an online policy take.")
      .optional("per_operator", &Overhead::per_operator, latency(),
                "for each operator that it issues (0 s)")
      .optional("per_candidate", &Overhead::per_candidate, latency(),
                "for each candidate that it scores (0 s)")
      .format();
}

Format<CollectiveCost> collectives_format() {
  using Cost = CollectiveCost;
  return Record<Cost>("collectives", "What collectives take of it, beside links.")
      .optional("start", &Cost::start, latency(), "of each (0 s)")
      .optional("memory", &Cost::memory, positive<ByteRate>(Unlimited::allowed),
                "at which it reads what a rank puts in, and writes what that gets out (unlimited)")
      .optional("slows", &Cost::slows, fraction(),
                "the share of their rate that its operators go without while one is under way (0)")
      .check({"slows"},
             [](Cost& cost, const Node& node, Diagnostics& diagnostics) {
               if (cost.slows >= kWhole)
                 diagnostics.error(
                     node.find("slows")->where(),
                     "operators would stand still, which no collective makes them do; "
                     "expected less than 100 %");
             })
      .format();
}

Format<IssuingHost> host_format() {
  using Host = IssuingHost;
  return Record<Host>("host", "Issues its operators while they run.")
      .required("per_operator", &Host::per_operator, positive<Time>(),
                "for each operator and collective")
      .optional("per_backward", &Host::per_backward, positive<Time>(),
                "for each of a backward, which an engine issues instead of a script (per_operator)")
      .optional(
          "waits_for_messages", &Host::waits_for_messages, boolean(),
          "it issues nothing after what makes a message, or before what reads one, until that "
          "is there (false)")
      .format();
}

void check_hosts(const ProcessorSpec& it, const Node& node, Diagnostics& diagnostics) {
  if (it.host.per_operator > Time{} && it.host_overhead > Time{})
    diagnostics.error(node.find("host_overhead")->where(),
                      "a second host: `host` issues operators while they run, `host_overhead` is "
                      "part of their times; expected one of the two");
}

void check_convolutions(const ProcessorSpec& it, const Node& node, Diagnostics& diagnostics) {
  if (it.convolution_layout == ConvolutionLayout::blocked && it.convolution_workspace > Bytes{})
    diagnostics.error(node.find("convolution_workspace")->where(),
                      "a limit beside `convolution_layout: blocked`, which has none; expected one "
                      "of the two");
}

Format<ProcessorSpec> processor_format() {
  using Spec = ProcessorSpec;
  return Record<Spec>("processor", "Computes on the tensors of one memory.")
      .where(&Spec::where)
      .required("memory", &Spec::memory, located(name()), "where its operands are")
      .optional("reaches", &Spec::reaches, list_of(located(name()), 1, 16),
                "memories whose values its operators read and write where they are, as slowly as "
                "these state (none)")
      .optional("streams", &Spec::streams, integer(1, 64), "in-order compute streams (1)")
      .optional("compute", &Spec::compute, compute_format(), "peak rates")
      .optional("efficiency", &Spec::efficiency, efficiency_format(), "shares of the peak")
      .optional("kernels", &Spec::kernels, kernels_format(), "how operators are cut into pieces")
      .optional("launch_overhead", &Spec::launch_overhead, latency(), "per kernel (0 s)")
      .optional("host_overhead", &Spec::host_overhead, latency(),
                "per operator, of the host, which runs ahead of the processor (0 s)")
      .optional("host", &Spec::host, host_format(),
                "of a host that issues operators while they run (none)")
      .optional("collectives", &Spec::collectives, collectives_format(),
                "of collectives, beside links (nothing)")
      .optional("decision_overhead", &Spec::decision_overhead, decision_overhead_format(),
                "of policies that decide while they run (0 s)")
      .optional("convolution_workspace", &Spec::convolution_workspace, quantity<Bytes>(),
                "the most that its library takes for one convolution (0 B)")
      .optional("convolution_layout", &Spec::convolution_layout,
                one_of<ConvolutionLayout>(
                    {{"plain", ConvolutionLayout::plain}, {"blocked", ConvolutionLayout::blocked}}),
                "in which its library computes convolutions: as it gets them, or copied into one "
                "of its own, as oneDNN does (plain)")
      .optional("generator_state", &Spec::generator_state, quantity<Bytes>(),
                "what its memory keeps, for each random operator that runs again, so that it draws "
                "the same numbers (0 B)")
      .optional("operating_points", &Spec::operating_points,
                list_of(operating_point_format(), 1, 64),
                "clocks that it can run at; its numbers hold at the first")
      .optional("operating_point", &Spec::operating_point, located(name()),
                "at which of them it runs (the first)")
      .optional("power", &Spec::power, located(processor_power()), "by state")
      .optional("voltage_floor", &Spec::voltage_floor, located(efficiency()),
                "share of the clock below which the voltage stays: how power falls where a "
                "`power_cap` lowers the clock and no operating points are listed")
      .optional("power_cap", &Spec::power_cap, located(positive<Power>()),
                "operators that would draw more run at a lower clock (none)")
      .optional("energy_per_flop", &Spec::energy_per_flop, located(quantity<EnergyPerFlop>()),
                "instead of an active power")
      .check({"convolution_workspace", "convolution_layout"}, check_convolutions)
      .check({"host", "host_overhead"}, check_hosts)
      .format();
}

Format<BandwidthSpec> bandwidth_format() {
  const auto rate = positive<ByteRate>(Unlimited::allowed);
  using Each = std::vector<std::pair<Located<std::string>, ByteRate>>;
  return either<BandwidthSpec>(mapped<ByteRate, BandwidthSpec>(rate,
                                                               [](ByteRate both) {
                                                                 return BandwidthSpec{both, {}};
                                                               }),
                               mapped<Each, BandwidthSpec>(map_of(rate), [](Each to) {
                                 return BandwidthSpec{ByteRate::unlimited(), std::move(to)};
                               }));
}

Format<BandwidthSpec> same_both_ways() {
  return mapped<ByteRate, BandwidthSpec>(positive<ByteRate>(Unlimited::allowed), [](ByteRate both) {
    return BandwidthSpec{both, {}};
  });
}

Record<LinkSpec> link_record(const std::string& text, Format<BandwidthSpec> bandwidth,
                             const std::string& bandwidth_text) {
  Record<LinkSpec> record("link", text);
  record.where(&LinkSpec::where)
      .optional("bandwidth", &LinkSpec::bandwidth, std::move(bandwidth), bandwidth_text)
      .optional("latency", &LinkSpec::latency, latency(), "of each copy (0 s)")
      .optional("duplex", &LinkSpec::duplex,
                one_of<Duplex>({{"full", Duplex::full}, {"half", Duplex::half}}),
                "half: one direction for both ways (full)")
      .optional("sharing", &LinkSpec::sharing,
                one_of<Sharing>({{"fifo", Sharing::fifo}, {"fair", Sharing::fair}}),
                "fifo: one copy at a time, in order; fair: equal shares (fifo)")
      .optional("power", &LinkSpec::power, located(power_states()), "by state")
      .optional("energy", &LinkSpec::energy, quantity<EnergyPerByte>(),
                "per byte, instead of an active power");
  return record;
}

Format<LinkSpec> link_format() {
  return link_record("Joins two memories or switches.", bandwidth_format(),
                     "of each direction, or {to_X: ..., to_Y: ...} for X and Y (unlimited)")
      .required("between", &LinkSpec::between, list_of(located(name()), 2, 2),
                "the two memories or switches")
      .format();
}

/// What clusters and their nodes have in common; `joins` says what of each copy the link joins.
template <class Spec>
void add_copies(Record<Spec>& record, const std::string& joins) {
  const auto link = link_record("The link that the topology repeats.", same_both_ways(),
                                "of each direction (unlimited)")
                        .required("name", &LinkSpec::name, located(name()),
                                  "links are named NAME0-1, of a switch NAME0")
                        .optional("joins", &LinkSpec::joins, located(name()), joins)
                        .format();
  Location Spec::*where = &Spec::where;
  std::int64_t Spec::*count = &Spec::count;
  std::vector<Located<std::string>> Spec::*shared = &Spec::shared;
  std::optional<NamedTopology> Spec::*topology = &Spec::topology;
  std::optional<LinkSpec> Spec::*joined = &Spec::link;
  record.where(where)
      .required("count", count, integer(1, kMaxCopies), "how many copies")
      .optional("shared", shared, list_of(located(name())),
                "memories and switches that all copies share and that keep their names")
      .optional("topology", topology,
                one_of<NamedTopology>({{"chain", NamedTopology::chain},
                                       {"ring", NamedTopology::ring},
                                       {"switch", NamedTopology::switched},
                                       {"mesh", NamedTopology::mesh}}),
                "chain: each to the next; ring: and the last to the first; switch: each to a "
                "switch NAME; mesh: each to each")
      .optional("link", joined, link, "of the topology");
}

Format<NodesSpec> nodes_format() {
  Record<NodesSpec> record(
      "nodes",
      "Copies of the whole cluster. Numbers go on from node to node (gpu0 to gpu15); what the "
      "copies of the cluster share is there once a node (dram0, dram1).");
  add_copies(record,
             "which shared memory or switch of each node (the switch of the cluster's topology)");
  return record
      .optional(
          "rails", &NodesSpec::rails, list_of(located(name())),
          "switches that the first copies of all nodes share, the second copies, and so on: one "
          "for each copy of a node (rail0 to rail7)")
      .format();
}

Format<ClusterSpec> cluster_format() {
  Record<ClusterSpec> record("cluster",
                             "Copies of the file's processors, memories, switches and links, named "
                             "with their number from 0 (gpu0, hbm0), joined by a topology.");
  add_copies(record, "which memory of each copy (that of the only processor)");
  return record.optional("nodes", &ClusterSpec::nodes, nodes_format(), "copies of the cluster")
      .format();
}

Format<BatterySpec> battery_format() {
  return Record<BatterySpec>("battery", "What feeds the platform.")
      .required("energy", &BatterySpec::energy, positive<Energy>(), "when full")
      .optional("usable", &BatterySpec::usable, efficiency(), "share of it (1)")
      .optional("max_power", &BatterySpec::max_power, positive<Power>(), "most that it gives")
      .format();
}

Format<EnergySpec> energy_format() {
  return Record<EnergySpec>("energy", "Where the powers of this file are measured.")
      .optional("boundary", &EnergySpec::boundary,
                one_of<std::string>(
                    {{"chip", "chip"}, {"module", "module"}, {"board", "board"}, {"wall", "wall"}}),
                "chip, module, board or wall")
      .optional("regulator_efficiency", &EnergySpec::regulator_efficiency, efficiency(),
                "energy at the source = energy at the load / efficiency (1)")
      .format();
}

}  // namespace

Format<Named<ProvenanceSpec>> provenance_format() {
  using Spec = ProvenanceSpec;
  const auto entry = Record<Spec>("provenance", "Where a number comes from.")
                         .required("quality", &Spec::quality,
                                   one_of<Quality>({{"measured", Quality::measured},
                                                    {"datasheet", Quality::datasheet},
                                                    {"headline", Quality::headline},
                                                    {"derived", Quality::derived},
                                                    {"estimate", Quality::estimate}}),
                                   "how sure it is, best first")
                         .required("source", &Spec::source, text(), "who says so")
                         .optional("error_p95", &Spec::error_p95, quantity<Ratio>(),
                                   "95th percentile of the errors of times, against measurements "
                                   "that were not used for the fit")
                         .format();
  return map_of(lenient(entry));
}

Format<PlatformSpec> platform_format() {
  using Spec = PlatformSpec;
  auto provenance = raw();
  provenance.shape = provenance_format().shape;
  return Record<Spec>("platform", "Hardware: processors, memories, links, power.")
      .where(&Spec::where)
      .required("platform", &Spec::name, name(), "its name")
      .optional("about", &Spec::about, text(), "for people")
      .optional("extends", &Spec::extends, text(),
                "a platform (name or path) that this one starts from and overrides")
      .optional("memories", &Spec::memories, map_of(lenient(memory_format())), "by name")
      .optional("switches", &Spec::switches, list_of(located(name())),
                "crossings of links that hold no data")
      .optional("processors", &Spec::processors, map_of(lenient(processor_format())), "by name")
      .optional("links", &Spec::links, map_of(lenient(link_format())), "by name")
      .optional("cluster", &Spec::cluster, cluster_format(), "copies and their topology")
      .optional("battery", &Spec::battery, lenient(battery_format()), "where there is one")
      .optional("energy", &Spec::energy, energy_format(), "of the whole platform")
      .optional("power_limit", &Spec::power_limit, located(positive<Power>()), "of the board")
      .optional("provenance", &Spec::provenance, provenance,
                "by dotted path: `processors.gpu.compute`, or a part of it")
      .format();
}

}  // namespace plimsoll
