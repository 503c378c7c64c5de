/// The forms in which commands report what they found, beside text on standard output. One table,
/// in report_formats.cpp, has all of them: a row is a form, and says what each command writes in
/// it.
#pragma once

#include "output.hpp"
#include "scenario/calibration/calibration.hpp"
#include "scenario/calibration/cluster_calibration.hpp"
#include "scenario/calibration/power_calibration.hpp"
#include "scenario/capacity/capacity.hpp"
#include "scenario/run/run.hpp"
#include "scenario/suite/suite_check.hpp"
#include "scenario/sweep/database.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace plimsoll {

/// Scenarios with what came out of each.
struct Outcomes {
  std::vector<Scenario> scenarios;
  std::vector<RunResult> results;  ///< of all scenarios
  std::vector<std::size_t> ends;   ///< by scenario: in `results`

  [[nodiscard]] std::span<const RunResult> of(std::size_t scenario) const {
    const std::size_t begin = scenario == 0 ? 0 : ends[scenario - 1];
    return std::span(results).subspan(begin, ends[scenario] - begin);
  }
};

/// How what a command found is written to a file; `-`, where that is allowed, is standard output.
template <class Found>
using ReportWriter = void (*)(const Found& found, const std::string& file);

/// A form, and what has it; nullptr where a command has no report in it.
struct ReportFormat {
  const char* option;
  const char* about;
  NamedFile::Kind kind = NamedFile::Kind::text;
  bool is_of_one_run = false;  ///< of runs, only where there is one
  bool shows_steps = false;    ///< of runs, those of all microbatches
  /// Throws InputError where the report could not be written, whatever is found.
  void (*require)() = nullptr;
  ReportWriter<Outcomes> of_runs = nullptr;
  ReportWriter<Database> of_sweep = nullptr;
  ReportWriter<std::vector<CheckedSuite>> of_suites = nullptr;
  ReportWriter<CapacityReport> of_capacity = nullptr;
  ReportWriter<Calibration> of_calibration = nullptr;
  ReportWriter<PowerCalibration> of_powers = nullptr;
  ReportWriter<ClusterCalibration> of_clusters = nullptr;
};

[[nodiscard]] std::span<const ReportFormat> report_formats();

/// The reports of a command that were asked for: `writer` says whose they are.
template <class Found>
class Reports {
 public:
  explicit Reports(ReportWriter<Found> ReportFormat::*writer) : writer_(writer) {
    for (const ReportFormat& format : report_formats())
      if (format.*writer != nullptr) formats_.push_back(&format);
    files_.resize(formats_.size());
  }

  /// One for each form. The reports must stay where they are until the program has parsed.
  void add_options(CLI::App& command) {
    for (std::size_t i = 0; i < formats_.size(); ++i)
      add_file(command, formats_[i]->option, files_[i], formats_[i]->about);
  }

  /// Of what else the command may find, to the same files. Precondition: `writer` has all the forms
  /// that were asked for.
  template <class Other>
  [[nodiscard]] Reports<Other> of(ReportWriter<Other> ReportFormat::*writer) const {
    Reports<Other> others(writer);
    for (std::size_t i = 0; i < formats_.size(); ++i)
      for (std::size_t j = 0; j < others.formats_.size(); ++j)
        if (others.formats_[j] == formats_[i]) others.files_[j] = files_[i];
    return others;
  }

  [[nodiscard]] std::vector<NamedFile> files() const {
    std::vector<NamedFile> files;
    for (std::size_t i = 0; i < formats_.size(); ++i)
      files.push_back({formats_[i]->option, files_[i], formats_[i]->kind});
    return files;
  }

  /// The first that is there only for a single run.
  [[nodiscard]] std::optional<std::string> of_one_run() const {
    for (std::size_t i = 0; i < formats_.size(); ++i)
      if (formats_[i]->is_of_one_run && !files_[i].empty()) return formats_[i]->option;
    return std::nullopt;
  }

  /// Whether one of them shows every step.
  [[nodiscard]] bool show_steps() const {
    for (std::size_t i = 0; i < formats_.size(); ++i)
      if (formats_[i]->shows_steps && !files_[i].empty()) return true;
    return false;
  }

  [[nodiscard]] bool any() const {
    return std::ranges::any_of(files_, [](const std::string& file) { return !file.empty(); });
  }

  /// Whether one of them takes standard output.
  [[nodiscard]] bool take_output() const { return std::ranges::count(files_, "-") > 0; }

  /// Before long work: throws InputError where a report could not be written whatever is found.
  void require() const {
    for (std::size_t i = 0; i < formats_.size(); ++i) {
      if (files_[i].empty()) continue;
      require_place(files_[i]);
      if (formats_[i]->require != nullptr) formats_[i]->require();
    }
  }

  /// Files first, so that a failure to write one is not buried under a report.
  void write(const Found& found) const {
    for (const bool to_output : {false, true})
      for (std::size_t i = 0; i < formats_.size(); ++i)
        if (!files_[i].empty() && (files_[i] == "-") == to_output)
          (formats_[i]->*writer_)(found, files_[i]);
  }

 private:
  template <class Other>
  friend class Reports;

  ReportWriter<Found> ReportFormat::*writer_;
  std::vector<const ReportFormat*> formats_;
  std::vector<std::string> files_;  ///< by form; empty where it is not asked for
};

}  // namespace plimsoll
