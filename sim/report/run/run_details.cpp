#include "report/run/run_details.hpp"

#include "execution/find_metrics.hpp"
#include "execution/held_stages.hpp"
#include "platform/core/break_even.hpp"
#include "report/run/alike_rows.hpp"
#include "report/run/mesh_words.hpp"
#include "report/run/run_notes.hpp"
#include "report/run/training_words.hpp"
#include "scenario/run/plan_choice.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

/// Parts of a kind that are told one by one; clusters have thousands.
constexpr std::size_t kMostParts = 8;
/// So many are told one by one though they are alike.
constexpr std::size_t kFewParts = 4;
constexpr std::size_t kDetailBarWidth = 20;
constexpr std::size_t kLabelWidth = 10;

double share(Bytes part, Bytes whole) {
  return whole == Bytes{} ? 0.0
                          : static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

class Details {
 public:
  Details(const Scenario& scenario, const RunResult& result, const Style& style)
      : scenario_(scenario), result_(result), metrics_(result.metrics), style_(style) {}

  std::string run() {
    if (result_.mesh) line("mesh", mesh_words(*result_.mesh));
    if (metrics_.makespan) tell_speed();
    if (const std::string use = use_of_ranks(metrics_); !use.empty()) line("", use);
    tell_memories();
    tell_processors();
    tell_links();
    tell_collectives();
    if (result_.claims.eviction) tell_eviction(*result_.claims.eviction);
    tell_choice(plan_choice(result_, scenario_.platform));
    if (metrics_.energy) tell_energy(*metrics_.energy);
    if (result_.training)
      for (const auto& [label, text] : training_words(*result_.training)) line(label, text);
    tell_stages();
    return std::move(out_);
  }

 private:
  /// A line below a label that is shown once.
  void line(const std::string& label, const std::string& text) {
    out_ += style_(Paint::bold, fmt::format("  {:<{}}", label, kLabelWidth));
    out_ += wrapped(text, kReportWidth, kLabelWidth + 2) + '\n';
  }

  void tell_speed() {
    std::string text = to_text(*metrics_.makespan);
    if (metrics_.period && *metrics_.period != *metrics_.makespan)
      text += fmt::format(", then one every {}", to_text(*metrics_.period));
    if (metrics_.throughput) text += fmt::format("; {} samples/s", decimal(*metrics_.throughput));
    if (result_.overhead) text += fmt::format("; overhead {}", percent(*result_.overhead));
    line("step", text);
  }

  /// What the ranks of a mesh move between them.
  void tell_collectives() {
    std::vector<std::string> parts;
    for (const CollectiveMetrics& it : metrics_.collectives)
      parts.push_back(fmt::format("{}: {} from each in {}, {} of it exposed", it.name,
                                  to_text(it.bytes), to_text(it.busy), to_text(it.exposed)));
    if (!parts.empty()) line("ranks", fmt::format("{}", fmt::join(parts, "; ")));
  }

  void tell_memories() {
    std::vector<const MemoryMetrics*> used;
    for (const MemoryMetrics& memory : metrics_.memories)
      if (memory.peak_requested > Bytes{}) used.push_back(&memory);
    std::ranges::stable_sort(used, std::greater{},
                             [](const MemoryMetrics* memory) { return fill_of(*memory); });
    const auto told = alike(used, kFewParts, [&](const MemoryMetrics& it) {
      return peak_text(it) + counts_of(it.at_peak);
    });
    for (std::size_t m = 0; m < std::min(told.size(), kMostParts); ++m)
      tell_memory(*told[m].first, told[m].subject());
    tell_rest(rows_beyond(told, kMostParts), "less full memory", "less full memories");
  }

  static std::string counts_of(const std::array<Bytes, kTensorClasses>& bytes) {
    std::string text;
    for (const Bytes it : bytes) text += fmt::format(" {}", it.count());
    return text;
  }

  std::string peak_text(const MemoryMetrics& memory) const {
    std::string text = fmt::format("peaks at {}", to_text(memory.peak_allocated));
    if (memory.usable)
      text += fmt::format(" of {} ({})", to_text(*memory.usable), percent(fill_of(memory)));
    text += memory.peak_time == Time{} ? " at the start"
                                       : fmt::format(" after {}", to_text(memory.peak_time));
    return text + other_meanings(memory);
  }

  void tell_memory(const MemoryMetrics& memory, const std::string& subject) {
    line("memory", subject + " " + peak_text(memory));
    Bytes alive;
    for (const Bytes bytes : memory.at_peak) alive += bytes;
    for (std::size_t c = 0; c < kTensorClasses; ++c) {
      const Bytes bytes = memory.at_peak[c];
      if (bytes == Bytes{}) continue;
      out_ += fmt::format("{:{}}{:<16}{:>11}  {}\n", "", kLabelWidth + 4,
                          to_text(static_cast<TensorClass>(c)), to_text(bytes),
                          bar(share(bytes, alive), kDetailBarWidth));
    }
  }

  /// A peak of memory is told as what is live (requested, and allocated for it), what the allocator
  /// reserves, and what of the device is in use; each where it is another number.
  static std::string other_meanings(const MemoryMetrics& memory) {
    std::string text;
    if (memory.peak_requested != memory.peak_allocated)
      text += fmt::format("; live: requested {}, allocated {}", to_text(memory.peak_requested),
                          to_text(memory.peak_allocated));
    if (memory.peak_held != memory.peak_allocated)
      text += fmt::format("; reserved by the allocator: {}, {} of it unused",
                          to_text(memory.peak_held), percent(memory.fragmentation));
    if (memory.peak_reserved != memory.peak_held)
      text += fmt::format("; device in use, with context and libraries: {}",
                          to_text(memory.peak_reserved));
    return text;
  }

  void tell_eviction(const EvictionClaims& eviction) {
    std::string text = fmt::format("{} tensors, {}, in {} searches", thousands(eviction.evictions),
                                   to_text(eviction.evicted_bytes), thousands(eviction.searches));
    if (eviction.score_evaluations > 0)
      text += fmt::format("; {} scores", thousands(eviction.score_evaluations));
    if (eviction.searches > 0)
      text += fmt::format("; {} of the pool free when room was found",
                          percent(as_fraction(eviction.mean_fragmentation)));
    line("evicted", text);
  }

  void tell_processors() {
    std::vector<const ProcessorMetrics*> used;
    for (const ProcessorMetrics& processor : metrics_.processors)
      if (processor.span > Time{}) used.push_back(&processor);
    const auto told =
        alike(used, kFewParts, [&](const ProcessorMetrics& it) { return work_text(it); });
    for (std::size_t p = 0; p < std::min(told.size(), kMostParts); ++p)
      line("time", told[p].subject() + " " + work_text(*told[p].first));
    tell_rest(rows_beyond(told, kMostParts), "processor", "processors");
  }

  /// Of the makespan, for each of its streams: what is before its first step, after its last, and between those that
  /// no cause is known for.
  [[nodiscard]] Time idle_of(const ProcessorMetrics& processor) const {
    if (!metrics_.makespan) return {};
    const auto place =
        &processor - metrics_.processors.data();  // those of the platform, in its order
    const auto streams = scenario_.platform.processors[static_cast<std::size_t>(place)].streams;
    Time rest = *metrics_.makespan * streams - processor.busy;
    for (const Time stall : processor.stall) rest -= stall;
    return std::max(rest, Time{});
  }

  [[nodiscard]] std::string work_text(const ProcessorMetrics& processor) const {
    std::string text = fmt::format("works {}", to_text(processor.busy));
    if (processor.bubble) text += fmt::format(" ({})", percent(1 - *processor.bubble));
    for (std::size_t c = 0; c < kStallCauses; ++c)
      if (processor.stall[c] > Time{})
        text += fmt::format(", waits {} for {}", to_text(processor.stall[c]),
                            to_text(static_cast<StallCause>(c)));
    if (const Time idle = idle_of(processor); idle > Time{})
      text += fmt::format(", idle {}", to_text(idle));
    if (processor.reach.value_or(Time{}) > Time{})
      text += fmt::format("; {} of it for what lives in slower memory", to_text(*processor.reach));
    if (processor.recomputed_ops > 0) {
      text += fmt::format("; {} run again",
                          counted(static_cast<std::size_t>(processor.recomputed_ops), "forward"));
      if (processor.recomputed_flops > Flops{})
        text += fmt::format(" ({})", to_text(processor.recomputed_flops));
    }
    return text;
  }

  void tell_links() {
    std::vector<const LinkMetrics*> used;
    for (const LinkMetrics& link : metrics_.links)
      if (link.bytes[0] + link.bytes[1] > Bytes{}) used.push_back(&link);
    const auto told = alike(used, kFewParts, [](const LinkMetrics& it) {
      return fmt::format("{} {} {}", it.bytes[0].count(), it.bytes[1].count(), busy_share(it));
    });
    for (std::size_t l = 0; l < std::min(told.size(), kMostParts); ++l)
      tell_link(*told[l].first, told[l].name());
    tell_rest(rows_beyond(told, kMostParts), "link", "links");
  }

  void tell_link(const LinkMetrics& link, const std::string& name) {
    const auto found = std::ranges::find(scenario_.platform.links, link.name, &Link::name);
    std::string text = name;
    for (std::size_t d = 0; d < 2; ++d) {
      if (link.bytes[d] == Bytes{}) continue;
      text += fmt::format("{} {} to {}", d == 0 || link.bytes[0] == Bytes{} ? ":" : ",",
                          to_text(link.bytes[d]), scenario_.platform[found->between[1 - d]].name);
      if (link.busy) text += fmt::format(" (busy {})", percent((*link.busy)[d]));
    }
    const bool both_ways = link.bytes[0] > Bytes{} && link.bytes[1] > Bytes{};
    if (link.busy_of_both && both_ways)
      text += fmt::format("; busy {} with both, half duplex", percent(*link.busy_of_both));
    line("link", text);
  }

  void tell_energy(const EnergyMetrics& energy) {
    std::string text = fmt::format("{} a step, {} a sample, {} on average", to_text(energy.total),
                                   to_text(energy.per_sample), to_text(energy.average));
    if (energy.peak) text += fmt::format(", {} at most", to_text(*energy.peak));
    std::vector<std::string> parts;
    for (const auto& [name, part] : energy.components)
      if (part > Energy{} && parts.size() < kMostParts)
        parts.push_back(fmt::format("{} {}", name, to_text(part)));
    if (parts.size() > 1) text += fmt::format(": {}", fmt::join(parts, ", "));
    line("energy", text);
    tell_phases(energy);
    if (energy.steps_per_battery)
      line("battery", fmt::format("{} steps on one charge", thousands(*energy.steps_per_battery)));
  }

  /// What it went into, and how far all of it may be off.
  void tell_phases(const EnergyMetrics& energy) {
    if (energy.total == Energy{}) return;
    const EnergyBand& band = result_.energy_band;
    const double sample = in_joules(energy.per_sample);
    line("", fmt::format("{}; {} to {} a sample, as powers and rates are `{}`",
                         shares_in_words(energy), joules_text(sample * band.least),
                         joules_text(sample * band.most), to_text(band.quality)));
  }

  /// A phase is what work draws above idle power: where idle draws more, there are no shares.
  static std::string shares_in_words(const EnergyMetrics& energy) {
    if (std::ranges::min(energy.phases) < Energy{})
      return "no shares of phases, as waiting draws more than work";
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < kEnergyPhases; ++i)
      if (energy.phases[i] != Energy{})
        parts.push_back(
            fmt::format("{} {}", words_for(static_cast<EnergyPhase>(i)),
                        percent(in_joules(energy.phases[i]) / in_joules(energy.total))));
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  static const char* words_for(EnergyPhase phase) {
    return phase == EnergyPhase::recompute ? "forwards run again" : to_text(phase);
  }

  static std::string words_for(const BreakEven& row) {
    if (!row.energy) return to_text(row.time);
    if (row.energy == FlopsPerByte{}) return to_text(row.time) + " in time (copies take no energy)";
    return to_text(*row.energy) + " in energy";
  }

  /// Beside what decides: where the platform breaks even.
  void tell_choice(const PlanChoice& choice) {
    if (!choice.again && !choice.paged) return;
    std::vector<std::string> parts;
    if (choice.again)
      parts.push_back(fmt::format("runs again what takes {} FLOP/B", decimal(*choice.again)));
    if (choice.paged)
      parts.push_back(fmt::format("copies out what takes {} FLOP/B", decimal(*choice.paged)));
    std::string text = fmt::format("{} on average", fmt::join(parts, ", "));
    const Platform& platform = scenario_.platform;
    if (platform.processors.size() <= kMostParts)
      for (const BreakEven& row : break_even_of(platform, Topology(platform), ProcessorId{0},
                                                main_dtype(result_.workload_as_run)))
        text += fmt::format("; break-even of {}: {}", platform[row.storage].name, words_for(row));
    line("choice", text);
  }

  void tell_stages() {
    const std::vector<HeldStages> all = held_stages(result_.plan, result_.workload_as_run);
    for (std::size_t s = 0; s < std::min(all.size(), kMostParts); ++s) {
      line("stages",
           fmt::format("{}: {}", to_text(all[s]), holders_of(result_, all[s], kMostParts)));
    }
    tell_rest(all.size() - std::min(all.size(), kMostParts), "run of stages", "runs of stages");
  }

  void tell_rest(std::size_t count, const char* one, const char* several) {
    if (count > 0)
      line("", fmt::format("and {} more {}", thousands(static_cast<std::int64_t>(count)),
                           count == 1 ? one : several));
  }

  const Scenario& scenario_;
  const RunResult& result_;
  const Metrics& metrics_;
  const Style& style_;
  std::string out_;
};

}  // namespace

double fill_of(const MemoryMetrics& memory) {
  return memory.usable ? share(memory.peak_allocated, *memory.usable) : 0.0;
}

std::string run_details(const Scenario& scenario, const RunResult& result, const Style& style) {
  return Details(scenario, result, style).run();
}

}  // namespace plimsoll
