/// Converts between plans and the protobuf message of plan.proto.
#pragma once

#include "base/diagnostic.hpp"
#include "plan/core/plan.hpp"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace plimsoll {

namespace plan::v1 {
class Plan;
}

/// Fills an empty message. See to_bytes() in plan/file/plan_file.hpp.
void encode_plan(const Plan& plan, const Workload& workload, const Platform& platform,
                 plan::v1::Plan& message);

/// Where a part of a plan is in its file: "steps[3].compute", by the names of plan.proto.
using PlanPlaces = std::function<Location(const std::string& part)>;

/// Checks every name, index and count. Throws InputError with all that is wrong.
[[nodiscard]] Plan decode_plan(const plan::v1::Plan& message, const PlanPlaces& places,
                               const Workload& workload, const Platform& platform);

/// Messages and strings of a plan that cost far more memory than their two bytes in a file: beyond
/// this many a file is refused.
inline constexpr std::size_t kMaxPlanParts = 32'000'000;

/// What protobuf's JSON parser lets pass or says without a place: text that is no JSON, repeated
/// and unknown keys, nesting, too many parts. Throws InputError. O(text).
void scan_plan_json(std::string_view text, const std::string& origin);

/// Where `parts` are in a text that scan_plan_json() lets pass; of a part that is not written, the
/// one around it. O(text log parts).
[[nodiscard]] std::map<std::string, Location> places_in_plan_json(
    std::string_view text, const std::string& origin, const std::set<std::string>& parts);

}  // namespace plimsoll
