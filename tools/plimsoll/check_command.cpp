#include "commands.hpp"
#include "output.hpp"
#include "planning.hpp"
#include "progress.hpp"
#include "report/suite/annotations.hpp"
#include "report/suite/suite_report.hpp"
#include "report_formats.hpp"

#include <algorithm>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr const char* kCheckExamples =
    "A suite lists scenarios and is held to its lock file, which `--update` writes: commit both. A "
    "scenario\n"
    "with `expect` is a suite of one. See docs/regression.md.\n"
    "Examples:\n"
    "  plimsoll check scenarios/regression/policies.yaml\n"
    "  plimsoll check mine.yaml --update                  record the current results\n"
    "  plimsoll check *.yaml --junit results.xml --annotations github\n"
    "Exit codes: 0 all held; 1 a regression, or a record that is missing or stale; 2 bad input, or "
    "a run\n"
    "that could not run.";

struct CheckArguments {
  std::vector<std::string> suites;
  std::string annotations;
  Reports<std::vector<CheckedSuite>> reports{&ReportFormat::of_suites};
  CheckOptions options;
  bool no_color = false;
};

int exit_code_of(const std::vector<CheckedSuite>& suites) {
  if (std::ranges::any_of(suites, &CheckedSuite::could_not_run)) return kExitBadInput;
  return std::ranges::any_of(suites, &CheckedSuite::failed) ? kExitSaysNo : kExitFine;
}

/// For machines, that read no standard error: a suite with one run that could not be made.
CheckedSuite unread_suite(const std::filesystem::path& path, const InputError& error) {
  CheckedRun run;
  run.scenario = path.filename().string();
  run.policy = "the suite";
  run.problems.assign(error.diagnostics().begin(), error.diagnostics().end());
  run.where = run.problems.front().where;
  run.verdict = CheckedRun::Verdict::could_not_run;
  CheckedSuite suite;
  suite.name = path.stem().string();
  suite.path = path;
  suite.runs.push_back(std::move(run));
  return suite;
}

void check_arguments(const CheckArguments& arguments) {
  std::vector<NamedFile> read;
  for (const std::string& suite : arguments.suites) read.push_back({"SUITE", suite});
  check_files(arguments.reports.files(), read);
  if (arguments.reports.take_output() && !arguments.annotations.empty())
    refuse("--annotations",
           "a report takes standard output; expected the name of a file instead of `-`");
  arguments.reports.require();
}

void tell(const CheckArguments& arguments, const std::vector<CheckedSuite>& suites,
          const std::vector<CheckedSuite>& all) {
  if (!arguments.reports.take_output()) {
    const Style style = style_of_output(arguments.no_color);
    for (std::size_t i = 0; i < suites.size(); ++i)
      print((i > 0 ? "\n" : "") + suite_report(suites[i], style));
  }
  if (!arguments.annotations.empty())
    for (const CheckedSuite& suite : all) print(github_annotations(suite));
  arguments.reports.write(all);
}

/// What a log of errors is to show, whatever form the report has.
void tell_problems(const std::vector<CheckedSuite>& suites) {
  for (const CheckedSuite& suite : suites)
    for (const CheckedRun& run : suite.runs) print_diagnostics(run.problems);
}

CheckedSuite check_with_progress(const std::filesystem::path& path, CheckOptions options) {
  std::optional<Progress> progress;
  options.progress = [&](std::size_t done, std::size_t total) {
    if (!progress) progress.emplace(total, 0, "runs");
    progress->update(done);
  };
  return check_suite(path, options);
}

/// Nothing is recorded before all that is to be told has been written. Suites that cannot be read
/// keep none of the others from being checked.
int run(const CheckArguments& arguments) {
  check_arguments(arguments);
  Complaints complaints;
  std::vector<CheckedSuite> suites, unread;
  for (const std::string& path : arguments.suites)
    complaints.gather([&] {
      try {
        suites.push_back(check_with_progress(path, arguments.options));
      } catch (const InputError& error) {
        unread.push_back(unread_suite(path, error));
        throw;
      }
    });
  std::vector<CheckedSuite> all = suites;
  all.insert(all.end(), unread.begin(), unread.end());
  tell(arguments, suites, all);
  tell_problems(suites);
  complaints.gather([&] { record(suites); });
  complaints.throw_if_any();
  return exit_code_of(suites);
}

}  // namespace

Command check_command(CLI::App& program) {
  const auto arguments = std::make_shared<CheckArguments>();
  CLI::App* command = program.add_subcommand(
      "check", "Checks the runs of a suite against stated bounds and recorded results.");
  command->footer(kCheckExamples);
  command->add_option("SUITE", arguments->suites, "suites, or scenarios with `expect`")->required();
  command->add_flag("--update", arguments->options.update,
                    "record the current results, and print what changed");
  arguments->reports.add_options(*command);
  command
      ->add_option("--annotations", arguments->annotations,
                   "also print failures as commands of a CI system")
      ->check([](const std::string& word) {
        return problem_with_word(word, std::vector<std::string>{"github"});
      })
      ->type_name("github");
  add_jobs(*command, arguments->options.jobs);
  add_limit_work(*command, arguments->options.limit_work);
  add_no_color(*command, arguments->no_color);
  return {command, [arguments] { return run(*arguments); }};
}

}  // namespace plimsoll
