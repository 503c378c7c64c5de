/// The registry entries, one from each policy's file.
#pragma once

#include "policy/interface/policy.hpp"

namespace plimsoll {

#define PLIMSOLL_POLICY(name) [[nodiscard]] PolicyInfo name##_policy();
#include "policy/interface/policy_list.inc"
#undef PLIMSOLL_POLICY

/// Why there is no policy of that name: with the nearest name.
[[nodiscard]] Diagnostic no_such_policy(const std::string& name, const Location& where);

}  // namespace plimsoll
