/// For policies that ask other policies: their plans for the same problem, with an end to their work.
#pragma once

#include "policy/interface/policy.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <variant>

namespace plimsoll {

/// Left out is who does not apply to the workload or the platform, whose times leave the range, and
/// who needs more work than it may take.
using OtherAnswer = std::variant<Plan, Infeasible, LeftOut>;

/// What `plan`, that of the policy `name`, answers in at most `work` steps.
[[nodiscard]] OtherAnswer answer_of(const Problem& problem, const std::string& name,
                                    const std::function<Planned(const Problem&)>& plan,
                                    std::int64_t work);

/// What `policy` answers with `parameters`, a mapping with its name, in at most `work` steps.
[[nodiscard]] OtherAnswer answer_of(const Problem& problem, const PolicyInfo& policy,
                                    const Node& parameters, std::int64_t work);

}  // namespace plimsoll
