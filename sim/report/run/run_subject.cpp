#include "report/run/run_subject.hpp"

#include "report/text/style.hpp"

#include <fmt/format.h>

namespace plimsoll {

std::string run_subject(const Scenario& scenario, std::span<const RunResult> results) {
  std::string given;
  for (const auto& [name, value] : scenario.workload_options.with)
    given += fmt::format("{}{}: {}", given.empty() ? "" : ", ", name.value, value);
  std::string subject = scenario.workload_name;
  if (!given.empty()) subject += fmt::format(" ({})", given);
  subject += fmt::format(" on {}", scenario.platform_name);
  if (!results.empty() && results.front().workload_as_run.batch > 1)
    subject += fmt::format(", batch {}", thousands(results.front().workload_as_run.batch));
  return subject;
}

}  // namespace plimsoll
