/// Finds a memory of a platform by the name that a parameter gives.
#pragma once

#include "policy/interface/policy.hpp"

namespace plimsoll {

/// Throws InputError where the platform has no memory of that name.
[[nodiscard]] MemoryId memory_named(const Problem& problem, const Located<std::string>& named);

}  // namespace plimsoll
