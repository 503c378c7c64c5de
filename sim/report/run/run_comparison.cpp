#include "report/run/run_comparison.hpp"

#include "execution/find_metrics.hpp"
#include "plan/core/mirror_problems.hpp"
#include "report/run/run_details.hpp"
#include "report/text/style.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

constexpr std::size_t kMostMemoryColumns = 2;

/// What a column shows of a run, and what that costs: less is better. Without a cost nothing is
/// compared.
struct Entry {
  ComparedCell cell;
  std::optional<double> cost;
};

using EntryOf = std::function<Entry(const RunResult&)>;

Entry time_entry(std::optional<Time> time) {
  if (!time) return {};
  return {{to_text(*time)}, static_cast<double>(time->count())};
}

Entry share_entry(std::optional<double> share) {
  if (!share) return {};
  return {{percent(*share)}, *share};
}

Entry throughput_entry(const RunResult& run) {
  if (!run.metrics.throughput) return {};
  return {{decimal(*run.metrics.throughput)}, -*run.metrics.throughput};
}

Entry energy_entry(const RunResult& run) {
  if (!run.metrics.energy) return {};
  const Energy energy = run.metrics.energy->per_sample;
  return {{to_text(energy)}, in_joules(energy)};
}

/// Nobody has proven the bounds that a file states. Who states one for energy was asked for that.
std::optional<double> gap_of(const RunResult& run) {
  if (run.from_file) return std::nullopt;
  if (run.bounds.energy && *run.bounds.energy > Energy{} && run.metrics.energy)
    return in_joules(run.metrics.energy->total) / in_joules(*run.bounds.energy) - 1;
  const auto gap = [](std::optional<Time> time,
                      std::optional<Time> bound) -> std::optional<double> {
    if (!time || !bound || *bound <= Time{}) return std::nullopt;
    return in_seconds(*time) / in_seconds(*bound) - 1;
  };
  const auto of_step = gap(run.metrics.makespan, run.bounds.makespan);
  return of_step ? of_step : gap(run.metrics.period, run.bounds.period);
}

std::optional<double> recomputed(const RunResult& run) {
  if (!run.metrics.makespan) return std::nullopt;
  std::int64_t again = 0;
  for (const ProcessorMetrics& processor : run.metrics.processors)
    again += processor.recomputed_ops;
  if (again == 0) return 0.0;
  return static_cast<double>(again) / (static_cast<double>(run.workload_as_run.forwards) *
                                       run.plan.microbatches * replicas_of(run.plan));
}

/// Parameters as written, one by one: commas within a list or a mapping end none.
std::vector<std::string> parts_of(const std::string& parameters) {
  std::vector<std::string> parts;
  int depth = 0;
  std::string part;
  for (const char c : parameters) {
    depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parts.push_back(std::move(part));
      part.clear();
    } else if (c != ' ' || !part.empty()) {
      part += c;
    }
  }
  if (!part.empty()) parts.push_back(std::move(part));
  return parts;
}

class RunComparison {
  using What = ComparedColumn::What;

 public:
  RunComparison(const Scenario& scenario, std::span<const RunResult> results)
      : scenario_(scenario), results_(results) {}

  std::vector<ComparedColumn> run() {
    add_memories();
    add(What::step_time, [](const RunResult& run) { return time_entry(run.metrics.makespan); });
    if (any([](const RunResult& run) { return run.metrics.period != run.metrics.makespan; }))
      add(What::period, [](const RunResult& run) { return time_entry(run.metrics.period); });
    add(What::overhead, [](const RunResult& run) { return share_entry(run.overhead); });
    add(What::throughput, throughput_entry);
    if (any([](const RunResult& run) { return run.metrics.energy.has_value(); }))
      add(What::energy_per_sample, energy_entry);
    if (any([](const RunResult& run) { return gap_of(run).has_value(); }))
      add(What::gap, [](const RunResult& run) { return share_entry(gap_of(run)); });
    if (any([](const RunResult& run) { return recomputed(run).value_or(0) > 0; }))
      add(What::recomputed, [](const RunResult& run) -> Entry {
        return {share_entry(recomputed(run)).cell, {}};
      });
    return std::move(columns_);
  }

 private:
  [[nodiscard]] bool any(auto predicate) const { return std::ranges::any_of(results_, predicate); }

  void add(What what, const EntryOf& measure, std::string memory = {}) {
    ComparedColumn column{what, std::move(memory), {}};
    double least = std::numeric_limits<double>::infinity(), most = -least;
    std::vector<std::optional<double>> costs;
    for (const RunResult& run : results_) {
      Entry entry = measure(run);
      if (!is_ok(run)) entry.cost.reset();
      if (entry.cost) {
        least = std::min(least, *entry.cost);
        most = std::max(most, *entry.cost);
      }
      costs.push_back(entry.cost);
      column.cells.push_back(std::move(entry.cell));
    }
    for (std::size_t r = 0; r < costs.size(); ++r)
      column.cells[r].is_best = costs[r] == least && least < most;
    columns_.push_back(std::move(column));
  }

  /// Memories that hold anything in some run, in the platform's order.
  [[nodiscard]] std::vector<std::string> used_memories() const {
    std::vector<std::string> names;
    for (const Memory& memory : scenario_.platform.memories)
      if (any([&](const RunResult& run) {
            const MemoryMetrics* it = find_memory(run.metrics, memory.name);
            return it != nullptr && it->peak_allocated > Bytes{};
          }))
        names.push_back(memory.name);
    return names;
  }

  void add_memories() {
    const std::vector<std::string> names = used_memories();
    for (const std::string& name : names)
      if (names.size() <= kMostMemoryColumns)
        add(
            is_home(name) ? What::peak : What::stored,
            [&](const RunResult& run) { return peak_entry(find_memory(run.metrics, name)); }, name);
    if (names.size() <= kMostMemoryColumns) return;
    add(What::fullest_name, [&](const RunResult& run) -> Entry {
      const MemoryMetrics* memory = fullest_memory(run);
      return memory ? Entry{{memory->name}, {}} : Entry{};
    });
    add(What::fullest_peak, [&](const RunResult& run) { return peak_entry(fullest_memory(run)); });
  }

  [[nodiscard]] bool is_home(const std::string& memory) const {
    return std::ranges::any_of(scenario_.platform.processors, [&](const Processor& processor) {
      return scenario_.platform[processor.memory].name == memory;
    });
  }

  /// With a fill, and compared, where operators run; storage is only counted.
  [[nodiscard]] Entry peak_entry(const MemoryMetrics* memory) const {
    if (!memory || memory->peak_allocated == Bytes{}) return {};
    Entry entry{{to_text(memory->peak_allocated)}, {}};
    if (!is_home(memory->name)) return entry;
    entry.cost = static_cast<double>(memory->peak_allocated.count());
    if (memory->usable) entry.cell.fill = fill_of(*memory);
    return entry;
  }

  const Scenario& scenario_;
  const std::span<const RunResult> results_;
  std::vector<ComparedColumn> columns_;
};

}  // namespace

std::vector<ComparedColumn> compare_runs(const Scenario& scenario,
                                         std::span<const RunResult> results) {
  return RunComparison(scenario, results).run();
}

std::vector<std::string> short_labels(std::span<const RunResult> results) {
  std::map<std::string, std::size_t> runs_with;
  for (const RunResult& run : results)
    for (std::string& part : parts_of(run.policy_parameters)) ++runs_with[std::move(part)];
  std::vector<std::string> labels;
  for (const RunResult& run : results) {
    std::vector<std::string> parts = parts_of(run.policy_parameters);
    std::erase_if(parts, [&](const auto& part) { return runs_with[part] == results.size(); });
    labels.push_back(parts.empty() ? run.policy
                                   : fmt::format("{} ({})", run.policy, fmt::join(parts, ", ")));
  }
  return labels;
}

const MemoryMetrics* fullest_memory(const RunResult& result) {
  const MemoryMetrics* best = nullptr;
  for (const MemoryMetrics& memory : result.metrics.memories) {
    const double fill = fill_of(memory);
    const double best_fill = best ? fill_of(*best) : 0.0;
    if (!best || fill > best_fill ||
        (fill == best_fill && memory.peak_allocated > best->peak_allocated))
      best = &memory;
  }
  return best;
}

bool is_ok(const RunResult& result) {
  return !result.infeasible && result.metrics.status == RunStatus::ok;
}

}  // namespace plimsoll
