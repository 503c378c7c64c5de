#include "commands.hpp"
#include "output.hpp"
#include "report_formats.hpp"

#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr const char* kExportExamples =
    "One row per run, in the order of the points: its status, its metrics, and the values of its "
    "point.\n"
    "Examples:\n"
    "  plimsoll export links.sqlite --csv links.csv\n"
    "  plimsoll export links.sqlite --jsonl - | head -1\n"
    "  plimsoll export links.sqlite --html links.html";

struct ExportArguments {
  std::string results;
  Reports<Database> reports{&ReportFormat::of_sweep};
};

int run(const ExportArguments& arguments) {
  if (!arguments.reports.any())
    refuse("plimsoll export", "nothing to write; expected --csv, --jsonl or --html");
  check_files(arguments.reports.files(), {{"RESULTS", arguments.results}});
  arguments.reports.require();
  arguments.reports.write(Database(arguments.results, Database::Mode::read_only));
  return kExitFine;
}

}  // namespace

Command export_command(CLI::App& program) {
  const auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command =
      program.add_subcommand("export", "Writes the results of a sweep as CSV, JSON lines or HTML.");
  command->footer(kExportExamples);
  command->add_option("RESULTS", arguments->results, "the SQLite file of a sweep")->required();
  arguments->reports.add_options(*command);
  return {command, [arguments] { return run(*arguments); }};
}

}  // namespace plimsoll
