#include "lists.hpp"
#include "output.hpp"
#include "platform/core/break_even.hpp"
#include "platform/file/platform_file.hpp"
#include "report/text/text_table.hpp"
#include "scenario/document/search_path.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

constexpr const char* kPlatformKind = "platforms";

std::string without_number(const std::string& name) {
  const std::size_t last = name.find_last_not_of("0123456789-");
  return last == std::string::npos ? name : name.substr(0, last + 1);
}

/// Every number of a platform, with where it comes from.
class PlatformSheet {
 public:
  PlatformSheet(const Platform& platform, const Style& style)
      : platform_(platform), style_(style) {}

  std::string run() {
    heading();
    for (const Memory& memory : platform_.memories) tell(memory);
    for (const Processor& processor : platform_.processors) tell(processor);
    for (const Link& link : platform_.links) tell(link);
    tell_whole();
    out_ += table_.text(style_);
    tell_break_even();
    tell_missing();
    return std::move(out_);
  }

 private:
  void heading() {
    out_ += style_(Paint::bold, platform_.name);
    if (!platform_.about.empty())
      out_ += "   " + wrapped(platform_.about, kReportWidth, platform_.name.size() + 3);
    out_ += "\n\n";
  }

  /// The provenance of the longest path that covers this one, as it is or before copies were made.
  const Provenance* source_of(const std::string& kind, const std::string& part,
                              const std::string& key) const {
    for (const std::string& name : {part, without_number(part)}) {
      const std::string path = kind.empty() ? key : fmt::format("{}.{}.{}", kind, name, key);
      const Provenance* best = nullptr;
      for (const Provenance& known : platform_.provenance) {
        const bool covers = path == known.path || path.starts_with(known.path + '.');
        if (covers && (best == nullptr || known.path.size() > best->path.size())) best = &known;
      }
      if (best != nullptr) return best;
    }
    return nullptr;
  }

  void row(const std::string& kind, const std::string& part, const std::string& key,
           const std::string& value) {
    const Provenance* source = source_of(kind, part, key);
    // Both directions are told as one where they agree, even if the file gives them apart.
    if (source == nullptr) source = source_of(kind, part, "read." + key);
    table_.add({{kind.empty() ? key : fmt::format("{} {}", part, key)},
                {value},
                {source ? to_text(source->quality) : "-"},
                {source ? source->source : ""}});
  }

  /// A cluster's parts differ in number only: those after the first of a stem are left out.
  bool is_copy(const std::string& kind, const std::string& name) {
    const std::string stem = without_number(name);
    return stem != name && !seen_.emplace(kind + stem, name).second;
  }

  void tell_access(const Memory& memory, const std::string& direction, const AccessCost& cost) {
    const auto add = [&](const char* key, const std::string& value) {
      row("memories", memory.name, direction + key, value);
    };
    if (!cost.bandwidth.is_unlimited()) add("bandwidth", to_text(cost.bandwidth));
    if (cost.latency > Time{}) add("latency", to_text(cost.latency));
    if (cost.energy) add("energy", to_text(*cost.energy));
  }

  void tell_power(const std::string& kind, const std::string& part,
                  const std::optional<PowerStates>& power) {
    if (!power) return;
    row(kind, part, "power.idle", to_text(power->idle));
    row(kind, part, "power.active", to_text(power->active));
  }

  void tell(const Memory& memory) {
    if (memory.is_switch || is_copy("memories", memory.name)) return;
    const auto add = [&](const std::string& key, const std::string& value) {
      row("memories", memory.name, key, value);
    };
    add("capacity", to_text(memory.capacity));
    if (memory.reserved > Bytes{}) add("reserved", to_text(memory.reserved));
    const bool same = memory.read.bandwidth == memory.write.bandwidth &&
                      memory.read.latency == memory.write.latency &&
                      memory.read.energy == memory.write.energy;
    tell_access(memory, same ? "" : "read.", memory.read);
    if (!same) tell_access(memory, "write.", memory.write);
    if (memory.block > Bytes{1}) add("block", to_text(memory.block));
    if (memory.erase_block > Bytes{})
      add("erase_block",
          fmt::format("{} in {}", to_text(memory.erase_block), to_text(memory.erase_time)));
    if (memory.endurance) add("endurance", thousands(*memory.endurance) + " writes");
    tell_power("memories", memory.name, memory.power);
  }

  void tell(const Processor& processor) {
    if (is_copy("processors", processor.name)) return;
    const auto add = [&](const std::string& key, const std::string& value) {
      row("processors", processor.name, key, value);
    };
    for (std::size_t d = 0; d < kDTypes; ++d)
      if (processor.compute[d])
        add("compute." + to_text(static_cast<DType>(d)), to_text(*processor.compute[d]));
    for (std::size_t k = 0; k < kKernelKinds; ++k) {
      const auto kind = static_cast<KernelKind>(k);
      if (is_class(kind) || processor.efficiency[k] !=
                                processor.efficiency[static_cast<std::size_t>(parent_of(kind))])
        tell_efficiency(processor.name, kind, processor.efficiency[k]);
    }
    if (processor.kernels.tile > 1) add("kernels.tile", fmt::format("{}", processor.kernels.tile));
    if (processor.kernels.bias) add("kernels.bias", "true");
    if (processor.decision_overhead.per_operator > Time{})
      add("decision_overhead.per_operator", to_text(processor.decision_overhead.per_operator));
    if (processor.decision_overhead.per_candidate > Time{})
      add("decision_overhead.per_candidate", to_text(processor.decision_overhead.per_candidate));
    if (processor.launch_overhead > Time{})
      add("launch_overhead", to_text(processor.launch_overhead));
    if (processor.host_overhead > Time{}) add("host_overhead", to_text(processor.host_overhead));
    if (processor.host.per_operator > Time{})
      add("host.per_operator", to_text(processor.host.per_operator));
    if (processor.host.per_backward)
      add("host.per_backward", to_text(*processor.host.per_backward));
    if (processor.host.waits_for_messages) add("host.waits_for_messages", "true");
    if (processor.collectives.start > Time{})
      add("collectives.start", to_text(processor.collectives.start));
    if (!processor.collectives.memory.is_unlimited())
      add("collectives.memory", to_text(processor.collectives.memory));
    if (processor.collectives.slows > Ratio{0})
      add("collectives.slows", to_text(processor.collectives.slows));
    if (processor.convolution_workspace > Bytes{})
      add("convolution_workspace", to_text(processor.convolution_workspace));
    if (processor.convolution_layout == ConvolutionLayout::blocked)
      add("convolution_layout", "blocked");
    if (processor.generator_state > Bytes{})
      add("generator_state", to_text(processor.generator_state));
    tell_power("processors", processor.name, processor.power);
    if (processor.energy_per_flop) add("energy", to_text(*processor.energy_per_flop));
  }

  void tell_efficiency(const std::string& processor, KernelKind kind,
                       const Efficiency& efficiency) {
    const std::string key = "efficiency." + to_text(kind);
    if (efficiency.is_apart()) {
      row("processors", processor, key + ".compute", to_text(efficiency.compute()));
      row("processors", processor, key + ".bandwidth", to_text(efficiency.bandwidth()));
    } else if (efficiency != kWhole) {
      row("processors", processor, key, to_text(efficiency.compute()));
    }
  }

  void tell(const Link& link) {
    if (is_copy("links", link.name)) return;
    const auto add = [&](const std::string& key, const std::string& value) {
      row("links", link.name, key, value);
    };
    const std::string &from = platform_[link.between[0]].name,
                      &to = platform_[link.between[1]].name;
    table_.add(
        {{link.name + " between"},
         {fmt::format("{}, {}{}", from, to, link.duplex == Duplex::half ? " (half duplex)" : "")},
         {},
         {}});
    if (link.bandwidth[0] == link.bandwidth[1])
      add("bandwidth", to_text(link.bandwidth[0]));
    else
      add("bandwidth", fmt::format("{} to {}, {} to {}", to_text(link.bandwidth[0]), to,
                                   to_text(link.bandwidth[1]), from));
    if (link.latency > Time{}) add("latency", to_text(link.latency));
    tell_power("links", link.name, link.power);
    if (link.energy) add("energy", to_text(*link.energy));
  }

  void tell_whole() {
    if (platform_.battery) row("", "", "battery", to_text(platform_.battery->energy));
    if (platform_.regulator_efficiency != kWhole)
      row("", "", "energy.regulator_efficiency", to_text(platform_.regulator_efficiency));
    if (platform_.power_limit) row("", "", "power_limit", to_text(*platform_.power_limit));
  }

  /// A row of the table of break-evens, and the types at whose rates it holds: "bf16, fp16".
  struct SharedBreakEven {
    BreakEven row;
    std::string dtypes;

    [[nodiscard]] bool is_of(const BreakEven& other) const {
      return row.processor == other.processor && row.storage == other.storage &&
             row.time == other.time && row.per_copy == other.per_copy && row.energy == other.energy;
    }
  };

  /// For every type that a processor states a rate for; those of the same rate share a row.
  std::vector<SharedBreakEven> break_evens() {
    const Topology topology(platform_);
    std::vector<SharedBreakEven> shared;
    for (std::size_t d = 0; d < kDTypes; ++d) {
      const auto dtype = static_cast<DType>(d);
      for (const BreakEven& row : break_even(platform_, topology, dtype)) {
        if (is_break_even_of_copy(row)) continue;
        const auto same =
            std::ranges::find_if(shared, [&](const auto& it) { return it.is_of(row); });
        if (same == shared.end())
          shared.push_back({row, to_text(dtype)});
        else
          same->dtypes += ", " + to_text(dtype);
      }
    }
    std::ranges::stable_sort(shared, {}, [](const SharedBreakEven& it) {
      return std::pair(it.row.processor, it.row.storage);
    });
    return shared;
  }

  /// Whether a processor that differs in number only has told of this storage and type.
  bool is_break_even_of_copy(const BreakEven& row) {
    const std::string& name = platform_[row.processor].name;
    const std::string stem = without_number(name);
    return stem != name &&
           !seen_
                .emplace(fmt::format("break-even {} {} {}", stem, platform_[row.storage].name,
                                     to_text(row.dtype)),
                         "")
                .second;
  }

  void tell_break_even() {
    using enum Column::Align;
    TextTable table({{"recompute or page"},
                     {"storage"},
                     {"for time", right},
                     {"per copy", right},
                     {"for energy", right}});
    for (const auto& [row, dtypes] : break_evens())
      table.add({{fmt::format("{} ({})", platform_[row.processor].name, dtypes)},
                 {platform_[row.storage].name},
                 {to_text(row.time)},
                 {to_text(row.per_copy)},
                 {row.energy ? to_text(*row.energy) : "-"}});
    if (table.is_empty()) return;
    out_ += '\n' + table.text(style_);
    out_ +=
        "  A tensor that costs fewer FLOPs per byte than that is cheaper to compute again than to "
        "page.\n";
  }

  void tell_missing() {
    if (platform_.without_provenance.empty()) return;
    out_ +=
        "\n  " +
        wrapped(fmt::format("Without a source: {}", fmt::join(platform_.without_provenance, ", ")),
                kReportWidth, 2) +
        '\n';
  }

  const Platform& platform_;
  const Style& style_;
  TextTable table_{{{"number"}, {"value"}, {"quality"}, {"source"}}};
  std::map<std::string, std::string> seen_;
  std::string out_;
};

/// "hbm 16 GiB, dram 256 GiB", copies counted: "8 x hbm 40 GiB".
std::string memories_of(const Platform& platform) {
  std::vector<std::pair<std::string, int>> parts;
  for (const Memory& memory : platform.memories) {
    if (memory.is_switch) continue;
    const std::string text =
        fmt::format("{} {}", without_number(memory.name), to_text(memory.capacity));
    const auto same = std::ranges::find(parts, text, &std::pair<std::string, int>::first);
    if (same == parts.end())
      parts.emplace_back(text, 1);
    else
      ++same->second;
  }
  std::vector<std::string> texts;
  for (const auto& [text, count] : parts)
    texts.push_back(count == 1 ? text : fmt::format("{} x {}", count, text));
  return fmt::format("{}", fmt::join(texts, ", "));
}

Platform load(const SearchPath& search, const std::string& name) {
  Diagnostics diagnostics;
  Platform platform = read_platform(read_document(*search.find(name, kPlatformKind)), diagnostics,
                                    resolver_of_extends());
  diagnostics.throw_if_errors();
  return platform;
}

}  // namespace

std::string list_platforms(const std::string& name, const Style& style) {
  const SearchPath search(".");
  if (!name.empty()) {
    (void)search.read(name, kPlatformKind, {});  // says what is wrong with the name
    return PlatformSheet(load(search, name), style).run();
  }
  TextTable table({{"platform"}, {"memories"}, {"quality"}, {"what it is"}});
  Complaints complaints;
  for (const std::string& each : search.names(kPlatformKind))
    complaints.gather([&] {
      const Platform platform = load(search, each);
      table.add(
          {{each}, {memories_of(platform)}, {to_text(platform.worst_quality())}, {platform.about}});
    });
  complaints.throw_if_any();
  return table.text(style, 0);
}

}  // namespace plimsoll
