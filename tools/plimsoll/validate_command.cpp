#include "commands.hpp"
#include "output.hpp"
#include "platform/platform_file.hpp"
#include "scenario/capacity_plan.hpp"
#include "scenario/scenario.hpp"
#include "scenario/search_path.hpp"
#include "workload/onnx_file.hpp"
#include "workload/workload_file.hpp"

#include <memory>
#include <stdexcept>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr const char* kExamples =
    "What a file is follows from its key `scenario`, `capacity`, `platform` or `workload`; "
    "NAME.onnx\n"
    "is an ONNX file. Everything that a scenario or a capacity plan names is read, too.\n"
    "Examples:\n"
    "  plimsoll validate my-scenario.yaml my-board.yaml\n"
    "  plimsoll validate --schema platform > platform.schema.json      for editors\n"
    "Exit codes: 0 all files are valid; 2 there are errors.";

struct ValidateArguments {
  std::vector<std::string> files;
  std::string schema;
};

std::vector<Diagnostic> validate_platform(const std::string& file) {
  Diagnostics diagnostics;
  (void)read_platform(read_document(file), diagnostics, resolver_of_extends());
  diagnostics.throw_if_errors();
  return diagnostics.warnings();
}

std::vector<Diagnostic> validate_scenario(const std::string& file) {
  const Scenario scenario = load_scenario(file);
  (void)build(scenario.workload, scenario.workload_options);
  return scenario.warnings;
}

std::string validate_onnx(const std::string& file) {
  (void)build(WorkloadSource{read_onnx_workload(file)});
  return "ONNX file";
}

/// Says what the file is. Throws InputError.
std::string validate(const std::string& file, std::vector<Diagnostic>& warnings) {
  if (is_onnx_path(file)) return validate_onnx(file);
  const Node document = read_document(file);
  try {
    // A scenario has the keys `platform` and `workload`, too.
    if (document.find("scenario") != nullptr) {
      warnings = validate_scenario(file);
      return "scenario";
    }
    if (document.find("capacity") != nullptr) {
      (void)pairings_of(read_capacity_plan(document), std::filesystem::path(file).parent_path());
      return "capacity plan";
    }
    if (document.find("platform") != nullptr) {
      warnings = validate_platform(file);
      return "platform";
    }
    if (document.find("workload") != nullptr) {
      (void)build(read_workload(document));
      return "workload";
    }
  } catch (const std::invalid_argument& problem) {
    refuse(file, problem.what());
  } catch (const QuantityOverflow&) {
    refuse(file, "its numbers leave the range of 106 days or 9.2 EB");
  }
  const std::vector<std::string> kinds{"scenario", "capacity", "platform", "workload"};
  std::string hint;
  for (const Node::Entry& entry : document.entries())
    if (hint.empty()) hint = did_you_mean(entry.key.scalar(), kinds);
  throw InputError({{Severity::error, document.where(),
                     fmt::format("found {}; expected a mapping with `scenario`, `capacity`, "
                                 "`platform` or `workload`",
                                 document.describe()),
                     hint}});
}

int print_schema(const std::string& kind) {
  if (kind == "scenario") print(scenario_schema() + '\n');
  if (kind == "capacity") print(capacity_plan_schema() + '\n');
  if (kind == "platform") print(platform_json_schema() + '\n');
  if (kind == "workload") print(workload_schema() + '\n');
  return kExitFine;
}

int run(const ValidateArguments& arguments) {
  if (!arguments.schema.empty()) return print_schema(arguments.schema);
  if (arguments.files.empty()) refuse("plimsoll validate", "a file is missing; see --help");
  Complaints complaints;
  std::string report;
  for (const std::string& file : arguments.files)
    complaints.gather([&] {
      std::vector<Diagnostic> warnings;
      const std::string kind = validate(file, warnings);
      print_diagnostics(warnings);
      report += fmt::format("{}: a valid {}\n", file, kind);
    });
  print(report);
  complaints.throw_if_any();
  return kExitFine;
}

}  // namespace

Command validate_command(CLI::App& program) {
  const auto arguments = std::make_shared<ValidateArguments>();
  CLI::App* command = program.add_subcommand("validate",
                                             "Checks scenarios, capacity plans, platforms, "
                                             "workloads and ONNX files; tells every error with "
                                             "its place.");
  command->footer(kExamples);
  command->add_option("FILE", arguments->files, "files to check");
  command->add_option("--schema", arguments->schema, "print the JSON Schema of a format instead")
      ->check([](const std::string& word) {
        return problem_with_word(
            word, std::vector<std::string>{"scenario", "capacity", "platform", "workload"});
      })
      ->type_name("scenario|capacity|platform|workload");
  return {command, [arguments] { return run(*arguments); }};
}

}  // namespace plimsoll
