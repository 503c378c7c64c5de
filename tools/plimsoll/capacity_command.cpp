#include "commands.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "report/capacity/capacity_html.hpp"
#include "report/capacity/capacity_json.hpp"
#include "report/capacity/capacity_text.hpp"
#include "report/html/html_page.hpp"
#include "scenario/capacity/capacity.hpp"

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
  std::string plan, json, html;
  unsigned jobs = 0;
  bool no_color = false;
};

bool is_carried(const CapacityAnswer& answer) {
  return std::ranges::any_of(answer.configurations, [](const Configuration& it) {
    return it.verdict == Verdict::feasible;
  });
}

CapacityReport report_of(const std::filesystem::path& path, unsigned jobs) {
  std::optional<Progress> progress;
  std::optional<CapacityStage> shown;
  return plan_capacity(
      load_capacity_plan(path), jobs,
      [&](CapacityStage stage, std::size_t done, std::size_t total) {
        if (shown != stage)
          progress.emplace(total, 0,
                           stage == CapacityStage::configurations ? "configurations" : "changes");
        shown = stage;
        progress->update(done);
      });
}

/// Files first, so that a failure to write one is not buried under a report.
int run(const CapacityArguments& arguments) {
  const std::filesystem::path path = arguments.plan;
  check_files({{"--json", arguments.json}, {"--html", arguments.html}}, {{"PLAN", arguments.plan}});
  const std::string html_template = arguments.html.empty() ? "" : read_html_template();
  const CapacityReport report = report_of(path, arguments.jobs);
  const int exit_code = std::ranges::all_of(report.answers, is_carried) ? kExitFine : kExitSaysNo;
  if (!arguments.html.empty())
    write_text(arguments.html,
               html_of(capacity_html(report, "plimsoll " PLIMSOLL_VERSION), html_template));
  if (!arguments.json.empty()) write_text(arguments.json, capacity_json(report));
  if (arguments.json != "-" && arguments.html != "-")
    print(capacity_text(report, style_of_output(arguments.no_color)));
  return exit_code;
}

}  // namespace

Command capacity_command(CLI::App& program) {
  const auto arguments = std::make_shared<CapacityArguments>();
  CLI::App* command = program.add_subcommand(
      "capacity",
      "Finds which platforms can carry a plan's workloads, at what cost, and what would help.");
  command->footer(kCapacityExamples);
  command->add_option("PLAN", arguments->plan, "a capacity plan")->required();
  command->add_option("--json", arguments->json, "write the report as JSON; `-` is standard output")
      ->type_name("FILE");
  command
      ->add_option("--html", arguments->html,
                   "write the report as an HTML page with charts; `-` is standard output")
      ->type_name("FILE");
  add_jobs(*command, arguments->jobs);
  add_no_color(*command, arguments->no_color);
  return {command, [arguments] { return run(*arguments); }};
}

}  // namespace plimsoll
