#include "base/gather.hpp"
#include "base/utf8.hpp"
#include "commands.hpp"
#include "output.hpp"
#include "platform/file/platform_file.hpp"
#include "scenario/calibration/calibration_rows.hpp"
#include "scenario/calibration/cluster_calibration.hpp"
#include "scenario/calibration/power_calibration.hpp"
#include "scenario/capacity/capacity_plan.hpp"
#include "scenario/document/document_kind.hpp"
#include "scenario/document/scenario.hpp"
#include "scenario/document/search_path.hpp"
#include "scenario/run/run_bound.hpp"
#include "scenario/suite/baseline.hpp"
#include "scenario/suite/suite.hpp"
#include "scenario/sweep/sweep_run.hpp"
#include "workload/given/pipedream_profile.hpp"
#include "workload/onnx/onnx_file.hpp"
#include "workload/workload_file.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

constexpr const char* kValidateExamples =
    "Files that a scenario, a sweep, a suite or a capacity plan names are checked, too.\n"
    "Examples:\n"
    "  plimsoll validate my-scenario.yaml my-board.yaml\n"
    "  plimsoll validate --schema platform > platform.schema.json      for editors\n"
    "Exit codes: 0 all files are valid; 2 there are errors.";

struct ValidateArguments {
  std::vector<std::string> files;
  std::string schema;
};

using Warnings = std::vector<Diagnostic>;

Warnings validate_scenario(const std::string& file, const Node&) {
  const Scenario scenario = load_scenario(file);
  Diagnostics diagnostics;
  for (const Node& policy : scenario.policies)
    gather(diagnostics, [&] { check_run(scenario, policy); });
  diagnostics.throw_if_errors();
  return scenario.warnings;
}

Warnings validate_sweep(const std::string& file, const Node&) {
  const Sweep sweep = load_sweep(file);
  check_workloads(sweep);
  return sweep.warnings;
}

Warnings validate_suite(const std::string& file, const Node&) {
  const Suite suite = load_suite(file);
  for (const SuiteScenario& it : suite.scenarios)
    (void)build(it.scenario.workload, it.scenario.workload_options);
  return suite.warnings;
}

Warnings validate_lock(const std::string&, const Node& document) {
  (void)read_baseline(document);
  return {};
}

Warnings validate_capacity(const std::string& file, const Node& document) {
  check_workloads(read_capacity_plan(document, std::filesystem::path(file).parent_path()));
  return {};
}

Warnings validate_calibration(const std::string& file, const Node& document) {
  if (is_power_calibration(document)) {
    const PowerCalibrationSpec powers = read_power_calibration(document);
    (void)read_power_rows(powers, std::filesystem::path(file).parent_path());
    return {};
  }
  if (is_cluster_calibration(document)) {
    (void)read_cluster_calibration(document, std::filesystem::path(file).parent_path());
    return {};
  }
  const CalibrationSpec spec = read_calibration(document);
  (void)read_measurements(spec, std::filesystem::path(file).parent_path());
  return {};
}

Warnings validate_platform(const std::string&, const Node& document) {
  Diagnostics diagnostics;
  (void)read_platform(document, diagnostics, resolver_of_extends());
  diagnostics.throw_if_errors();
  return diagnostics.warnings();
}

Warnings validate_workload(const std::string&, const Node& document) {
  (void)build(read_workload(document));
  return {};
}

/// What a file is follows from its key.
struct FileKind {
  DocumentKind kind;
  Warnings (*validate)(const std::string& file, const Node& document);  ///< throws InputError
  std::string (*schema)();                                              ///< nullptr: there is none
};

constexpr FileKind kKinds[] = {
    {DocumentKind::scenario, validate_scenario, scenario_schema},
    {DocumentKind::sweep, validate_sweep, sweep_schema},
    {DocumentKind::suite, validate_suite, suite_schema},
    {DocumentKind::lock, validate_lock, nullptr},
    {DocumentKind::capacity, validate_capacity, capacity_plan_schema},
    {DocumentKind::calibration, validate_calibration, calibration_schema},
    {DocumentKind::platform, validate_platform, platform_json_schema},
    {DocumentKind::workload, validate_workload, workload_schema},
};

std::vector<std::string> keys() {
  std::vector<std::string> keys;
  for (const DocumentKind kind : kDocumentKinds) keys.emplace_back(key_of(kind));
  return keys;
}

std::vector<std::string> keys_with_schema() {
  std::vector<std::string> keys;
  for (const FileKind& kind : kKinds)
    if (kind.schema != nullptr) keys.emplace_back(key_of(kind.kind));
  return keys;
}

[[noreturn]] void refuse_kind(const Node& document) {
  std::string hint;
  for (const Node::Entry& entry : document.entries())
    if (hint.empty()) hint = did_you_mean(entry.key.scalar(), keys());
  refuse(document.where(),
         fmt::format("found {}; expected a mapping with one of the keys `{}`", document.describe(),
                     fmt::join(keys(), "`, `")),
         hint);
}

/// Says what the file is. Throws InputError.
std::string validate(const std::string& file, Warnings& warnings) {
  if (is_onnx_path(file)) {
    (void)build(WorkloadSource{read_onnx_workload(file)});
    return "ONNX file";
  }
  if (is_pipedream_path(file)) {
    (void)build(WorkloadSource{read_pipedream(file)});
    return "profile of PipeDream";
  }
  const Node document = read_document(file);
  const auto kind = kind_of(document);
  if (!kind) refuse_kind(document);
  try {
    warnings = std::ranges::find(kKinds, *kind, &FileKind::kind)->validate(file, document);
  } catch (const std::invalid_argument& problem) {
    refuse(file, problem.what());
  } catch (const QuantityOverflow&) {
    refuse(file, "its numbers leave the range of 106 days or 9.2 EB");
  }
  return name_of(*kind);
}

int print_schema(const std::string& key) {
  const auto kind =
      std::ranges::find_if(kKinds, [&](const FileKind& it) { return key_of(it.kind) == key; });
  print(kind->schema() + '\n');
  return kExitFine;
}

int run(const ValidateArguments& arguments) {
  if (!arguments.schema.empty()) return print_schema(arguments.schema);
  if (arguments.files.empty()) refuse("plimsoll validate", "a file is missing; see --help");
  Complaints complaints;
  std::string report;
  for (const std::string& file : arguments.files)
    complaints.gather([&] {
      Warnings warnings;
      const std::string kind = validate(file, warnings);
      print_diagnostics(warnings);
      report += fmt::format("{}: a valid {}\n", visible_utf8(file, file.size()), kind);
    });
  print(report);
  complaints.throw_if_any();
  return kExitFine;
}

}  // namespace

Command validate_command(CLI::App& program) {
  const auto arguments = std::make_shared<ValidateArguments>();
  CLI::App* command = program.add_subcommand(
      "validate", "Checks files of any format, and reports every error with its place.");
  command->footer(fmt::format(
      "The kind of a file follows from its key: {}; NAME.onnx is an ONNX file, NAME.txt a "
      "profile of PipeDream.\n{}",
      fmt::join(keys(), ", "), kValidateExamples));
  command->add_option("FILE", arguments->files, "files to check");
  command->add_option("--schema", arguments->schema, "print the JSON Schema of a format instead")
      ->check([](const std::string& word) { return problem_with_word(word, keys_with_schema()); })
      ->type_name(fmt::format("{}", fmt::join(keys_with_schema(), "|")));
  return {command, [arguments] { return run(*arguments); }};
}

}  // namespace plimsoll
