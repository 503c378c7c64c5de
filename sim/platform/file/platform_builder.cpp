#include "platform/file/platform_builder.hpp"

#include "base/names_hint.hpp"
#include "platform/file/operating_points.hpp"
#include "platform/file/platform_cluster.hpp"
#include "platform/file/platform_contradictions.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {
namespace {

using Name = Located<std::string>;

AccessCost access_of(const MemorySpec& memory, const AccessSpec& access) {
  const auto bandwidth = access.bandwidth ? access.bandwidth : memory.bandwidth;
  const auto latency = access.latency ? access.latency : memory.latency;
  return {latency.value_or(Time{}), bandwidth.value_or(ByteRate::unlimited()),
          access.energy ? access.energy : memory.energy};
}

template <class T>
std::optional<T> without_place(const std::optional<Located<T>>& located) {
  if (!located) return std::nullopt;
  return located->value;
}

Memory make_memory(const MemorySpec& spec) {
  Memory memory;
  memory.copy_of = spec.copy_of;
  memory.capacity = spec.capacity;
  memory.reserved = spec.reserved ? spec.reserved->value : Bytes{};
  memory.allocator = spec.allocator.kind;
  memory.caching = spec.allocator.caching;
  memory.bfc = spec.allocator.bfc;
  memory.placed = spec.allocator.placed;
  memory.alignment = std::max(spec.alignment.value, spec.allocator.alignment);
  memory.read = access_of(spec, spec.read);
  memory.write = access_of(spec, spec.write);
  memory.block = spec.block;
  memory.erase_block = spec.erase ? spec.erase->block : Bytes{};
  memory.erase_time = spec.erase ? spec.erase->time : Time{};
  memory.endurance = spec.endurance;
  memory.write_amplification = spec.write_amplification.value_or(kWhole);
  memory.power = without_place(spec.power);
  return memory;
}

/// For a memory that could not be read, which has its error already: what names it finds no other.
Memory stand_in() {
  Memory memory;
  memory.read.bandwidth = memory.write.bandwidth = ByteRate{1};
  return memory;
}

/// That of the kind that stands for it, which is known already.
Efficiency default_efficiency(std::size_t kind, const Processor& processor) {
  const auto it = static_cast<KernelKind>(kind);
  return is_class(it) ? Efficiency()
                      : processor.efficiency[static_cast<std::size_t>(parent_of(it))];
}

Processor make_processor(const ProcessorSpec& spec) {
  const ComputeSpec& c = spec.compute;
  Processor processor;
  processor.streams = static_cast<std::uint32_t>(spec.streams);
  processor.compute = {c.fp64, c.fp32, c.tf32, c.bf16, c.fp16, c.fp8, c.int8};
  for (std::size_t i = 0; i < kKernelKinds; ++i)
    processor.efficiency[i] = spec.efficiency[i].value_or(default_efficiency(i, processor));
  processor.kernels = {static_cast<std::uint32_t>(spec.kernels.tile), spec.kernels.bias,
                       spec.kernels.additions};
  processor.launch_overhead = spec.launch_overhead;
  processor.host_overhead = spec.host_overhead;
  processor.host = spec.host;
  processor.collectives = spec.collectives;
  processor.decision_overhead = spec.decision_overhead;
  processor.convolution_workspace = spec.convolution_workspace;
  processor.convolution_layout = spec.convolution_layout;
  processor.generator_state = spec.generator_state;
  processor.power = without_place(spec.power);
  processor.power_curve.voltage_floor = without_place(spec.voltage_floor);
  processor.power_cap = without_place(spec.power_cap);
  processor.energy_per_flop = without_place(spec.energy_per_flop);
  run_at_its_point(spec, processor);
  return processor;
}

Link make_link(const LinkSpec& spec) {
  Link link;
  link.bandwidth = spec.rates;
  link.latency = spec.latency;
  link.duplex = spec.duplex;
  link.sharing = spec.sharing;
  link.power = without_place(spec.power);
  link.energy = spec.energy;
  return link;
}

/// What a part says of itself, whatever the others: checked once, before the cluster is copied out.
class PartChecker {
 public:
  explicit PartChecker(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  void check(PlatformSpec& spec) {
    for (auto& [name, memory] : spec.memories) {
      check_name(name);
      if (memory) check_memory(name.value, *memory);
    }
    for (const Name& name : spec.switches) check_name(name);
    for (auto& [name, processor] : spec.processors) {
      check_name(name);
      if (processor) {
        refuse_both(processor->power, processor->energy_per_flop.has_value(),
                    fmt::format("processor `{}`", name.value));
        check_operating_points(*processor, diagnostics_);
        check_power_cap(*processor, diagnostics_);
      }
    }
    for (auto& [name, link] : spec.links) {
      check_name(name);
      if (link) check_link(name.value, *link);
    }
    if (spec.cluster) check_copies(*spec.cluster);
    if (spec.cluster && spec.cluster->nodes) check_copies(*spec.cluster->nodes);
    if (spec.memories.empty()) diagnostics_.error(spec.where, "a platform needs a memory");
    if (spec.processors.empty()) diagnostics_.error(spec.where, "a platform needs a processor");
  }

 private:
  void check_copies(CopiesSpec& copies) {
    if (!copies.link) return;
    check_name(copies.link->name);
    check_link(copies.link->name.value, *copies.link);
  }

  /// Paths such as `links.pcie.bandwidth` are taken apart at their dots.
  void check_name(const Name& name) {
    if (name.value.find_first_of("./") == std::string::npos) return;
    diagnostics_.error(
        name.where,
        fmt::format("found `{}`, expected a name without dots and slashes", name.value));
  }

  template <class States>
  void refuse_both(const std::optional<Located<States>>& power, bool energy,
                   const std::string& part) {
    if (!power || !energy) return;
    diagnostics_.error(power->where, part +
                                         " has both a power and an energy per action; give one, "
                                         "or the same work counts twice");
  }

  void check_memory(const std::string& name, const MemorySpec& memory) {
    if (memory.reserved && memory.reserved->value > memory.capacity) {
      diagnostics_.error(memory.reserved->where,
                         fmt::format("{} reserved of a capacity of {}",
                                     to_text(memory.reserved->value), to_text(memory.capacity)));
    }
    const std::int64_t alignment = memory.alignment.value.count();
    if ((alignment & (alignment - 1)) != 0) {
      diagnostics_.error(memory.alignment.where, fmt::format("found {}, expected a power of two",
                                                             to_text(memory.alignment.value)));
    }
    if (memory.alignment.value > Bytes{1} && memory.allocator.alignment > Bytes{1}) {
      diagnostics_.error(memory.alignment.where,
                         "found an alignment beside that of `allocator`, expected one of the two");
    }
    refuse_both(memory.power, memory.energy || memory.read.energy || memory.write.energy,
                fmt::format("memory `{}`", name));
  }

  void check_link(const std::string& name, LinkSpec& link) {
    refuse_both(link.power, link.energy.has_value(), fmt::format("link `{}`", name));
    link.rates = {link.bandwidth.both, link.bandwidth.both};
    if (link.between.size() < 2) return;
    if (link.between[0].value == link.between[1].value) {
      diagnostics_.error(link.between[1].where, fmt::format("link `{}` joins `{}` with itself",
                                                            name, link.between[1].value));
    } else if (!link.bandwidth.to.empty()) {
      read_directions(link);
    }
  }

  /// A bandwidth by direction names each end once.
  void read_directions(LinkSpec& link) {
    const std::vector<std::string> ways{"to_" + link.between[1].value,
                                        "to_" + link.between[0].value};
    std::set<std::string> found;
    for (const auto& [key, rate] : link.bandwidth.to) {
      const auto way = std::ranges::find(ways, key.value);
      if (way == ways.end()) {
        diagnostics_.error(
            key.where,
            fmt::format("found `{}`, expected `{}` or `{}`", key.value, ways[0], ways[1]),
            did_you_mean(key.value, ways));
      } else {
        link.rates[static_cast<std::size_t>(way - ways.begin())] = rate;
        found.insert(key.value);
      }
    }
    for (const std::string& way : ways) {
      if (found.contains(way)) continue;
      diagnostics_.error(link.where, fmt::format("the link's bandwidth has no `{}`", way));
    }
  }

  Diagnostics& diagnostics_;
};

/// Gives the parts their ids and joins them by name.
class Joiner {
 public:
  Joiner(const PlatformSpec& spec, Diagnostics& diagnostics)
      : spec_(spec), diagnostics_(diagnostics) {}

  Platform join() {
    platform_.name = spec_.name;
    platform_.about = spec_.about;
    add_memories();
    add_processors();
    add_links();
    if (spec_.battery) {
      platform_.battery =
          Battery{spec_.battery->energy, spec_.battery->usable, spec_.battery->max_power};
    }
    platform_.regulator_efficiency = spec_.energy.regulator_efficiency;
    platform_.energy_boundary = spec_.energy.boundary;
    platform_.power_limit = without_place(spec_.power_limit);
    return std::move(platform_);
  }

  [[nodiscard]] PlacesOfParts take_places() { return std::move(places_); }

 private:
  /// The copies of a part have one place: what is wrong with all of them is said once.
  void report(const Location& where, const std::string& message, std::string hint = {}) {
    if (reported_.emplace(where.line, where.column, message).second) {
      diagnostics_.error(where, message, std::move(hint));
    }
  }

  /// Whether `name` is new to its kind.
  bool is_new(std::unordered_set<std::string>& names, const Name& name, const char* kind) {
    const bool added = names.insert(name.value).second;
    if (!added) report(name.where, fmt::format("there is already a {} `{}`", kind, name.value));
    return added;
  }

  void add_memory(const Name& name, Memory memory, const Location& where) {
    const auto id = static_cast<MemoryId>(platform_.memories.size());
    if (!memory_ids_.emplace(name.value, id).second) {
      return report(name.where, fmt::format("there is already a memory `{}`", name.value));
    }
    memory.name = name.value;
    platform_.memories.push_back(std::move(memory));
    places_.memories.push_back(where);
  }

  void add_memories() {
    for (const auto& [name, spec] : spec_.memories) {
      add_memory(name, spec ? make_memory(*spec) : stand_in(), spec ? spec->where : name.where);
    }
    for (const Name& name : spec_.switches) {
      Memory crossing;
      crossing.capacity = Bytes{0};
      crossing.is_switch = true;
      add_memory(name, std::move(crossing), name.where);
    }
  }

  std::optional<MemoryId> find_memory(const Name& name) {
    const auto found = memory_ids_.find(name.value);
    if (found != memory_ids_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [memory, id] : memory_ids_) {
      if (!diagnostics_.is_full()) known.push_back(memory);
    }
    std::ranges::sort(known);
    report(name.where, fmt::format("there is no memory `{}`", name.value),
           hint_of_names(name.value, known));
    return std::nullopt;
  }

  void add_processors() {
    for (const auto& [name, spec] : spec_.processors) {
      if (!is_new(processors_, name, "processor") || !spec) continue;
      Processor processor;
      try {
        processor = make_processor(*spec);
      } catch (const QuantityOverflow&) {
        report(name.where,
               fmt::format("at its operating point, `{}` has a number out of range", name.value));
      }
      processor.name = name.value;
      processor.copy_of = spec->copy_of;
      if (const auto memory = find_memory(spec->memory)) {
        processor.memory = *memory;
        if (platform_[*memory].is_switch) {
          report(spec->memory.where,
                 fmt::format("`{}` is a switch, which holds no data", spec->memory.value));
        }
      }
      for (const Name& reached : spec->reaches) reach(reached, processor);
      platform_.processors.push_back(std::move(processor));
      places_.processors.push_back(spec->where);
    }
  }

  /// Adds a memory that the operators of `processor` reach.
  void reach(const Name& name, Processor& processor) {
    const auto found = find_memory(name);
    if (!found) return;
    const Memory& memory = platform_[*found];
    const auto has_rate = [](const AccessCost& it) { return !it.bandwidth.is_unlimited(); };
    if (*found == processor.memory)
      report(name.where,
             fmt::format("`{}` is the processor's own memory; expected another", name.value));
    else if (std::ranges::find(processor.reaches, *found) != processor.reaches.end())
      report(name.where, fmt::format("`{}` is listed twice", name.value));
    else if (memory.is_switch)
      report(name.where, fmt::format("`{}` is a switch, which holds no data", name.value));
    else if (!has_rate(memory.read) || !has_rate(memory.write))
      report(name.where,
             fmt::format("`{}` states no bandwidth, which operators that reach it wait for",
                         name.value),
             fmt::format("state `memories.{}.bandwidth`", memory.key()));
    else
      processor.reaches.push_back(*found);
  }

  void add_links() {
    for (const auto& [name, spec] : spec_.links) {
      if (!is_new(links_, name, "link") || !spec) continue;
      const auto first = find_memory(spec->between[0]);
      const auto second = find_memory(spec->between[1]);
      if (!first || !second) continue;
      Link link = make_link(*spec);
      link.name = name.value;
      link.between = {*first, *second};
      platform_.links.push_back(std::move(link));
      places_.links.push_back(spec->where);
    }
  }

  const PlatformSpec& spec_;
  Diagnostics& diagnostics_;
  Platform platform_;
  PlacesOfParts places_;
  std::unordered_map<std::string, MemoryId> memory_ids_;
  std::unordered_set<std::string> processors_, links_;
  std::set<std::tuple<int, int, std::string>> reported_;
};

bool has_bounded_size(const PlatformSpec& spec, Diagnostics& diagnostics) {
  const std::size_t most = std::max(
      {spec.memories.size() + spec.switches.size(), spec.processors.size(), spec.links.size()});
  if (most <= kMaxParts) return true;
  diagnostics.error(spec.where,
                    fmt::format("{} parts of a kind, expected at most {}", most, kMaxParts));
  return false;
}

}  // namespace

Platform build_platform(PlatformSpec spec, Diagnostics& diagnostics) {
  if (!has_bounded_size(spec, diagnostics)) return {};
  PartChecker(diagnostics).check(spec);
  const PlatformSpec copied = copy_out(spec, diagnostics);
  Joiner joiner(copied, diagnostics);
  Platform platform = joiner.join();
  if (!diagnostics.has_errors()) {
    PlacesOfParts places = joiner.take_places();
    if (spec.power_limit) places.power_limit = spec.power_limit->where;
    warn_of_contradictions(platform, places, diagnostics);
  }
  return platform;
}

}  // namespace plimsoll
