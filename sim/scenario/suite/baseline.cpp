#include "scenario/suite/baseline.hpp"

#include "scenario/document/quoted_text.hpp"
#include "scenario/suite/recorded_execution.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::int64_t kVersion = 1;
constexpr const char* kHeader =
    "# Recorded by `plimsoll check --update`: the runs of the suite are held to it.\n";

struct WrittenLock {
  std::int64_t version = kVersion;
  std::vector<RecordedRun> runs;
};

Format<std::string> status_word() {
  return one_of<std::string>(
      {{"ok", "ok"}, {"oom", "oom"}, {"deadlock", "deadlock"}, {"infeasible", "infeasible"}});
}

Format<std::vector<RecordedValue>> recorded_values_format() {
  using Written = std::vector<std::pair<Located<std::string>, Located<std::string>>>;
  const Format<Written> written = map_of(located(text()));
  auto read = [written](const Node& node,
                        Diagnostics& diagnostics) -> std::optional<std::vector<RecordedValue>> {
    const auto entries = written.read(node, diagnostics);
    if (!entries) return std::nullopt;
    std::vector<RecordedValue> values;
    for (const auto& [name, text] : *entries) {
      ReadValue one = read_value(name.value, text.value);
      if (one.value)
        values.push_back({std::move(*one.value), name.where});
      else
        diagnostics.error(one.knows_name ? text.where : name.where, std::move(one.problem),
                          std::move(one.hint));
    }
    if (values.size() < entries->size()) return std::nullopt;
    return values;
  };
  return {std::move(read), written.shape};
}

Format<WrittenLock> lock_format() {
  const auto run =
      Record<RecordedRun>("recorded run", "What one policy of one scenario cost.")
          .where(&RecordedRun::where)
          .required("scenario", &RecordedRun::scenario, text(), "its name in the suite")
          .required("policy", &RecordedRun::policy, text(), "with its parameters")
          .required("status", &RecordedRun::status, status_word(), "how it ended")
          .optional("plan", &RecordedRun::plan, text(), "a digest of the plan")
          .optional("execution", &RecordedRun::execution, text(), "a digest of its record")
          .required("values", &RecordedRun::values, recorded_values_format(), "exact counts")
          .format();
  return Record<WrittenLock>("lock file", "What the runs of a suite cost.")
      .required("lock", &WrittenLock::version, integer(kVersion, kVersion), "the form of the file")
      .required("runs", &WrittenLock::runs, list_of(run), "one each")
      .format();
}

void refuse_repeated(const Baseline& baseline, Diagnostics& diagnostics) {
  std::map<std::pair<std::string, std::string>, Location> seen;
  for (const RecordedRun& run : baseline.runs) {
    const auto [first, is_new] = seen.emplace(std::pair(run.scenario, run.policy), run.where);
    if (!is_new)
      diagnostics.error(run.where, fmt::format("policy `{}` of scenario `{}` is recorded in line "
                                               "{} already",
                                               run.policy, run.scenario, first->second.line));
  }
}

}  // namespace

const RecordedRun* Baseline::find(const RecordedRun& like) const {
  const auto found =
      std::ranges::find_if(runs, [&](const RecordedRun& run) { return run.is_of(like); });
  return found == runs.end() ? nullptr : &*found;
}

Baseline read_baseline(const Node& document) {
  Diagnostics diagnostics;
  auto written = lock_format().read(document, diagnostics);
  Baseline baseline;
  if (written) baseline.runs = std::move(written->runs);
  refuse_repeated(baseline, diagnostics);
  diagnostics.throw_if_errors();
  return baseline;
}

std::string to_text(const Baseline& baseline) {
  std::string text = fmt::format("{}lock: {}\nruns:", kHeader, kVersion);
  if (baseline.runs.empty()) return text + " []\n";
  text += '\n';
  for (const RecordedRun& run : baseline.runs) {
    text += fmt::format("  - scenario: {}\n    policy: {}\n    status: {}\n", quoted(run.scenario),
                        quoted(run.policy), run.status);
    if (!run.plan.empty()) text += fmt::format("    plan: {}\n", quoted(run.plan));
    if (!run.execution.empty()) text += fmt::format("    execution: {}\n", quoted(run.execution));
    text += "    values:";
    if (run.values.empty()) text += " {}";
    text += '\n';
    for (const RecordedValue& value : run.values)
      text += fmt::format("      {}: {}\n", name_of(value.value), exact_text(value.value));
  }
  return text;
}

std::filesystem::path executions_folder(const std::filesystem::path& lock) {
  return std::filesystem::path(lock).replace_extension(".executions");
}

std::filesystem::path execution_path(const std::filesystem::path& lock, const RecordedRun& run) {
  constexpr std::size_t kLongest = 120;
  constexpr std::string_view kKept =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.~";
  const std::string whole = run.scenario + '~' + run.policy;
  std::string name = whole.substr(0, kLongest);
  for (char& c : name)
    if (kKept.find(c) == std::string_view::npos) c = '-';
  return executions_folder(lock) / fmt::format("{}-{}.txt", name, digest_of(whole).substr(0, 8));
}

}  // namespace plimsoll
