#include "base/whole_file.hpp"
#include "commands.hpp"
#include "output.hpp"
#include "report/html/html_page.hpp"
#include "report/sweep/html_sweep.hpp"
#include "scenario/sweep/sweep_export.hpp"

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
  std::string results, csv, jsonl, html;
};

/// `-` is standard output, which gets the rows as they come; a file is written whole or not at all.
void write(const Database& results, const std::string& target,
           void (&write_rows)(const Database&, const TextSink&)) {
  if (target == "-") return write_rows(results, [](std::string_view text) { print(text); });
  std::string all;
  write_rows(results, [&](std::string_view text) { all += text; });
  write_whole_file(target, all);
}

int run(const ExportArguments& arguments) {
  if (arguments.csv.empty() && arguments.jsonl.empty() && arguments.html.empty())
    refuse("plimsoll export", "nothing to write; expected --csv, --jsonl or --html");
  check_files({{"--csv", arguments.csv}, {"--jsonl", arguments.jsonl}, {"--html", arguments.html}},
              {{"RESULTS", arguments.results}});
  const std::string html_template = arguments.html.empty() ? "" : read_html_template();
  const Database results(arguments.results, Database::Mode::read_only);
  if (!arguments.csv.empty()) write(results, arguments.csv, export_sweep_csv);
  if (!arguments.jsonl.empty()) write(results, arguments.jsonl, export_sweep_jsonl);
  if (!arguments.html.empty())
    write_text(arguments.html,
               html_of(html_sweep(results, "plimsoll " PLIMSOLL_VERSION), html_template));
  return kExitFine;
}

}  // namespace

Command export_command(CLI::App& program) {
  const auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command =
      program.add_subcommand("export", "Writes the results of a sweep as CSV, JSON lines or HTML.");
  command->footer(kExportExamples);
  command->add_option("RESULTS", arguments->results, "the SQLite file of a sweep")->required();
  command->add_option("--csv", arguments->csv, "as CSV; `-` is standard output")->type_name("FILE");
  command->add_option("--jsonl", arguments->jsonl, "as JSON lines; `-` is standard output")
      ->type_name("FILE");
  command
      ->add_option("--html", arguments->html,
                   "as one page that opens offline: heat maps, front, best points; `-` is standard "
                   "output")
      ->type_name("FILE")
      ->check(expect_file_name);
  return {command, [arguments] { return run(*arguments); }};
}

}  // namespace plimsoll
