#include "commands.hpp"
#include "output.hpp"
#include "planning.hpp"
#include "progress.hpp"
#include "report/capacity/capacity_text.hpp"
#include "report_formats.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>

namespace plimsoll {

namespace {

constexpr const char* kCapacityExamples =
    "The report is text; with `--json -`, standard output holds the JSON and nothing else.\n"
    "Examples:\n"
    "  plimsoll capacity scenarios/capacity/vision-team.yaml\n"
    "  plimsoll capacity my-plan.yaml --html plan.html --json plan.json\n"
    "Exit codes: 0 every workload has a feasible configuration; 1 one has none; 2 bad input.";

struct CapacityArguments {
  std::string plan;
  Reports<CapacityReport> reports{&ReportFormat::of_capacity};
  unsigned jobs = 0;
  std::int64_t limit_work = WorkMeter::kNoLimit;
  bool no_color = false;
};

bool is_carried(const CapacityAnswer& answer) {
  return std::ranges::any_of(answer.configurations, [](const Configuration& it) {
    return it.verdict == Verdict::feasible;
  });
}

CapacityReport report_of(const CapacityArguments& arguments) {
  std::optional<Progress> progress;
  std::optional<CapacityStage> shown;
  return plan_capacity(
      load_capacity_plan(arguments.plan), arguments.jobs,
      [&](CapacityStage stage, std::size_t done, std::size_t total) {
        if (shown != stage)
          progress.emplace(total, 0,
                           stage == CapacityStage::configurations ? "configurations" : "changes");
        shown = stage;
        progress->update(done);
      },
      arguments.limit_work);
}

int run(const CapacityArguments& arguments) {
  check_files(arguments.reports.files(), {{"PLAN", arguments.plan}});
  arguments.reports.require();
  const CapacityReport report = report_of(arguments);
  arguments.reports.write(report);
  if (!arguments.reports.take_output())
    print(capacity_text(report, style_of_output(arguments.no_color)));
  return std::ranges::all_of(report.answers, is_carried) ? kExitFine : kExitSaysNo;
}

}  // namespace

Command capacity_command(CLI::App& program) {
  const auto arguments = std::make_shared<CapacityArguments>();
  CLI::App* command = program.add_subcommand(
      "capacity",
      "Finds which platforms can carry a plan's workloads, at what cost, and what would help.");
  command->footer(kCapacityExamples);
  command->add_option("PLAN", arguments->plan, "a capacity plan")->required();
  arguments->reports.add_options(*command);
  add_jobs(*command, arguments->jobs);
  add_limit_work(*command, arguments->limit_work);
  add_no_color(*command, arguments->no_color);
  return {command, [arguments] { return run(*arguments); }};
}

}  // namespace plimsoll
