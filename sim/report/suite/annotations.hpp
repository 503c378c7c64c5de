/// Checked suites as GitHub's workflow commands, which show a message beside the line of a file:
///
///   ::error file=planners.lock,line=12,title=vgg19-offload%3A offload/greedy::makespan +3.1 %25
///   ...
#pragma once

#include "scenario/suite/suite_check.hpp"

#include <string>

namespace plimsoll {

/// A line for each run that does not hold, at the place of its first finding: the record, the bound
/// or the scenario. Such systems show few lines. Improvements that are not to fail are notices.
[[nodiscard]] std::string github_annotations(const CheckedSuite& suite);

}  // namespace plimsoll
