/// Checked suites in the XML that CI systems read from JUnit.
///
///   <testsuites tests="3" failures="1" errors="0">
///     <testsuite name="planners" tests="3" failures="1" errors="0" file="planners.yaml">
///       <testcase classname="planners.vgg19-offload" name="offload/greedy" file="..." line="5">
///         <failure type="regression" message="makespan +3.1 % (412 ms, was 399.6 ms)">...
///
/// A run is a test case, and so is a record that the suite no longer has. One that could not run
/// has an <error>; what is better than recorded, and is not to fail, stands in <system-out>. There
/// are no times in it: the same runs give the same bytes.
#pragma once

#include "scenario/suite/suite_check.hpp"

#include <span>
#include <string>
#include <string_view>

namespace plimsoll {

/// `text` for an attribute or element: bytes that are not UTF-8, and characters that XML 1.0 has
/// no way to write, become U+FFFD. O(text).
[[nodiscard]] std::string xml_text(std::string_view text);

[[nodiscard]] std::string junit_report(std::span<const CheckedSuite> suites);

}  // namespace plimsoll
