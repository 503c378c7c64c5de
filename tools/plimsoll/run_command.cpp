#include "commands.hpp"
#include "interrupt.hpp"
#include "output.hpp"
#include "plan/file/plan_file.hpp"
#include "planning.hpp"
#include "policy/pipeline/orders/schedule_csv_writer.hpp"
#include "policy/pipeline/partition/layout_writer.hpp"
#include "policy/pipeline/schedule/plan_tasks.hpp"
#include "report/html/html_page.hpp"
#include "report/html/html_report.hpp"
#include "report/run/json_report.hpp"
#include "report/run/text_report.hpp"
#include "report/trace/trace.hpp"
#include "scenario/document/search_path.hpp"
#include "scenario/run/claim_check.hpp"
#include "scenario/run/run.hpp"

#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr const char* kRunExamples =
    "The report is text; with `--json -`, standard output holds the JSON and nothing else.\n"
    "PATH of --set is any path of the platform, the workload or the policy, as its file has it; a "
    "list\n"
    "is entered by index (`chain.0.saved`); `policy.distance=2` is for every policy that has one.\n"
    "Examples:\n"
    "  plimsoll run vgg19.yaml\n"
    "  plimsoll run vgg19.yaml --policy none --policy '{name: remat/rotor, budget: 12 GiB}'\n"
    "  plimsoll run vgg19.yaml --set links.pcie.bandwidth='25 GB/s' --set workload.batch=256\n"
    "  plimsoll run vgg19.yaml --html report.html\n"
    "  plimsoll run vgg19.yaml --policy remat/sqrt --plan-out plan.json\n"
    "  plimsoll run vgg19.yaml --plan plan.json --json -\n"
    "  plimsoll run vgg19.yaml --trace vgg19.pftrace\n"
    "Exit codes: 0 all runs ended well; 1 a run did not (oom, deadlock, infeasible), or a plan "
    "file\n"
    "claims what its run does not show; 2 bad input; 130 interrupted.";

struct RunArguments {
  std::vector<std::string> scenarios, policies, set;
  std::string json, html, trace, plan_out, plan, schedule_csv, communication_csv, layout;
  std::int64_t limit_work = WorkMeter::kNoLimit;
  bool verbose = false, no_color = false;
};

/// A scenario with what came out of it.
struct Outcome {
  Scenario scenario;
  std::vector<RunResult> results;
};

Overrides overrides_of(const RunArguments& arguments) {
  Overrides overrides{arguments.policies, {}};
  Complaints complaints;
  for (std::size_t i = 0; i < arguments.set.size(); ++i) {
    const std::string& assignment = arguments.set[i];
    const std::size_t equals = assignment.find('=');
    if (equals == 0 || equals == std::string::npos)
      complaints.gather([&] {
        refuse(
            fmt::format("--set #{}", i + 1),
            fmt::format("found `{}`; expected PATH=VALUE, such as `links.pcie.bandwidth=25 GB/s`",
                        assignment));
      });
    else
      overrides.set.emplace_back(assignment.substr(0, equals), assignment.substr(equals + 1));
  }
  complaints.throw_if_any();
  return overrides;
}

/// What is written of the plan of the only policy.
std::vector<NamedFile> of_one_policy(const RunArguments& arguments) {
  return {{"--plan-out", arguments.plan_out, NamedFile::Kind::other},
          {"--schedule-csv", arguments.schedule_csv, NamedFile::Kind::other},
          {"--communication-csv", arguments.communication_csv, NamedFile::Kind::other},
          {"--layout", arguments.layout, NamedFile::Kind::other}};
}

void check_arguments(const RunArguments& arguments) {
  if (!arguments.plan.empty() && !arguments.policies.empty())
    refuse("--plan", "a plan leaves nothing to a policy; expected it without --policy");
  if (!arguments.plan.empty() && arguments.scenarios.size() != 1)
    refuse("--plan",
           fmt::format("a plan is for one scenario; found {}", arguments.scenarios.size()));
  for (const NamedFile& it : of_one_policy(arguments))
    if (!it.name.empty() && arguments.scenarios.size() != 1)
      refuse(it.option, fmt::format("expected one scenario and one policy; found {} scenarios",
                                    arguments.scenarios.size()));
  std::vector<NamedFile> read{{"--plan", arguments.plan}};
  for (const std::string& scenario : arguments.scenarios) read.push_back({"SCENARIO", scenario});
  check_files({{"--json", arguments.json},
               {"--html", arguments.html},
               {"--trace", arguments.trace, NamedFile::Kind::other},
               {"--plan-out", arguments.plan_out, NamedFile::Kind::other},
               {"--schedule-csv", arguments.schedule_csv, NamedFile::Kind::other},
               {"--communication-csv", arguments.communication_csv, NamedFile::Kind::other},
               {"--layout", arguments.layout, NamedFile::Kind::other}},
              read);
}

std::vector<RunResult> run_one(const Scenario& scenario, const RunArguments& arguments,
                               Complaints& complaints) {
  std::vector<RunResult> results;
  if (!arguments.plan.empty()) {
    complaints.gather([&] { results.push_back(run_plan_file(scenario, arguments.plan)); });
    return results;
  }
  for (const NamedFile& it : of_one_policy(arguments))
    if (!it.name.empty() && scenario.policies.size() != 1)
      refuse(it.option,
             fmt::format("expected one scenario and one policy; found {} policies",
                         scenario.policies.size()),
             "choose one with --policy");
  for (const Node& policy : scenario.policies)
    complaints.gather([&] {
      Planning planning(policy_name(policy), arguments.limit_work);
      results.push_back(run_policy(scenario, policy, {.work = planning.work()}));
    });
  return results;
}

std::vector<Outcome> run_all(const RunArguments& arguments) {
  const Overrides overrides = overrides_of(arguments);
  std::vector<Outcome> outcomes;
  Complaints complaints;
  for (const std::string& name : arguments.scenarios)
    complaints.gather([&] {
      outcomes.push_back({load_scenario(scenario_argument(name), overrides), {}});
    });
  complaints.throw_if_any();
  for (Outcome& outcome : outcomes)
    outcome.results = run_one(outcome.scenario, arguments, complaints);
  complaints.throw_if_any();
  return outcomes;
}

std::string text_of(const RunArguments& arguments, const std::vector<Outcome>& outcomes) {
  const TextOptions options{style_of_output(arguments.no_color), arguments.verbose};
  std::string text;
  for (const Outcome& outcome : outcomes) {
    if (!text.empty()) text += '\n';
    text += text_report(outcome.scenario, outcome.results, options);
  }
  return text;
}

std::string json_of(std::vector<Outcome> outcomes) {
  std::vector<RunResult> all;
  for (Outcome& outcome : outcomes)
    for (RunResult& result : outcome.results) all.push_back(std::move(result));
  return json_report(all);
}

void write_html_of(const RunArguments& arguments, const std::vector<Outcome>& outcomes,
                   const std::string& html_template) {
  std::vector<HtmlOutcome> all;
  for (const Outcome& outcome : outcomes) all.push_back({&outcome.scenario, outcome.results});
  write_text(arguments.html,
             html_of(html_report(all, "plimsoll " PLIMSOLL_VERSION), html_template));
}

/// There is nothing to write to `file` of a policy without a plan.
void warn_of_no_plan(const std::string& file, const RunResult& result) {
  print_diagnostics(
      std::vector<Diagnostic>{{Severity::warning,
                               {file, 0, 0},
                               fmt::format("not written: policy `{}` found no plan", result.policy),
                               ""}});
}

void write_plan_of(const RunArguments& arguments, const Outcome& outcome) {
  const WritingFiles waits;
  const RunResult& result = outcome.results.front();
  if (result.infeasible)
    warn_of_no_plan(arguments.plan_out, result);
  else
    write_plan(result.plan, result.workload_as_run, outcome.scenario.platform, arguments.plan_out);
}

/// In the forms of PyTorch and Megatron-LM that are asked for.
void write_schedule_of(const RunArguments& arguments, const RunResult& result) {
  const auto write = [&](const char* option, const std::string& file, auto text_of_plan) {
    if (file.empty()) return;
    if (result.infeasible) return warn_of_no_plan(file, result);
    write_text(file, text_of_plan(chain_view(result.workload_as_run), Location{option, 0, 0}));
  };
  const auto schedule = [&](const ChainView& chain, const Location& where) {
    return tasks_of(result.plan, result.workload_as_run, chain, where);
  };
  write("--schedule-csv", arguments.schedule_csv,
        [&](const auto&... read) { return compute_csv(schedule(read...)); });
  write("--communication-csv", arguments.communication_csv,
        [&](const auto&... read) { return communication_csv(schedule(read...)); });
  write("--layout", arguments.layout, [&](const ChainView& chain, const Location& where) {
    return layout_text(result.workload_as_run, chain,
                       cuts_of(result.plan, result.workload_as_run, chain, where), where) +
           '\n';
  });
}

void write_trace_of(const RunArguments& arguments, const std::vector<Outcome>& outcomes) {
  std::vector<TracedRun> runs;
  for (const Outcome& outcome : outcomes)
    for (const RunResult& result : outcome.results)
      runs.push_back({outcome.scenario.platform, result});
  const WritingFiles waits;
  write_trace(runs, arguments.trace);
}

bool says_no(const Outcome& outcome) {
  return !std::ranges::all_of(outcome.results, is_as_claimed);
}

/// Files first, so that a failure to write one is not buried under a report.
int run(const RunArguments& arguments) {
  check_arguments(arguments);
  const std::string html_template = arguments.html.empty() ? "" : read_html_template();
  std::vector<Outcome> outcomes = run_all(arguments);
  const int exit_code = std::ranges::any_of(outcomes, says_no) ? kExitSaysNo : kExitFine;
  if (!arguments.plan_out.empty()) write_plan_of(arguments, outcomes.front());
  if (outcomes.size() == 1) write_schedule_of(arguments, outcomes.front().results.front());
  if (!arguments.trace.empty()) write_trace_of(arguments, outcomes);
  if (!arguments.html.empty()) write_html_of(arguments, outcomes, html_template);
  const bool tells = arguments.json != "-" && arguments.html != "-";
  const std::string text = tells ? text_of(arguments, outcomes) : "";
  if (!tells)
    for (const Outcome& outcome : outcomes) print_diagnostics(outcome.scenario.warnings);
  if (!arguments.json.empty()) write_text(arguments.json, json_of(std::move(outcomes)));
  print(text);
  return exit_code;
}

}  // namespace

Command run_command(CLI::App& program) {
  const auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = program.add_subcommand(
      "run", "Runs the policies of a scenario and reports memory, time and energy.");
  command->footer(kRunExamples);
  command
      ->add_option("SCENARIO", arguments->scenarios,
                   "scenario files, or names of scenarios that ship")
      ->required();
  command
      ->add_option(
          "--policy", arguments->policies,
          "run this policy instead of the scenario's: a name, or a mapping as in a scenario; "
          "may be repeated")
      ->allow_extra_args(false)
      ->type_name("POLICY");
  command->add_option("--set", arguments->set, "change one value; may be repeated")
      ->allow_extra_args(false)
      ->type_name("PATH=VALUE");
  command
      ->add_option("--json", arguments->json, "write the results as JSON; `-` is standard output")
      ->type_name("FILE")
      ->check(expect_file_name);
  command
      ->add_option(
          "--html", arguments->html,
          "write the results as an HTML page with charts that opens offline; `-` is standard "
          "output")
      ->type_name("FILE")
      ->check(expect_file_name);
  command
      ->add_option("--trace", arguments->trace,
                   "write timelines for ui.perfetto.dev; *.json: in Chrome's trace format")
      ->type_name("FILE")
      ->check(expect_file_name);
  command
      ->add_option("--plan-out", arguments->plan_out,
                   "write the plan of the only policy (*.json, *.pb or *.bin)")
      ->type_name("FILE")
      ->check(expect_file_name);
  command
      ->add_option("--schedule-csv", arguments->schedule_csv,
                   "write the schedule of the only policy, a pipeline, as PyTorch's CSV")
      ->type_name("FILE")
      ->check(expect_file_name);
  command
      ->add_option("--communication-csv", arguments->communication_csv,
                   "the same, including sends and receives")
      ->type_name("FILE")
      ->check(expect_file_name);
  command
      ->add_option("--layout", arguments->layout,
                   "write the cuts of the only policy, a pipeline, as Megatron-LM's layout string")
      ->type_name("FILE")
      ->check(expect_file_name);
  command->add_option("--plan", arguments->plan, "play this plan instead of a policy's")
      ->type_name("FILE")
      ->check(expect_file_name);
  command
      ->add_option("--limit-work", arguments->limit_work,
                   "the most steps of work that planning with one policy may take; one that needs "
                   "more is refused. A step takes about a nanosecond, or a few, and the steps are "
                   "the same on every machine")
      ->check(CLI::PositiveNumber)
      ->type_name("STEPS");
  command->add_flag("--verbose", arguments->verbose, "report every run in full");
  add_no_color(*command, arguments->no_color);
  return {command, [arguments] { return run(*arguments); }};
}

}  // namespace plimsoll
