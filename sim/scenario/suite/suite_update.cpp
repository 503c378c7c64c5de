#include "scenario/suite/suite_update.hpp"

#include "scenario/suite/comparison.hpp"
#include "scenario/suite/recorded_execution.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace fs = std::filesystem;

namespace {

/// The recorded runs that stay in their order; each new one after its predecessor in the suite.
Baseline merged(const Baseline& baseline, const std::vector<RunToRecord>& runs) {
  Baseline merged;
  const auto is_in_suite = [&](const RecordedRun& was) {
    return std::ranges::any_of(runs, [&](const RunToRecord& it) { return it.run.is_of(was); });
  };
  std::ranges::copy_if(baseline.runs, std::back_inserter(merged.runs), is_in_suite);
  auto next = merged.runs.begin();
  for (const RunToRecord& it : runs) {
    const auto found = std::ranges::find_if(
        merged.runs, [&](const RecordedRun& run) { return run.is_of(it.run); });
    if (found != merged.runs.end()) {
      *found = carried_over(*found, it.run, it.tolerance);
      next = found + 1;
    } else {
      next = merged.runs.insert(next, it.run) + 1;
    }
  }
  return merged;
}

std::vector<std::string> changes_of(const RecordedRun& was, const RunToRecord& is) {
  const Comparison comparison = compare(was, is.run, is.tolerance);
  std::vector<std::string> changes;
  for (const Finding& finding : comparison.findings)
    changes.push_back(
        fmt::format("{} of {}, policy {}", finding.words, is.run.scenario, is.run.policy));
  const bool is_other = comparison.is_another_plan || was.execution != is.run.execution;
  if (changes.empty() && is_other)
    changes.push_back(fmt::format("another {} with the same values: {}, policy {}",
                                  comparison.is_another_plan ? "plan" : "record of the execution",
                                  is.run.scenario, is.run.policy));
  return changes;
}

bool has_text(const fs::path& path, const std::string& text) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;
  if (fs::file_size(path, ignored) != text.size()) return false;
  return read_whole_file(path, text.size(), "recorded executions") == text;
}

std::vector<std::string> changes_of(const Baseline& baseline,
                                    const std::vector<RunToRecord>& runs) {
  std::vector<std::string> changes;
  for (const RunToRecord& it : runs) {
    const RecordedRun* was = baseline.find(it.run);
    if (was != nullptr)
      std::ranges::move(changes_of(*was, it), std::back_inserter(changes));
    else
      changes.push_back(fmt::format("new: {}, policy {}", it.run.scenario, it.run.policy));
  }
  for (const RecordedRun& was : baseline.runs)
    if (std::ranges::none_of(runs, [&](const RunToRecord& it) { return it.run.is_of(was); }))
      changes.push_back(fmt::format("removed: {}, policy {}", was.scenario, was.policy));
  return changes;
}

}  // namespace

BaselineUpdate::BaselineUpdate(const fs::path& lock, const Baseline& baseline,
                               const std::vector<RunToRecord>& runs)
    : lock_(lock), changes_(changes_of(baseline, runs)) {
  prepare_executions(baseline, runs);
  const std::string text = to_text(merged(baseline, runs));
  std::error_code ignored;
  if (!fs::exists(lock, ignored) || text != to_text(baseline)) prepare(lock, text);
  find_gone(baseline, runs);
}

BaselineUpdate::~BaselineUpdate() {
  files_.clear();
  std::error_code is_not_empty;
  fs::remove(executions_folder(lock_), is_not_empty);
}

void BaselineUpdate::prepare(const fs::path& path, std::string_view text) {
  auto& file = files_.emplace_back(std::make_unique<WholeFile>(path));
  file->stream().write(text.data(), static_cast<std::streamsize>(text.size()));
  file->ready();
}

void BaselineUpdate::prepare_executions(const Baseline& baseline,
                                        const std::vector<RunToRecord>& runs) {
  for (const RunToRecord& it : runs) {
    const fs::path path = execution_path(lock_, it.run);
    if (!it.execution || has_text(path, *it.execution)) continue;
    std::error_code told_when_writing;
    fs::create_directories(path.parent_path(), told_when_writing);
    prepare(path, *it.execution);
    const RecordedRun* was = baseline.find(it.run);
    if (was != nullptr && was->execution == it.run.execution)
      changes_.push_back(
          fmt::format("execution written again: {}, policy {}", it.run.scenario, it.run.policy));
  }
}

/// Of runs that are gone, and of those whose execution is no longer to be recorded.
void BaselineUpdate::find_gone(const Baseline& baseline, const std::vector<RunToRecord>& runs) {
  for (const RecordedRun& was : baseline.runs) {
    const auto it = std::ranges::find_if(
        runs, [&](const RunToRecord& record) { return record.run.is_of(was); });
    if (it == runs.end() || !it->execution) gone_.push_back(execution_path(lock_, was));
  }
}

void BaselineUpdate::commit() {
  for (const auto& file : files_) file->done();
  std::error_code ignored;
  for (const fs::path& path : gone_) fs::remove(path, ignored);
}

}  // namespace plimsoll
