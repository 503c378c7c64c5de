/// Numbers and names of a capacity report in words. Internal to this floor.
#pragma once

#include "scenario/capacity/capacity.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace plimsoll {

/// "1,800.00"; six decimals where it is less than one.
[[nodiscard]] std::string amount_text(std::int64_t micros);
[[nodiscard]] std::string money_text(std::int64_t micros, const std::string& currency);

/// "9.4 h", "3.2 d": for times beyond the range of Time, too.
[[nodiscard]] std::string long_time(std::int64_t seconds);

[[nodiscard]] double samples_per_second(SampleRate rate);
[[nodiscard]] double in_kwh(Energy energy);

/// "4.075 kWh", "2.35 Wh", "82.5 mWh".
[[nodiscard]] std::string hours_text(Energy energy);

/// "throughput of a unit".
[[nodiscard]] const char* axis_text(Axis axis);

/// The file of a candidate as the plan names it; nothing where the platform stands in the plan.
[[nodiscard]] std::optional<std::string> origin_of(const CapacityCandidate& candidate);

/// On which one workload or another is tried; nullptr where none may have it.
[[nodiscard]] const Platform* platform_of(const CapacityPlan& plan, std::size_t candidate);

/// What a workload must reach, a phrase each: "at least 400 samples/s".
[[nodiscard]] std::vector<std::string> target_phrases(const CapacityWorkload& workload);

/// What the figures take for granted, a sentence each.
[[nodiscard]] std::vector<std::string> assumptions(const CapacityReport& report);

/// These, the worst quality of the platforms' numbers, and the error band with its source.
[[nodiscard]] std::vector<std::string> foundations(const CapacityReport& report);

}  // namespace plimsoll
