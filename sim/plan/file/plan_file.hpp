/// Plans as files, in binary or as JSON; sim/plan/plan.proto documents each field.
///
/// A file names the parts of workload and platform by their names, so it can be read for another
/// platform with memories and processors of the same names. What is read is hostile until it is
/// parsed: every name, index and count is checked here, so that the plan can be indexed without
/// looking; whether it makes sense is for plan/check/plan_checker.hpp to say.
#pragma once

#include "base/diagnostic.hpp"
#include "plan/core/plan.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace plimsoll {

/// Larger files are refused before they are read.
inline constexpr std::uintmax_t kMaxPlanBytes = std::uintmax_t{256} << 20;

enum class PlanForm : std::uint8_t { binary, json };

/// The bytes of a plan; the same ones for the same plan. Dependencies after an end come out before
/// those after a start. Precondition: ids are in range, copies read one buffer and write one, of
/// the step's own microbatch and instance, and only what computes states a duration (check_plan
/// says so). O(plan).
[[nodiscard]] std::string to_bytes(const Plan& plan, PlanForm form, const Workload& workload,
                                   const Platform& platform);

/// Reads a plan; `origin` names the text in messages. Throws InputError with everything that is
/// wrong. O(bytes log names).
[[nodiscard]] Plan parse_plan(std::string_view bytes, PlanForm form, const std::string& origin,
                              const Workload& workload, const Platform& platform);

/// Writes binary to `*.pb` and `*.bin`, JSON to `*.json`: to a temporary name in the same folder
/// first, so that there is never half a file under this one. Throws InputError: another ending, not
/// writable.
void write_plan(const Plan& plan, const Workload& workload, const Platform& platform,
                const std::filesystem::path& path);

/// Reads a regular file by the same endings. Throws InputError.
[[nodiscard]] Plan read_plan(const std::filesystem::path& path, const Workload& workload,
                             const Platform& platform);

}  // namespace plimsoll
