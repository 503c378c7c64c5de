#include "report/run/run_notes.hpp"

#include "plan/core/mirror_problems.hpp"
#include "policy/interface/left_out.hpp"
#include "report/run/mesh_words.hpp"
#include "report/run/run_details.hpp"
#include "report/text/style.hpp"
#include "scenario/run/claim_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

/// How far `measured` is from the least that it can be, in words with places for the bound and
/// the gap.
template <class Quantity>
std::string gap_note(Quantity bound, Quantity measured, const std::string& at_bound,
                     const std::string& words) {
  if (bound == measured) return at_bound;
  const auto least = static_cast<double>(bound.count());
  const double gap = least > 0 ? static_cast<double>(measured.count()) / least - 1 : 0.0;
  std::string more = percent(gap);
  if (gap > 0 && more == percent(0)) more = "less than 0.01 %";
  return fmt::format(fmt::runtime(words), to_text(bound), more);
}

/// Runs of stages, and processors of one, that a note names.
constexpr std::size_t kMostHeld = 16, kMostNamed = 4;

std::string stages_note(const RunResult& result, const std::vector<HeldStages>& held) {
  std::vector<std::string> parts;
  for (const HeldStages& stages : held) {
    if (parts.size() == kMostHeld) break;
    parts.push_back(
        fmt::format("{} on {}", to_text(stages), holders_of(result, stages, kMostNamed)));
  }
  if (held.size() > parts.size())
    parts.push_back(fmt::format("and {} more", held.size() - parts.size()));
  return fmt::format("Stages of the network: {}.", fmt::join(parts, "; "));
}

}  // namespace

std::vector<std::string> bound_notes(const RunResult& result) {
  std::vector<std::string> parts;
  // Nobody here has proven what a file says.
  const std::string says = result.from_file ? "the file claims that " : "";
  const std::string kind =
      result.bounds.keeps_order ? "in the order of the workload" : "of its kind";
  if (result.bounds.makespan && result.metrics.makespan)
    parts.push_back(
        says + gap_note(*result.bounds.makespan, *result.metrics.makespan,
                        "no schedule " + kind + " takes less time",
                        "no schedule " + kind + " takes less than {}; this one takes {} more"));
  if (result.bounds.period && result.metrics.period)
    parts.push_back(says +
                    gap_note(*result.bounds.period, *result.metrics.period,
                             "no period of its kind is shorter",
                             "no period of its kind is shorter than {}; this one is {} longer"));
  if (result.bounds.energy && result.metrics.energy)
    parts.push_back(says + gap_note(*result.bounds.energy, result.metrics.energy->total,
                                    "none needs less energy",
                                    "none needs less energy than {}; this one needs {} more"));
  if (const auto optimal = result.claims.optimal)
    parts.push_back(!*optimal          ? "not proven to be the best"
                    : result.from_file ? "the file claims that it is the best of its kind"
                                       : "proven to be the best of its kind");
  if (const auto model = result.claims.model_makespan)
    parts.push_back(fmt::format("planned with a model in which it takes {}", to_text(*model)));
  if (const auto model = result.claims.model_period)
    parts.push_back(fmt::format("planned with a model in which a microbatch follows every {}",
                                to_text(*model)));
  for (const auto& [memory, bytes] : result.claims.model_peak)
    parts.push_back(fmt::format("planned with a model in which it needs {} of {}", to_text(bytes),
                                result.memory_names[static_cast<std::size_t>(memory)]));
  return parts;
}

std::string recording_note(const RunResult& result) {
  const std::string& where = *result.recorded;
  std::string text = fmt::format(
      "times are those of the profile{}, not those of {}, which gives memories and "
      "links alone",
      where.empty() ? "" : fmt::format(", recorded with {}", where), result.platform);
  if (result.metrics.energy) text += "; energy is its power over these times";
  return text;
}

std::string holders_of(const RunResult& result, const HeldStages& stages, std::size_t most) {
  std::vector<std::string> names;
  for (const ProcessorId processor : stages.processors)
    names.push_back(result.metrics.processors[static_cast<std::size_t>(processor)].name);
  const std::size_t all = names.size();
  if (all > most) names.resize(most - 1);
  const std::string named = fmt::format("{}", fmt::join(names, ", "));
  return all > most ? fmt::format("{} and {} more", named, all - names.size()) : named;
}

std::vector<std::string> notes_of(const RunResult& result) {
  std::vector<std::string> notes;
  if (result.mesh) notes.push_back(fmt::format("{}.", mesh_words(*result.mesh)));
  if (const std::string use = use_of_ranks(result.metrics); !use.empty())
    notes.push_back(fmt::format("{}.", use));
  for (const std::string& note : result.notes) notes.push_back(fmt::format("Note: {}.", note));
  const ClaimCheck claims = check_claims(result);
  if (!claims.held.empty())
    notes.push_back(fmt::format("The {}'s claims hold: {}.", result.from_file ? "file" : "policy",
                                fmt::join(claims.held, ", ")));
  for (const std::string& difference : claims.differing)
    notes.push_back(fmt::format("A claim does not hold: {}.", difference));
  if (result.recorded) notes.push_back(fmt::format("Its {}.", recording_note(result)));
  if (!result.claims.in_flight.empty())
    notes.push_back(fmt::format("Its stages keep {} microbatches in flight.",
                                fmt::join(result.claims.in_flight, ", ")));
  if (const auto held = held_stages(result.plan, result.workload_as_run); !held.empty())
    notes.push_back(stages_note(result, held));
  if (!result.plan.mirrors.empty())
    notes.push_back(fmt::format("One replica is played for all {}.", replicas_of(result.plan)));
  if (const auto bounds = bound_notes(result); !bounds.empty())
    notes.push_back(fmt::format("Bound: {}.", fmt::join(bounds, "; ")));
  if (!result.claims.chosen.empty())
    notes.push_back(fmt::format("Chosen: the plan of {}{}.", result.claims.chosen,
                                left_out_text(result.claims.left_out)));
  return notes;
}

}  // namespace plimsoll
