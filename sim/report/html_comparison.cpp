#include "report/html_comparison.hpp"

#include "report/json_report.hpp"
#include "report/run_details.hpp"
#include "report/style.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

namespace plimsoll {

namespace {

using Cell = HtmlTable::Cell;

/// What a column shows of a run, and how good that is: less is better. Without a rank nothing is
/// compared.
struct Entry {
  Cell cell{"-"};
  std::optional<double> rank;
};

struct Measure {
  std::string header;
  std::function<Entry(const RunResult&)> of;
};

bool is_ok(const RunResult& run) {
  return !run.infeasible && run.metrics.status == RunStatus::ok;
}

const MemoryMetrics* find_memory(const RunResult& run, const std::string& name) {
  const auto found = std::ranges::find(run.metrics.memories, name, &MemoryMetrics::name);
  return found == run.metrics.memories.end() ? nullptr : &*found;
}

class Comparison {
 public:
  Comparison(const Scenario& scenario, std::span<const RunResult> results)
      : scenario_(scenario), results_(results) {}

  HtmlTable run() {
    add_memories();
    add_costs();
    HtmlTable table;
    table.columns = {{"policy"}, {"status"}};
    for (const Measure& measure : measures_) table.columns.push_back({measure.header, true});
    for (const RunResult& run : results_) table.rows.push_back({{label_of(run)}, status_of(run)});
    for (const Measure& measure : measures_) add_column(measure, table);
    return table;
  }

 private:
  static Cell status_of(const RunResult& run) {
    Cell cell{status_text(run)};
    if (!is_ok(run)) cell.mark = HtmlTable::Mark::bad;
    if (run.infeasible)
      cell.hint = fmt::format("{}; the smallest budget that it could meet is {}",
                              run.infeasible->why, to_text(run.infeasible->smallest_budget));
    else if (run.oom)
      cell.hint = fmt::format("{} asks for {} of {}, where {} are free", run.oom->step,
                              to_text(run.oom->asked), run.oom->memory, to_text(run.oom->free));
    else if (!run.cycle.empty())
      cell.hint = "steps wait for each other";
    return cell;
  }

  void add_column(const Measure& measure, HtmlTable& table) const {
    std::vector<Entry> entries;
    std::optional<double> least, most;
    for (const RunResult& run : results_) {
      Entry entry = measure.of(run);
      if (is_ok(run) && entry.rank) {
        least = std::min(least.value_or(*entry.rank), *entry.rank);
        most = std::max(most.value_or(*entry.rank), *entry.rank);
      }
      entries.push_back(std::move(entry));
    }
    for (std::size_t r = 0; r < entries.size(); ++r) {
      if (is_ok(results_[r]) && entries[r].rank == least && least != most)
        entries[r].cell.mark = HtmlTable::Mark::best;
      table.rows[r].push_back(std::move(entries[r].cell));
    }
  }

  [[nodiscard]] bool any(auto predicate) const { return std::ranges::any_of(results_, predicate); }

  /// The memories in which operators run; of many the fullest only.
  void add_memories() {
    constexpr std::size_t kMostColumns = 3;
    std::vector<std::string> names;
    for (const Processor& processor : scenario_.platform.processors) {
      const std::string& name = scenario_.platform[processor.memory].name;
      const bool is_used = any([&](const RunResult& run) {
        const MemoryMetrics* memory = find_memory(run, name);
        return memory && memory->peak_allocated > Bytes{};
      });
      if (is_used && std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    if (names.size() <= kMostColumns) {
      for (const std::string& name : names)
        measures_.push_back({"peak of " + name, [this, name](const RunResult& run) {
                               return peak_of(find_memory(run, name));
                             }});
      return;
    }
    measures_.push_back({"highest peak", [this, names](const RunResult& run) {
                           const MemoryMetrics* highest = nullptr;
                           for (const std::string& name : names) {
                             const MemoryMetrics* it = find_memory(run, name);
                             if (it && (!highest || it->peak_allocated > highest->peak_allocated))
                               highest = it;
                           }
                           return peak_of(highest);
                         }});
  }

  [[nodiscard]] Entry peak_of(const MemoryMetrics* memory) const {
    if (!memory || memory->peak_allocated == Bytes{}) return {};
    Entry entry{{to_text(memory->peak_allocated)},
                static_cast<double>(memory->peak_allocated.count())};
    if (usable_of(scenario_, memory->name)) entry.cell.bar = fill_of(scenario_, *memory);
    return entry;
  }

  void add_costs() {
    add_time("step time", [](const RunResult& run) { return run.metrics.makespan; });
    if (any([](const RunResult& run) { return run.metrics.period != run.metrics.makespan; }))
      add_time("period", [](const RunResult& run) { return run.metrics.period; });
    measures_.push_back({"samples/s", [](const RunResult& run) -> Entry {
                           if (!run.metrics.throughput) return {};
                           return {{decimal(*run.metrics.throughput)}, -*run.metrics.throughput};
                         }});
    measures_.push_back({"overhead", [](const RunResult& run) -> Entry {
                           if (!run.overhead) return {};
                           return {{percent(*run.overhead)}, *run.overhead};
                         }});
    if (any([](const RunResult& run) { return run.metrics.energy.has_value(); }))
      measures_.push_back({"energy per sample", [](const RunResult& run) -> Entry {
                             if (!run.metrics.energy) return {};
                             return {{to_text(run.metrics.energy->per_sample)},
                                     in_joules(run.metrics.energy->per_sample)};
                           }});
    if (any([](const RunResult& run) { return gap_of(run).has_value(); }))
      measures_.push_back({"above its bound", [](const RunResult& run) -> Entry {
                             const auto gap = gap_of(run);
                             return gap ? Entry{{percent(*gap)}, *gap} : Entry{};
                           }});
  }

  void add_time(const std::string& header, auto time_of) {
    measures_.push_back({header, [time_of](const RunResult& run) -> Entry {
                           const std::optional<Time> time = time_of(run);
                           if (!time) return {};
                           return {{to_text(*time)}, static_cast<double>(time->count())};
                         }});
  }

  static std::optional<double> gap_of(const RunResult& run) {
    const auto gap = [](Time time, Time bound) { return in_seconds(time) / in_seconds(bound) - 1; };
    const Bounds& bounds = run.bounds;
    if (run.metrics.makespan && bounds.makespan && *bounds.makespan > Time{})
      return gap(*run.metrics.makespan, *bounds.makespan);
    if (run.metrics.period && bounds.period && *bounds.period > Time{})
      return gap(*run.metrics.period, *bounds.period);
    return std::nullopt;
  }

  const Scenario& scenario_;
  const std::span<const RunResult> results_;
  std::vector<Measure> measures_;
};

}  // namespace

HtmlTable html_comparison(const Scenario& scenario, std::span<const RunResult> results) {
  return Comparison(scenario, results).run();
}

}  // namespace plimsoll
