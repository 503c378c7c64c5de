#include "report_formats.hpp"

#include "interrupt.hpp"
#include "plan/file/plan_file.hpp"
#include "policy/pipeline/orders/schedule_csv_writer.hpp"
#include "policy/pipeline/partition/layout_writer.hpp"
#include "policy/pipeline/schedule/plan_tasks.hpp"
#include "report/calibration/calibration_json.hpp"
#include "report/capacity/capacity_html.hpp"
#include "report/capacity/capacity_json.hpp"
#include "report/html/html_page.hpp"
#include "report/html/html_report.hpp"
#include "report/run/json_report.hpp"
#include "report/suite/junit_report.hpp"
#include "report/sweep/html_sweep.hpp"
#include "report/trace/memory_snapshot.hpp"
#include "report/trace/trace.hpp"
#include "scenario/sweep/sweep_export.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr const char* kProgram = "plimsoll " PLIMSOLL_VERSION;

/// A report that is one text.
template <class Found, auto text_of>
void text(const Found& found, const std::string& file) {
  write_text(file, text_of(found));
}

/// A report that is a page of charts.
template <class Found, auto page_of>
void page(const Found& found, const std::string& file) {
  write_text(file, html_of(page_of(found), read_html_template()));
}

void require_page() {
  (void)read_html_template();
}

/// Standard output gets the rows as they come.
template <auto write_rows>
void rows(const Database& results, const std::string& file) {
  if (file == "-") return write_rows(results, [](std::string_view text) { print(text); });
  std::string all;
  write_rows(results, [&](std::string_view text) { all += text; });
  write_text(file, all);
}

std::string json_of_runs(const Outcomes& found) {
  return json_report(found.results);
}

HtmlPage page_of_runs(const Outcomes& found) {
  std::vector<HtmlOutcome> all;
  for (std::size_t i = 0; i < found.scenarios.size(); ++i)
    all.push_back({&found.scenarios[i], found.of(i)});
  return html_report(all, kProgram);
}

HtmlPage page_of_sweep(const Database& results) {
  return html_sweep(results, kProgram);
}

HtmlPage page_of_capacity(const CapacityReport& report) {
  return capacity_html(report, kProgram);
}

std::string junit_of_suites(const std::vector<CheckedSuite>& suites) {
  return junit_report(suites);
}

void trace_of_runs(const Outcomes& found, const std::string& file) {
  std::vector<TracedRun> runs;
  for (std::size_t i = 0; i < found.scenarios.size(); ++i)
    for (const RunResult& result : found.of(i))
      runs.push_back({found.scenarios[i].platform, result});
  const WritingFiles waits;
  write_trace(runs, file);
}

/// Whether the only run has a plan; if not, warns that there is nothing to write to `file`.
bool has_plan(const RunResult& result, const std::string& file) {
  if (!result.infeasible) return true;
  print_diagnostics(
      std::vector<Diagnostic>{{Severity::warning,
                               {file, 0, 0},
                               fmt::format("not written: policy `{}` found no plan", result.policy),
                               ""}});
  return false;
}

void plan_of_run(const Outcomes& found, const std::string& file) {
  const RunResult& result = found.results.front();
  if (!has_plan(result, file)) return;
  const WritingFiles waits;
  write_plan(result.plan, result.workload_as_run, found.scenarios.front().platform, file);
}

void snapshot_of_run(const Outcomes& found, const std::string& file) {
  const RunResult& result = found.results.front();
  if (!has_plan(result, file)) return;
  const WritingFiles waits;
  write_memory_snapshot({found.scenarios.front().platform, result}, file);
}

std::string compute_csv_of(const RunResult& result) {
  const Workload& workload = result.workload_as_run;
  return compute_csv(
      tasks_of(result.plan, workload, pipeline_view(workload), Location{"--schedule-csv"}));
}

std::string communication_csv_of(const RunResult& result) {
  const Workload& workload = result.workload_as_run;
  return communication_csv(
      tasks_of(result.plan, workload, pipeline_view(workload), Location{"--communication-csv"}));
}

std::string layout_of(const RunResult& result) {
  const Location where{"--layout"};
  const Workload& workload = result.workload_as_run;
  const ChainView chain = pipeline_view(workload);
  return layout_text(workload, chain, cuts_of(result.plan, workload, chain, where), where) + '\n';
}

/// A report that is a text of the only run's plan.
template <auto text_of>
void of_plan(const Outcomes& found, const std::string& file) {
  const RunResult& result = found.results.front();
  if (has_plan(result, file)) write_text(file, text_of(result));
}

constexpr ReportFormat kFormats[] = {
    {.option = "--json",
     .about = "write the results as JSON; `-` is standard output",
     .of_runs = text<Outcomes, json_of_runs>,
     .of_capacity = text<CapacityReport, capacity_json>,
     .of_calibration = text<Calibration, calibration_json>,
     .of_powers = text<PowerCalibration, power_calibration_json>,
     .of_clusters = text<ClusterCalibration, cluster_calibration_json>},
    {.option = "--html",
     .about = "write the results as an HTML page with charts that opens offline; `-` is standard "
              "output",
     .shows_steps = true,
     .require = require_page,
     .of_runs = page<Outcomes, page_of_runs>,
     .of_sweep = page<Database, page_of_sweep>,
     .of_capacity = page<CapacityReport, page_of_capacity>},
    {.option = "--csv",
     .about = "write a row for each run as CSV; `-` is standard output",
     .of_sweep = rows<export_sweep_csv>},
    {.option = "--jsonl",
     .about = "write a row for each run as JSON lines; `-` is standard output",
     .of_sweep = rows<export_sweep_jsonl>},
    {.option = "--junit",
     .about = "write the results as JUnit XML; `-` is standard output",
     .of_suites = text<std::vector<CheckedSuite>, junit_of_suites>},
    {.option = "--trace",
     .about = "write timelines for ui.perfetto.dev; *.json: in Chrome's trace format",
     .kind = NamedFile::Kind::other,
     .shows_steps = true,
     .of_runs = trace_of_runs},
    {.option = "--snapshot",
     .about = "write a memory snapshot of the only run for PyTorch's memory_viz",
     .kind = NamedFile::Kind::other,
     .is_of_one_run = true,
     .shows_steps = true,
     .of_runs = snapshot_of_run},
    {.option = "--plan-out",
     .about = "write the plan of the only policy (*.json, *.pb or *.bin)",
     .kind = NamedFile::Kind::other,
     .is_of_one_run = true,
     .shows_steps = true,
     .of_runs = plan_of_run},
    {.option = "--schedule-csv",
     .about = "write the schedule of the only policy, a pipeline, as PyTorch's CSV",
     .kind = NamedFile::Kind::other,
     .is_of_one_run = true,
     .shows_steps = true,
     .of_runs = of_plan<compute_csv_of>},
    {.option = "--communication-csv",
     .about = "the same, including sends and receives",
     .kind = NamedFile::Kind::other,
     .is_of_one_run = true,
     .shows_steps = true,
     .of_runs = of_plan<communication_csv_of>},
    {.option = "--layout",
     .about = "write the cuts of the only policy, a pipeline, as Megatron-LM's layout string",
     .kind = NamedFile::Kind::other,
     .is_of_one_run = true,
     .shows_steps = true,
     .of_runs = of_plan<layout_of>},
};

}  // namespace

std::span<const ReportFormat> report_formats() {
  return kFormats;
}

}  // namespace plimsoll
