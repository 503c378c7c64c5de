/// `expect` of a scenario: the bounds that a regression suite checks.
///
///   expect:
///     status: ok
///     peak_memory: {hbm: {at_most: 8 GiB}}
///     overhead: {at_most: 10 %}
///     throughput: {at_least: 250 samples/s}
///
/// Each metric has the meaning of its key in the result, and holds for every policy of the
/// scenario. Where no `status` is given, `ok` is expected. `plimsoll check` holds runs to it
/// (scenario/run/bounds.hpp).
#pragma once

#include "base/format.hpp"
#include "platform/core/platform.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll {

/// `equals` alone, or at least one of the others; at_least is not above at_most.
template <class T>
struct Limits {
  Location where;
  std::optional<T> at_most, at_least, equals;
};

/// Limits by the name of a memory or processor, in the order of the file.
template <class T>
using NamedLimits = std::vector<std::pair<Located<std::string>, Limits<T>>>;

enum class ExpectedStatus : std::uint8_t { ok, oom, deadlock, infeasible };

struct Expectation {
  Location where;
  std::optional<Located<ExpectedStatus>> status;
  NamedLimits<Bytes> peak_memory;  ///< memories.NAME.peak_allocated_bytes
  std::optional<Limits<Time>> makespan, period;
  std::optional<Limits<SampleRate>> throughput;
  std::optional<Limits<Ratio>> overhead;
  NamedLimits<Ratio> bubble;  ///< processors.NAME.bubble
  std::optional<Limits<Energy>> energy, energy_per_sample;
  std::optional<Limits<Bytes>> saved, smallest_budget;
};

[[nodiscard]] Format<Expectation> expectation_format();

/// Reports memories and processors that the platform does not have, with the nearest that it has.
void check_names(const Expectation& expectation, const Platform& platform,
                 Diagnostics& diagnostics);

}  // namespace plimsoll
