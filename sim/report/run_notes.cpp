#include "report/run_notes.hpp"

#include "plan/mirror_problems.hpp"
#include "policy/left_out.hpp"
#include "report/run_details.hpp"
#include "report/style.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

std::vector<std::string> bound_notes(const RunResult& result) {
  std::vector<std::string> parts;
  if (result.bounds.makespan && result.metrics.makespan) {
    const double bound = in_seconds(*result.bounds.makespan);
    const double gap = bound > 0 ? in_seconds(*result.metrics.makespan) / bound - 1 : 0.0;
    parts.push_back(
        fmt::format("no schedule of its kind takes less than {}; this one takes {} more",
                    to_text(*result.bounds.makespan), percent(gap)));
  }
  if (result.bounds.period && result.metrics.period) {
    const double bound = in_seconds(*result.bounds.period);
    const double gap = bound > 0 ? in_seconds(*result.metrics.period) / bound - 1 : 0.0;
    parts.push_back(fmt::format("no period of its kind is shorter than {}; this one is {} longer",
                                to_text(*result.bounds.period), percent(gap)));
  }
  if (const auto optimal = result.claims.optimal)
    parts.push_back(*optimal ? "proven to be the best of its kind" : "not proven to be the best");
  if (const auto model = result.claims.model_makespan)
    parts.push_back(fmt::format("planned with a model in which it takes {}", to_text(*model)));
  for (const auto& [memory, bytes] : result.claims.model_peak)
    parts.push_back(fmt::format("planned with a model in which it needs {} of {}", to_text(bytes),
                                result.memory_names[static_cast<std::size_t>(memory)]));
  return parts;
}

std::vector<std::string> notes_of(const RunResult& result) {
  std::vector<std::string> notes;
  const ClaimCheck claims = check_claims(result);
  if (!claims.held.empty())
    notes.push_back(fmt::format("The policy's claims hold: {}.", fmt::join(claims.held, ", ")));
  for (const std::string& difference : claims.differing)
    notes.push_back(fmt::format("A claim does not hold: {}.", difference));
  if (!result.claims.in_flight.empty())
    notes.push_back(fmt::format("Its stages keep {} microbatches in flight.",
                                fmt::join(result.claims.in_flight, ", ")));
  if (!result.plan.mirrors.empty())
    notes.push_back(fmt::format(
        "One replica is played for all {}; links show what it moves, and what comes into it.",
        replicas_of(result.plan)));
  if (const auto bounds = bound_notes(result); !bounds.empty())
    notes.push_back(fmt::format("Bound: {}.", fmt::join(bounds, "; ")));
  if (!result.claims.chosen.empty())
    notes.push_back(fmt::format("Chosen: the plan of {}{}.", result.claims.chosen,
                                left_out_text(result.claims.left_out)));
  return notes;
}

}  // namespace plimsoll
