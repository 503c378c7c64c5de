#include "report/run/text_report.hpp"

#include "execution/find_metrics.hpp"
#include "platform/core/break_even.hpp"
#include "policy/interface/left_out.hpp"
#include "report/run/json_report.hpp"
#include "report/run/mesh_words.hpp"
#include "report/run/run_comparison.hpp"
#include "report/run/run_details.hpp"
#include "report/run/run_failures.hpp"
#include "report/run/run_notes.hpp"
#include "report/run/run_subject.hpp"
#include "report/run/training_words.hpp"
#include "report/text/text_table.hpp"
#include "scenario/run/claim_check.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

constexpr std::size_t kBarWidth = 6;
constexpr const char* kNothing = "-";
constexpr std::size_t kMostStorages = 8;  ///< of which a break-even is told
constexpr std::size_t kMostNumbers = 4;   ///< of the worst quality, by name

class Report {
 public:
  Report(const Scenario& scenario, std::span<const RunResult> results, const TextOptions& options)
      : scenario_(scenario),
        results_(results),
        labels_(short_labels(results)),
        options_(options),
        style_(options.style) {}

  std::string run() {
    heading();
    if (results_.size() > 1) {
      if (!options_.verbose) tell_meshes();
      compare_runs();
      if (!options_.verbose) {
        compare_peaks();
        compare_times();
        compare_energies();
        compare_trainings();
      }
    }
    if (results_.size() == 1 || options_.verbose)
      for (const RunResult& result : results_) tell(result);
    for (const RunResult& result : results_) tell_failure(result);
    tell_notes();
    return std::move(out_);
  }

 private:
  void heading() {
    out_ += style_(Paint::bold, scenario_.name);
    out_ += fmt::format("   {}\n", run_subject(scenario_, results_));
  }

  /// Of runs that are compared; alone, each tells its own.
  void tell_meshes() {
    std::vector<std::string> told;
    for (const RunResult& result : results_) {
      if (!result.mesh) continue;
      std::string words = mesh_words(*result.mesh);
      if (std::ranges::count(told, words) > 0) continue;
      out_ +=
          fmt::format("  {}  {}\n", style_(Paint::bold, "mesh"), wrapped(words, kReportWidth, 8));
      told.push_back(std::move(words));
    }
  }

  Cell status_cell(const RunResult& result) const {
    const std::string status = status_text(result);
    return {status, status == "ok" ? Paint::good : Paint::bad};
  }

  /// Of one of `results_`.
  const std::string& short_label(const RunResult& result) const {
    return labels_[static_cast<std::size_t>(&result - results_.data())];
  }

  bool any(auto predicate) const { return std::ranges::any_of(results_, predicate); }

  void compare_runs() {
    const std::vector<ComparedColumn> compared = plimsoll::compare_runs(scenario_, results_);
    std::vector<Column> columns{{"policy"}, {"status"}};
    for (const ComparedColumn& column : compared) columns.push_back(header_of(column));
    TextTable table(std::move(columns));
    bool any_best = false;
    for (std::size_t r = 0; r < results_.size(); ++r) {
      std::vector<Cell> row{{short_label(results_[r])}, status_cell(results_[r])};
      for (const ComparedColumn& column : compared) {
        row.push_back(compared_cell(column, r));
        any_best |= column.cells[r].is_best;
      }
      table.add(std::move(row));
    }
    out_ += '\n' + table.text(style_);
    if (any_best) out_ += "  * best of those that ended well\n";
  }

  Column header_of(const ComparedColumn& column) const {
    using enum Column::Align;
    using What = ComparedColumn::What;
    switch (column.what) {
      case What::peak: {
        const auto memory = scenario_.platform.find_memory(column.memory);
        const Bytes usable = memory ? scenario_.platform[*memory].usable() : Bytes::unlimited();
        const std::string peak = "peak in " + column.memory;
        return {usable.is_unlimited() ? peak : fmt::format("{}, of {}", peak, to_text(usable))};
      }
      case What::stored:
        return {"in " + column.memory, right};
      case What::fullest_name:
        return {"fullest memory"};
      case What::fullest_peak:
        return {"its peak"};
      case What::step_time:
        return {"step time", right};
      case What::period:
        return {"period", right};
      case What::overhead:
        return {"overhead", right};
      case What::throughput:
        return {"samples/s", right};
      case What::energy_per_sample:
        return {"per sample", right};
      case What::gap:
        return {"above bound", right};
      case What::recomputed:
        return {"run again", right};
    }
    return {""};
  }

  /// The best of a column is marked for eyes that see no colour, too; the others leave the room.
  static Cell compared_cell(const ComparedColumn& column, std::size_t run) {
    const ComparedCell& cell = column.cells[run];
    std::string text = cell.text;
    if (cell.fill) {
      const std::string drawn = bar(*cell.fill, kBarWidth);
      text = fmt::format("{}{:{}} {:>9} {:>6}", drawn, "", kBarWidth - width_of(drawn), text,
                         percent(*cell.fill));
    }
    const bool marks = std::ranges::any_of(column.cells, &ComparedCell::is_best);
    if (marks) text += cell.is_best ? "*" : " ";
    return {std::move(text), cell.is_best ? Paint::good : Paint::none};
  }

  void compare_peaks() {
    std::vector<std::size_t> classes;
    for (std::size_t c = 0; c < kTensorClasses; ++c)
      if (any([&](const RunResult& result) {
            const MemoryMetrics* memory = fullest_memory(result);
            return memory && memory->at_peak[c] > Bytes{};
          }))
        classes.push_back(c);
    if (classes.empty()) return;
    using enum Column::Align;
    std::vector<Column> columns{{"alive at the peak"}, {"of"}, {"after", right}};
    for (const std::size_t c : classes)
      columns.push_back({to_text(static_cast<TensorClass>(c)), right});
    const bool held = any([&](const RunResult& result) {
      const MemoryMetrics* memory = fullest_memory(result);
      return memory && memory->peak_held != memory->peak_allocated;
    });
    if (held) columns.insert(columns.end(), {{"reserved", right}, {"device in use", right}});
    TextTable table(std::move(columns));
    for (const RunResult& result : results_) {
      const MemoryMetrics* memory = fullest_memory(result);
      if (!memory) continue;
      std::vector<Cell> row{{short_label(result)}, {memory->name}, {to_text(memory->peak_time)}};
      for (const std::size_t c : classes)
        row.push_back({memory->at_peak[c] > Bytes{} ? to_text(memory->at_peak[c]) : kNothing});
      if (held)
        row.insert(row.end(), {{to_text(memory->peak_held)}, {to_text(memory->peak_reserved)}});
      table.add(std::move(row));
    }
    out_ += '\n' + table.text(style_);
  }

  /// Shares of the step, on average over the processors that work in it.
  struct Spent {
    double busy = 0, idle = 0;
    std::array<double, kStallCauses> stall{};
  };

  Spent spent(const RunResult& result) const {
    Spent sum;
    double processors = 0;
    for (std::size_t p = 0; p < result.metrics.processors.size(); ++p) {
      const ProcessorMetrics& processor = result.metrics.processors[p];
      if (processor.span == Time{}) continue;
      ++processors;
      sum.busy += 1 - *processor.bubble;
      const double whole = in_seconds(*result.metrics.makespan) *
                           static_cast<double>(scenario_.platform.processors[p].streams);
      for (std::size_t c = 0; c < kStallCauses; ++c)
        sum.stall[c] += in_seconds(processor.stall[c]) / whole;
    }
    if (processors == 0) return sum;
    sum.busy /= processors;
    sum.idle = 1 - sum.busy;
    for (double& stall : sum.stall) {
      stall /= processors;
      sum.idle -= stall;
    }
    sum.idle = std::max(sum.idle, 0.0);
    return sum;
  }

  void compare_times() {
    if (!any([](const RunResult& result) { return result.metrics.makespan.has_value(); })) return;
    using enum Column::Align;
    std::vector<Column> columns{{"where time went"}, {"at work"}};
    for (std::size_t c = 0; c < kStallCauses; ++c)
      columns.push_back({to_text(static_cast<StallCause>(c)), right});
    columns.push_back({"idle", right});
    const bool copies = any([](const RunResult& result) { return copied(result) > Bytes{}; });
    if (copies) columns.insert(columns.end(), {{"copied", right}, {"busiest link"}});
    TextTable table(std::move(columns));
    for (const RunResult& result : results_) {
      std::vector<Cell> row{{short_label(result)}};
      add_times(result, row);
      if (copies) add_links(result, row);
      table.add(std::move(row));
    }
    out_ += '\n' + table.text(style_);
  }

  /// Shares of a step; what did not end, or took no time, has none.
  void add_times(const RunResult& result, std::vector<Cell>& row) const {
    if (result.metrics.makespan.value_or(Time{}) == Time{}) {
      row.insert(row.end(), 2 + kStallCauses, Cell{kNothing});
      return;
    }
    const Spent time = spent(result);
    const std::string drawn = bar(time.busy, kBarWidth);
    row.push_back(
        {fmt::format("{}{:{}} {:>6}", drawn, "", kBarWidth - width_of(drawn), percent(time.busy))});
    for (const double stall : time.stall) row.push_back({percent(stall)});
    row.push_back({percent(time.idle)});
  }

  /// Joules of a step, where the platform states powers or energies.
  void compare_energies() {
    if (!any([](const RunResult& result) { return result.metrics.energy.has_value(); })) return;
    using enum Column::Align;
    std::vector<Column> columns{
        {"energy of a step"}, {"in all", right}, {"average", right}, {"highest", right}};
    const bool battery = scenario_.platform.battery.has_value();
    if (battery) columns.push_back({"steps per battery", right});
    columns.push_back({"most of it in"});
    TextTable table(std::move(columns));
    for (const RunResult& result : results_) {
      if (!result.metrics.energy) continue;
      const EnergyMetrics& energy = *result.metrics.energy;
      std::vector<Cell> row{{short_label(result)},
                            {to_text(energy.total)},
                            {to_text(energy.average)},
                            {energy.peak ? to_text(*energy.peak) : kNothing}};
      if (battery)
        row.push_back({energy.steps_per_battery ? thousands(*energy.steps_per_battery) : kNothing});
      row.push_back({main_consumer(energy)});
      table.add(std::move(row));
    }
    out_ += '\n' + table.text(style_);
  }

  /// Over days, where the scenario has `training`.
  void compare_trainings() {
    if (!any([](const RunResult& result) { return result.training.has_value(); })) return;
    using enum Column::Align;
    TextTable table({{"over days"},
                     {"training", right},
                     {"energy", right},
                     {"a charge lasts", right},
                     {"checkpoint every", right},
                     {"storage lasts", right}});
    for (const RunResult& result : results_)
      if (result.training) table.add(training_row(result));
    out_ += '\n' + table.text(style_);
  }

  std::vector<Cell> training_row(const RunResult& result) const {
    const WholeTraining& it = *result.training;
    std::optional<double> lasts;
    for (const StorageMetrics& storage : it.storages)
      if (storage.lasts_days)
        lasts = std::min(lasts.value_or(*storage.lasts_days), *storage.lasts_days);
    const auto days = [](const std::optional<double>& value) {
      return value ? days_text(*value) : std::string(kNothing);
    };
    return {{short_label(result)},
            {days(it.days)},
            {it.energy_j ? joules_text(*it.energy_j) : kNothing},
            {days(it.charge ? std::optional(it.charge->days) : std::nullopt)},
            {it.checkpoints ? counted(static_cast<std::size_t>(it.checkpoints->every), "step")
                            : kNothing},
            {days(lasts)}};
  }

  static std::string main_consumer(const EnergyMetrics& energy) {
    if (energy.components.empty() || energy.total == Energy{}) return kNothing;
    const auto most =
        std::ranges::max_element(energy.components, {}, &std::pair<std::string, Energy>::second);
    return fmt::format("{} {}", most->first,
                       percent(in_joules(most->second) / in_joules(energy.total)));
  }

  static Bytes copied(const RunResult& result) {
    Bytes sum;
    for (const LinkMetrics& link : result.metrics.links) sum += link.bytes[0] + link.bytes[1];
    return sum;
  }

  static void add_links(const RunResult& result, std::vector<Cell>& row) {
    double busiest = 0;
    std::string text = kNothing;
    for (const LinkMetrics& link : result.metrics.links) {
      const double busy = busy_share(link);
      if (busy <= busiest) continue;
      busiest = busy;
      text = fmt::format("{} {}", link.name, percent(busy));
    }
    row.push_back({copied(result) > Bytes{} ? to_text(copied(result)) : kNothing});
    row.push_back({text});
  }

  void tell(const RunResult& result) {
    if (result.infeasible) return;
    const Cell status = status_cell(result);
    out_ += '\n' + style_(Paint::bold, label_of(result)) + "  " +
            style_(status.paint, status.text) + '\n';
    out_ += run_details(scenario_, result, style_);
    const ClaimCheck claims = check_claims(result);
    if (!claims.held.empty())
      out_ += fmt::format(
          "  {}  {}\n", style_(Paint::bold, "claims  "),
          wrapped(fmt::format("hold: {}", fmt::join(claims.held, ", ")), kReportWidth, 12));
    if (!result.claims.in_flight.empty())
      out_ += fmt::format("  {}  {}\n", style_(Paint::bold, "stages  "),
                          wrapped(fmt::format("keep {} microbatches in flight",
                                              fmt::join(result.claims.in_flight, ", ")),
                                  kReportWidth, 12));
    tell_bound(result);
    tell_choice(result.claims);
  }

  void tell_choice(const Claims& claims) {
    if (claims.chosen.empty()) return;
    const std::string text = "the plan of " + claims.chosen + left_out_text(claims.left_out);
    out_ +=
        fmt::format("  {}  {}\n", style_(Paint::bold, "chosen  "), wrapped(text, kReportWidth, 12));
  }

  void tell_bound(const RunResult& result) {
    const std::vector<std::string> parts = bound_notes(result);
    if (!parts.empty())
      out_ += fmt::format("  {}  {}\n", style_(Paint::bold, "bound   "),
                          wrapped(fmt::format("{}", fmt::join(parts, "; ")), kReportWidth, 12));
  }

  void tell_failure(const RunResult& result) {
    const std::string text = explain_failure(scenario_, result, results_, style_);
    if (!text.empty()) out_ += '\n' + text;
  }

  void tell_notes() {
    out_ += '\n';
    for (const RunResult& result : results_)
      for (const std::string& difference : check_claims(result).differing)
        note(Paint::bad, "claim", fmt::format("{}: {}", label_of(result), difference));
    for (const Diagnostic& warning : scenario_.warnings)
      note(Paint::warning, "warning", without_severity(warning));
    for (const RunResult& result : results_)
      for (const std::string& text : result.notes)
        note(Paint::warning, "note", fmt::format("{}: {}", label_of(result), text));
    tell_unused_settings();
    tell_recording();
    tell_break_even();
    if (results_.size() > 1 && !options_.verbose) tell_claims_of_all();
    if (!results_.empty())
      note(Paint::dim, "rests on",
           fmt::format("`{}`, the worst quality among the platform's numbers{}",
                       to_text(results_.front().worst_quality), quality_counts(results_.front())));
  }

  /// How many have which quality, the worst first, and which are of the worst; nothing where all are of one.
  static std::string quality_counts(const RunResult& result) {
    std::vector<std::string> parts;
    for (std::size_t q = kQualities; q-- > 0;) {
      const std::vector<std::string>& paths = result.numbers_of[q];
      if (paths.empty()) continue;
      parts.push_back(fmt::format("{} `{}`", thousands(static_cast<std::int64_t>(paths.size())),
                                  to_text(static_cast<Quality>(q))));
      if (parts.size() > 1) continue;
      const std::size_t named = std::min(paths.size(), kMostNumbers);
      parts.back() +=
          fmt::format(" ({}{})", fmt::join(std::span(paths).first(named), ", "),
                      paths.size() > named
                          ? fmt::format(" and {} more",
                                        thousands(static_cast<std::int64_t>(paths.size() - named)))
                          : "");
    }
    return parts.size() < 2 ? "" : fmt::format(": {}", fmt::join(parts, ", "));
  }

  void tell_claims_of_all() {
    std::size_t held = 0;
    for (const RunResult& result : results_) {
      const ClaimCheck claims = check_claims(result);
      if (!claims.differing.empty()) return;
      held += claims.held.size();
    }
    if (held > 0)
      note(Paint::dim, "claims",
           fmt::format("all {} (times, peaks) equal what was measured", held));
  }

  /// Times of a profile are played as they are, whatever the platform.
  void tell_recording() {
    if (results_.empty() || !results_.front().recorded) return;
    note(Paint::warning, "note", recording_note(results_.front()));
  }

  /// How cheap a tensor must be to make again, for each storage as the first processor sees it.
  void tell_break_even() {
    const Platform& platform = scenario_.platform;
    const Workload* step = results_.empty() ? nullptr : &results_.front().workload_as_run;
    const DType dtype = step != nullptr ? main_dtype(*step) : DType::fp32;
    const std::vector<BreakEven> rows =
        break_even_of(platform, Topology(platform), ProcessorId{0}, dtype, kMostStorages + 1);
    for (std::size_t r = 0; r < std::min(rows.size(), kMostStorages); ++r) {
      const BreakEven& row = rows[r];
      const auto is_like_it = [&](const BreakEven& it) {
        return std::pair(it.time, it.energy) == std::pair(row.time, row.energy);
      };
      if (std::ranges::any_of(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(r),
                              is_like_it))
        continue;  // machine by machine of a cluster, all the same
      std::string text = fmt::format("recomputing beats a copy to {} and back below {}",
                                     platform[row.storage].name, to_text(row.time));
      if (row.energy == FlopsPerByte{})
        text += " in time; by what is stated, such copies take no energy of their own";
      else if (row.energy)
        text += fmt::format(" in time, {} in energy", to_text(*row.energy));
      if (step != nullptr && dtype != step->dtype)
        text += fmt::format(", at the rate of {}, in which most of it computes", to_text(dtype));
      note(Paint::dim, "break-even", text);
    }
    if (rows.size() > kMostStorages)
      note(Paint::dim, "break-even", "that of the platform's other storages is left out");
  }

  void note(Paint paint, const std::string& label, const std::string& text) {
    out_ += "  " + style_(paint, label + ":") + ' ' +
            wrapped(text, kReportWidth, label.size() + 4) + '\n';
  }

  static std::string without_severity(const Diagnostic& warning) {
    const Location& where = warning.where;
    std::string text = warning.message;
    if (!warning.hint.empty()) text += "; " + warning.hint;
    if (where.line > 0) text += fmt::format(" ({}:{})", where.origin, where.line);
    return text;
  }

  /// Whether a storage of this capacity may be empty only because it is too small.
  bool is_too_small(const std::string& name, const RunResult& result) const {
    const auto memory = scenario_.platform.find_memory(name);
    return memory && scenario_.platform[*memory].usable() < result.saved_bytes;
  }

  /// Whether what is set of a part of the platform plays any role in any run.
  bool is_used(const std::string& kind, const std::string& name, const std::string& what) const {
    return any([&](const RunResult& result) {
      const Metrics& metrics = result.metrics;
      if (kind == "links") {
        const auto link = std::ranges::find(metrics.links, name, &LinkMetrics::name);
        return link == metrics.links.end() || link->bytes[0] + link->bytes[1] > Bytes{};
      }
      if (what == "capacity" && is_too_small(name, result)) return true;
      const MemoryMetrics* memory = find_memory(result.metrics, name);
      return !memory || memory->peak_requested > Bytes{};
    });
  }

  void tell_unused_settings() {
    for (const std::string& path : scenario_.assigned_platform_paths) {
      const std::size_t first = path.find('.');
      const std::size_t second = path.find('.', first + 1);
      if (first == std::string::npos || second == std::string::npos) continue;
      const std::string kind = path.substr(0, first);
      const std::string name = path.substr(first + 1, second - first - 1);
      const std::string what = path.substr(second + 1);
      if ((kind == "links" || kind == "memories") && !is_used(kind, name, what))
        note(
            Paint::warning, "note",
            fmt::format("`{}` makes no difference here: {}", path,
                        kind == "links" ? "no copy takes that link" : "that memory holds nothing"));
    }
  }

  const Scenario& scenario_;
  const std::span<const RunResult> results_;
  const std::vector<std::string> labels_;
  const TextOptions& options_;
  const Style& style_;
  std::string out_;
};

}  // namespace

std::string text_report(const Scenario& scenario, std::span<const RunResult> results,
                        const TextOptions& options) {
  return Report(scenario, results, options).run();
}

}  // namespace plimsoll
