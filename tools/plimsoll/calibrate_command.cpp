#include "base/whole_file.hpp"
#include "commands.hpp"
#include "output.hpp"
#include "report/calibration/calibration_text.hpp"
#include "report/calibration/cluster_calibration_text.hpp"
#include "report/calibration/power_calibration_text.hpp"
#include "report_formats.hpp"
#include "scenario/calibration/calibrated_platform.hpp"
#include "scenario/document/document_kind.hpp"

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
  std::string judged;
  std::int64_t every = 1;
  bool no_color = false;
};

template <class Found>
void check_outputs(const CalibrateArguments& arguments, const Reports<Found>& reports,
                   const Found& calibration) {
  std::vector<NamedFile> read{{"CALIBRATION", arguments.calibration}};
  for (const std::filesystem::path& path : calibration.read)
    read.push_back({"what CALIBRATION names", path.string()});
  std::vector<NamedFile> written = reports.files();
  written.push_back({"--out", arguments.out, NamedFile::Kind::other});
  check_files(written, read);
}

template <class Found, auto text_of>
int write(const CalibrateArguments& arguments, const Reports<Found>& reports,
          const Found& calibration) {
  const auto folder = std::filesystem::path(arguments.calibration).parent_path();
  check_outputs(arguments, reports, calibration);
  if (!arguments.out.empty())
    write_whole_file(arguments.out, calibrated_platform(calibration, folder, arguments.out));
  reports.write(calibration);
  if (!reports.take_output()) print(text_of(calibration, style_of_output(arguments.no_color)));
  return kExitFine;
}

int run_cluster(const CalibrateArguments& arguments, const Node& document) {
  const auto folder = std::filesystem::path(arguments.calibration).parent_path();
  if (!arguments.judged.empty() && !arguments.out.empty())
    refuse(Location{"--out"}, "`--judge` fits nothing that a platform could be written with");
  ClusterOptions options;
  if (!arguments.judged.empty()) options.judged = arguments.judged;
  options.every = arguments.every;
  const auto found = calibrate_cluster(read_cluster_calibration(document, folder), folder, options);
  return write<ClusterCalibration, cluster_calibration_text>(
      arguments, arguments.reports.of(&ReportFormat::of_clusters), *found);
}

/// Options that only calibrations of whole runs have.
void require_no_runs_options(const CalibrateArguments& arguments) {
  if (!arguments.judged.empty() || arguments.every != 1)
    throw InputError(
        {{Severity::error, Location{arguments.calibration},
          "`--judge` and `--every` are for calibrations with `tables` of whole runs", ""}});
}

int run(const CalibrateArguments& arguments) {
  const std::filesystem::path path = arguments.calibration;
  const Node document = read_document(path);
  expect_kind(document, DocumentKind::calibration);
  if (is_cluster_calibration(document)) return run_cluster(arguments, document);
  require_no_runs_options(arguments);
  if (!is_power_calibration(document))
    return write<Calibration, calibration_text>(
        arguments, arguments.reports, calibrate(read_calibration(document), path.parent_path()));
  const auto powers = calibrate_powers(read_power_calibration(document), path.parent_path());
  return write<PowerCalibration, power_calibration_text>(
      arguments, arguments.reports.of(&ReportFormat::of_powers), *powers);
}

}  // namespace

Command calibrate_command(CLI::App& program) {
  const auto arguments = std::make_shared<CalibrateArguments>();
  CLI::App* command = program.add_subcommand(
      "calibrate",
      "Fits a platform to measured times, runs or powers, and evaluates it on held-out ones.");
  command->footer(kCalibrateExamples);
  command
      ->add_option("CALIBRATION", arguments->calibration,
                   "a platform, and measurements to fit and to hold out")
      ->required();
  add_file(*command, "--out", arguments->out,
           "write a platform that extends it with the fitted numbers");
  command->add_option("--judge", arguments->judged,
                      "of whole runs: judge this platform as it is, and fit nothing");
  command
      ->add_option("--every", arguments->every,
                   "of whole runs: of the rows that are not fitted only every n-th")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000}));
  arguments->reports.add_options(*command);
  add_no_color(*command, arguments->no_color);
  return {command, [arguments] { return run(*arguments); }};
}

}  // namespace plimsoll
