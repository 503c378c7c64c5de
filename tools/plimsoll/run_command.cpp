#include "commands.hpp"
#include "output.hpp"
#include "planning.hpp"
#include "report/run/text_report.hpp"
#include "report_formats.hpp"
#include "scenario/document/search_path.hpp"
#include "scenario/run/claim_check.hpp"
#include "scenario/run/larger_storage.hpp"
#include "scenario/run/mesh_remedies.hpp"
#include "scenario/run/run.hpp"

#include <algorithm>
#include <memory>
#include <utility>

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
  std::string plan;
  Reports<Outcomes> reports{&ReportFormat::of_runs};
  std::int64_t limit_work = WorkMeter::kNoLimit;
  bool verbose = false, no_color = false;
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

void check_arguments(const RunArguments& arguments) {
  if (!arguments.plan.empty() && !arguments.policies.empty())
    refuse("--plan", "a plan leaves nothing to a policy; expected it without --policy");
  if (!arguments.plan.empty() && arguments.scenarios.size() != 1)
    refuse("--plan",
           fmt::format("a plan is for one scenario; found {}", arguments.scenarios.size()));
  if (const auto option = arguments.reports.of_one_run(); option && arguments.scenarios.size() != 1)
    refuse(*option, fmt::format("expected one scenario and one policy; found {} scenarios",
                                arguments.scenarios.size()));
  std::vector<NamedFile> read{{"--plan", arguments.plan}};
  for (const std::string& scenario : arguments.scenarios) read.push_back({"SCENARIO", scenario});
  check_files(arguments.reports.files(), read);
  arguments.reports.require();
}

/// Adds what comes out of the scenario to `results`.
void run_one(const Scenario& scenario, const RunArguments& arguments, Complaints& complaints,
             std::vector<RunResult>& results) {
  if (!arguments.plan.empty())
    return complaints.gather([&] { results.push_back(run_plan_file(scenario, arguments.plan)); });
  if (const auto option = arguments.reports.of_one_run(); option && scenario.policies.size() != 1)
    refuse(*option,
           fmt::format("expected one scenario and one policy; found {} policies",
                       scenario.policies.size()),
           "choose one with --policy");
  for (const Node& policy : scenario.policies)
    complaints.gather([&] {
      Planning planning(policy_name(policy), arguments.limit_work);
      RunResult result =
          run_policy(scenario, policy,
                     {.work = planning.work(), .sums_only = !arguments.reports.show_steps()});
      tell_storage_needed(result, scenario, policy, planning.work());
      if (result.oom && scenario.parallel)
        result.mesh_remedies =
            std::make_shared<const MeshRemedies>(mesh_remedies_of(scenario, result));
      results.push_back(std::move(result));
    });
}

Outcomes run_all(const RunArguments& arguments) {
  const Overrides overrides = overrides_of(arguments);
  Outcomes found;
  Complaints complaints;
  for (const std::string& name : arguments.scenarios)
    complaints.gather(
        [&] { found.scenarios.push_back(load_scenario(scenario_argument(name), overrides)); });
  complaints.throw_if_any();
  for (const Scenario& scenario : found.scenarios) {
    run_one(scenario, arguments, complaints, found.results);
    found.ends.push_back(found.results.size());
  }
  complaints.throw_if_any();
  return found;
}

std::string text_of(const RunArguments& arguments, const Outcomes& found) {
  const TextOptions options{style_of_output(arguments.no_color), arguments.verbose};
  std::string text;
  for (std::size_t i = 0; i < found.scenarios.size(); ++i) {
    if (!text.empty()) text += '\n';
    text += text_report(found.scenarios[i], found.of(i), options);
  }
  return text;
}

int run(const RunArguments& arguments) {
  check_arguments(arguments);
  const Outcomes found = run_all(arguments);
  if (arguments.reports.take_output())
    for (const Scenario& scenario : found.scenarios) print_diagnostics(scenario.warnings);
  arguments.reports.write(found);
  if (!arguments.reports.take_output()) print(text_of(arguments, found));
  return std::ranges::all_of(found.results, is_as_claimed) ? kExitFine : kExitSaysNo;
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
  arguments->reports.add_options(*command);
  add_file(*command, "--plan", arguments->plan, "play this plan instead of a policy's");
  add_limit_work(*command, arguments->limit_work);
  command->add_flag("--verbose", arguments->verbose, "report every run in full");
  add_no_color(*command, arguments->no_color);
  return {command, [arguments] { return run(*arguments); }};
}

}  // namespace plimsoll
