#include "scenario/calibration/calibrated_platform.hpp"

#include "platform/file/platform_file.hpp"
#include "scenario/document/quoted_text.hpp"
#include "scenario/document/search_path.hpp"
#include "scenario/run/run.hpp"

#include <functional>

#include <fmt/format.h>

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kNanosecondsPerMicrosecond = 1'000;

/// All its decimals, without zeros at their end.
/// A share above 1 as a percentage: a bare number would not be read.
std::string efficiency_text(Ratio efficiency) {
  const bool is_above_one = efficiency > kWhole;
  std::string text = is_above_one ? fmt::format("{:.7f}", as_fraction(efficiency) * 100)
                                  : fmt::format("{:.9f}", as_fraction(efficiency));
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return is_above_one ? text + " %" : text;
}

std::string overhead_text(Time overhead) {
  const std::int64_t nanoseconds = overhead.count() / kPicosecondsPerNanosecond;
  return fmt::format("{}.{:03} us", nanoseconds / kNanosecondsPerMicrosecond,
                     nanoseconds % kNanosecondsPerMicrosecond);
}

std::string percent_text(std::int64_t millionths) {
  constexpr std::int64_t kPerTenthOfAPercent = 1'000, kTenths = 10;
  const std::int64_t tenths = (millionths + kPerTenthOfAPercent / 2) / kPerTenthOfAPercent;
  return fmt::format("{}.{} %", tenths / kTenths, tenths % kTenths);
}

std::string summary_text(const ErrorSummary& errors) {
  return fmt::format("{} {}, mean error {}, 95th percentile {}", errors.rows,
                     errors.rows == 1 ? "row" : "rows", percent_text(errors.mean),
                     percent_text(errors.p95));
}

std::string source_text(const Calibration& calibration) {
  std::string text =
      fmt::format("plimsoll calibrate, {}: least squares over {}", calibration.spec.name,
                  summary_text(summary_of(calibration, false, Moment::after)));
  const ErrorSummary tests = summary_of(calibration, true, Moment::after);
  return text + (tests.rows == 0 ? "; judged by no others" : "; judged by " + summary_text(tests));
}

/// The provenance of what was fitted, as a mapping.
std::string provenance_text(const Calibration& calibration) {
  std::string text = "{quality: measured, source: " + quoted(source_text(calibration));
  const ErrorSummary tests = summary_of(calibration, true, Moment::after);
  if (tests.rows > 0) text += ", error_p95: " + percent_text(tests.p95);
  return text + "}";
}

/// As the new file has to name it: by its name where that leads to the same file from there.
std::string extended_name(const std::string& name, const fs::path& folder, const fs::path& target) {
  const auto here = SearchPath(folder).find(name, "platforms");
  const auto there = SearchPath(target.parent_path()).find(name, "platforms");
  std::error_code ignored;
  if (!here || (there && fs::equivalent(*here, *there, ignored))) return name;
  const fs::path absolute = fs::absolute(target).parent_path();
  const fs::path path = fs::proximate(fs::absolute(*here), absolute, ignored);
  return (path.has_parent_path() ? path : "." / path).string();
}

/// What the file says of efficiencies, and the paths of its numbers by where they are from.
struct Sources {
  std::vector<std::string> shares, fitted;
  std::vector<std::pair<std::string, std::string>> taken_over;  ///< and the platform's name
};

Sources sources_of(const Calibration& calibration) {
  Sources sources;
  const std::string& platform = calibration.spec.platform.value;
  const std::string& like = calibration.spec.like ? calibration.spec.like->value : platform;
  const auto add = [&](const std::string& path, bool is_fitted, const std::string& from) {
    if (is_fitted)
      sources.fitted.push_back(path);
    else
      sources.taken_over.emplace_back(path, fs::path(from).stem().string());
  };
  for (std::size_t i = 0; i < kKernelKinds; ++i) {
    const FittedShares& fitted = calibration.fitted.efficiency[i];
    if (!fitted.any()) continue;
    const std::string name = to_text(static_cast<KernelKind>(i));
    const Efficiency& after = calibration.after.efficiency[i];
    sources.shares.push_back(fmt::format("{}: {{compute: {}, bandwidth: {}}}", name,
                                         efficiency_text(after.compute()),
                                         efficiency_text(after.bandwidth())));
    add("efficiency." + name + ".compute", fitted.compute.has_value(), platform);
    add("efficiency." + name + ".bandwidth", fitted.bandwidth.has_value(), like);
  }
  sources.fitted.emplace_back("launch_overhead");
  if (calibration.fitted.host_overhead) sources.fitted.emplace_back("host_overhead");
  return sources;
}

/// The processor as the text states it. `is_meant` tells whether it is what should have been written.
void check(const std::string& text, const Located<std::string>& base, const std::string& name,
           const fs::path& target, const std::function<bool(const Processor&)>& is_meant) {
  Diagnostics diagnostics;
  const Platform platform =
      read_platform(parse_document(text, target.string()), diagnostics, resolver_of_extends());
  const auto processor = platform.find_processor(name);
  if (!diagnostics.has_errors() && processor && is_meant(platform[*processor])) return;
  refuse(base.where,
         fmt::format("processor `{}` does not stand in `{}` itself, whose numbers a "
                     "file that extends it could replace; expected the platform of a "
                     "single processor",
                     name, base.value),
         "");
}

/// All its decimals: "37.22 W".
std::string watts_text(Power power) {
  constexpr std::int64_t kNanowatts = 1'000'000'000;
  std::string text =
      fmt::format("{}.{:09}", power.count() / kNanowatts, power.count() % kNanowatts);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text + " W";
}

std::string cluster_source_text(const ClusterCalibration& calibration) {
  const auto part = [&](bool of_tests) {
    const ClusterErrors errors = errors_of(calibration, of_tests);
    return fmt::format("{} {}, mean error {:.1f} %, 95th percentile {:.1f} %", errors.rows,
                       errors.rows == 1 ? "row" : "rows", 100 * errors.mean, 100 * errors.p95);
  };
  const bool is_judged = errors_of(calibration, true).rows > 0;
  return fmt::format("plimsoll calibrate, {}: whole runs, {}; judged by {}", calibration.spec.name,
                     part(false), is_judged ? part(true) : "no others");
}

std::string power_source_text(const PowerCalibration& calibration) {
  const auto part = [&](bool of_tests, std::int64_t mean) {
    const std::int64_t rows = calibration.count(of_tests);
    return fmt::format("{} {}, mean error {}", rows, rows == 1 ? "row" : "rows",
                       percent_text(mean));
  };
  std::string text = fmt::format("plimsoll calibrate, {}: powers of {}", calibration.spec.name,
                                 part(false, calibration.errors.mean_fitted));
  return text + (calibration.count(true) == 0
                     ? "; judged by no others"
                     : "; judged by " + part(true, calibration.errors.mean_tested));
}

}  // namespace

std::string calibrated_platform(const Calibration& calibration, const fs::path& folder,
                                const fs::path& target) {
  const CalibrationSpec& spec = calibration.spec;
  const std::string& processor = calibration.after.name;
  const Sources sources = sources_of(calibration);
  std::string text = fmt::format("platform: {}\n", spec.name);
  if (!spec.about.empty()) text += fmt::format("about: {}\n", quoted(spec.about));
  text += fmt::format("extends: {}\nprocessors:\n  {}:\n",
                      quoted(extended_name(spec.platform.value, folder, target)), processor);
  if (!sources.shares.empty()) text += "    efficiency:\n";
  for (const std::string& share : sources.shares) text += "      " + share + "\n";
  if (spec.kernels)
    text += fmt::format("    kernels: {{tile: {}, bias: {}, additions: {}}}\n", spec.kernels->tile,
                        spec.kernels->bias, spec.kernels->additions);
  text +=
      fmt::format("    launch_overhead: {}\n", overhead_text(calibration.fitted.launch_overhead));
  if (const auto& host = calibration.fitted.host_overhead)
    text += fmt::format("    host_overhead: {}\n", overhead_text(*host));
  text += "provenance:\n";
  // Written once, then by its anchor.
  std::string fit = "&fit " + provenance_text(calibration);
  for (const std::string& path : sources.fitted) {
    text += fmt::format("  processors.{}.{}: {}\n", processor, path, fit);
    fit = "*fit";
  }
  for (const auto& [path, from] : sources.taken_over)
    text += fmt::format("  processors.{}.{}: {{quality: estimate, source: {}}}\n", processor, path,
                        quoted("as in " + from + ": what was measured says little of it"));
  if (spec.kernels)
    for (const char* number : {"tile", "bias", "additions"})
      text += fmt::format("  processors.{}.kernels.{}: {{quality: estimate, source: {}}}\n",
                          processor, number, quoted(spec.kernels->source));
  check(text, spec.platform, processor, target, [&](const Processor& it) {
    return it.efficiency == calibration.after.efficiency &&
           it.kernels == calibration.after.kernels &&
           it.launch_overhead == calibration.after.launch_overhead &&
           it.host_overhead == calibration.after.host_overhead;
  });
  return text;
}

std::string calibrated_platform(const PowerCalibration& calibration, const fs::path& folder,
                                const fs::path& target) {
  const PowerCalibrationSpec& spec = calibration.spec;
  const std::string& processor = calibration.before().name;
  const ProcessorPower& power = calibration.fitted.power;
  std::string text = fmt::format("platform: {}\n", spec.name);
  if (!spec.about.empty()) text += fmt::format("about: {}\n", quoted(spec.about));
  text += fmt::format(
      "extends: {}\nprocessors:\n  {}:\n    power: {{idle: {}, launch: {}, memory: {}, active: "
      "{}}}\n    voltage_floor: {}\n",
      quoted(extended_name(spec.platform.value, folder, target)), processor, watts_text(power.idle),
      watts_text(*power.launch), watts_text(*power.memory), watts_text(power.active),
      efficiency_text(calibration.fitted.voltage_floor));
  const std::string source = quoted(power_source_text(calibration));
  text += fmt::format(
      "provenance:\n  processors.{0}.power: &fit {{quality: measured, source: {1}}}\n"
      "  processors.{0}.voltage_floor: *fit\n",
      processor, source);
  check(text, spec.platform, processor, target, [&](const Processor& it) {
    return it.power && it.power->idle == power.idle && it.power->launch == power.launch &&
           it.power->memory == power.memory && it.power->active == power.active &&
           it.power_curve.voltage_floor == calibration.fitted.voltage_floor;
  });
  return text;
}

std::string calibrated_platform(const ClusterCalibration& calibration, const fs::path& folder,
                                const fs::path& target) {
  const ClusterCalibrationSpec& spec = calibration.spec;
  Diagnostics diagnostics;
  Node numbers = parse_value("{}", target.string());
  std::string provenance;
  std::string fit = "&fit {quality: measured, source: " + quoted(cluster_source_text(calibration));
  const ClusterErrors tests = errors_of(calibration, true);
  if (tests.rows > 0) fit += fmt::format(", error_p95: {:.1f} %", 100 * tests.p95);
  fit += "}";
  for (std::size_t c = 0; c < calibration.fitted.size(); ++c) {
    const std::string& path = spec.coefficients[c].path.value;
    const std::string value = value_text(calibration.fitted[c], spec.coefficients[c].unit);
    numbers.set(path, parse_value(value, target.string()), diagnostics);
    provenance += fmt::format("  {}: {}\n", path, fit);
    fit = "*fit";
  }
  diagnostics.throw_if_errors();
  std::string text = fmt::format("platform: {}\n", spec.name);
  if (!spec.about.empty()) text += fmt::format("about: {}\n", quoted(spec.about));
  text += fmt::format("extends: {}\n", quoted(extended_name(spec.platform.value, folder, target)));
  for (const Node::Entry& part : numbers.entries())
    text += fmt::format("{}: {}\n", part.key.scalar(), as_written(part.value));
  if (!provenance.empty()) text += "provenance:\n" + provenance;
  (void)read_platform(parse_document(text, target.string()), diagnostics, resolver_of_extends());
  diagnostics.throw_if_errors();
  return text;
}

}  // namespace plimsoll
