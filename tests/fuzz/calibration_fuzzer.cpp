/// Any bytes as a calibration: read, and, where its workloads are small, fitted. Errors are
/// InputErrors and nothing else; what is fitted is a share, and is finite.
#include "scenario/calibration/calibration.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace plimsoll;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr DocumentLimits kLimits{.bytes = 1 << 18, .depth = 64, .nodes = 5'000};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const CalibrationSpec spec = read_calibration(parse_document(text, "fuzz", kLimits));
    if (spec.fit.size() + spec.test.size() > 10) return 0;
    const Calibration calibration = calibrate(spec, "/nonexistent");
    const auto is_within = [](const std::optional<Ratio>& share, Ratio most) {
      return !share || (*share > Ratio{} && *share <= most);
    };
    for (const FittedShares& shares : calibration.fitted.efficiency)
      if (!is_within(shares.compute, kMostCompute) || !is_within(shares.bandwidth, kWhole))
        std::abort();
    if (calibration.fitted.launch_overhead < Time{}) std::abort();
  } catch (const InputError& error) {
    if (error.diagnostics().empty()) std::abort();
  }
  return 0;
}
