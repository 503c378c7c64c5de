/// What there is: one text for each kind of thing.
#pragma once

#include "report/text/style.hpp"

#include <string>

namespace plimsoll {

/// A table of all, or one in full where `name` is not empty. Throws InputError for an unknown name.
[[nodiscard]] std::string list_platforms(const std::string& name, const Style& style);
[[nodiscard]] std::string list_workloads(const std::string& name, const Style& style);
[[nodiscard]] std::string list_policies(const std::string& name, const Style& style);

}  // namespace plimsoll
