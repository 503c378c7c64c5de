#include "base/whole_file.hpp"
#include "commands.hpp"
#include "output.hpp"
#include "report/calibration/calibration_text.hpp"
#include "report/calibration/power_calibration_text.hpp"
#include "report_formats.hpp"
#include "scenario/calibration/calibrated_platform.hpp"
#include "scenario/document/document_kind.hpp"

#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>

namespace plimsoll {

namespace {

constexpr const char* kCalibrateExamples =
    "The file states which measurements are fitted (`fit`) and which are held out (`test`).\n"
    "Examples:\n"
    "  plimsoll calibrate scenarios/calibration/v100-sxm2-16gb-fp32.yaml\n"
    "  plimsoll calibrate my-gpu.yaml --out my-gpu-calibrated.yaml --json -\n"
    "Exit codes: 0 fitted; 2 bad input.";

struct CalibrateArguments {
  std::string calibration, out;
  Reports<Calibration> reports{&ReportFormat::of_calibration};
  bool no_color = false;
};

void check_outputs(const CalibrateArguments& arguments, const Calibration& calibration) {
  std::vector<NamedFile> read{{"CALIBRATION", arguments.calibration}};
  for (const std::filesystem::path& path : calibration.read)
    read.push_back({"what CALIBRATION names", path.string()});
  std::vector<NamedFile> written = arguments.reports.files();
  written.push_back({"--out", arguments.out, NamedFile::Kind::other});
  check_files(written, read);
}

/// Of powers there is only the report, which ends with what a platform states.
int run_powers(const CalibrateArguments& arguments, const Node& document) {
  const auto is_asked_for = [](const NamedFile& file) { return !file.name.empty(); };
  if (!arguments.out.empty() || std::ranges::any_of(arguments.reports.files(), is_asked_for))
    throw InputError({{Severity::error, document.where(),
                       "a calibration of powers is written as text; expected no `--out` and no "
                       "`--json`",
                       ""}});
  const PowerCalibrationSpec spec = read_power_calibration(document);
  const PowerRows rows =
      read_power_rows(spec, std::filesystem::path(arguments.calibration).parent_path());
  print(power_calibration_text(rows, fit_powers(rows), style_of_output(arguments.no_color)));
  return kExitFine;
}

int run(const CalibrateArguments& arguments) {
  const std::filesystem::path path = arguments.calibration;
  const Node document = read_document(path);
  expect_kind(document, DocumentKind::calibration);
  if (is_power_calibration(document)) return run_powers(arguments, document);
  const Calibration calibration = calibrate(read_calibration(document), path.parent_path());
  check_outputs(arguments, calibration);
  if (!arguments.out.empty())
    write_whole_file(arguments.out,
                     calibrated_platform(calibration, path.parent_path(), arguments.out));
  arguments.reports.write(calibration);
  if (!arguments.reports.take_output())
    print(calibration_text(calibration, style_of_output(arguments.no_color)));
  return kExitFine;
}

}  // namespace

Command calibrate_command(CLI::App& program) {
  const auto arguments = std::make_shared<CalibrateArguments>();
  CLI::App* command = program.add_subcommand(
      "calibrate", "Fits a platform to measured times, and evaluates it on held-out ones.");
  command->footer(kCalibrateExamples);
  command
      ->add_option("CALIBRATION", arguments->calibration,
                   "a platform, and measurements to fit and to hold out")
      ->required();
  add_file(*command, "--out", arguments->out,
           "write a platform that extends it with the fitted numbers");
  arguments->reports.add_options(*command);
  add_no_color(*command, arguments->no_color);
  return {command, [arguments] { return run(*arguments); }};
}

}  // namespace plimsoll
