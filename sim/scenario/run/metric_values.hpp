/// What a run cost, as exact integers: the values that a regression suite records and compares.
///
///   makespan             ps   lower is better
///   period               ps   lower is better
///   peak_memory.MEMORY   B    lower is better: the peak of what is allocated
///   energy               zJ   lower is better: of one iteration
///   smallest_budget      B    lower is better: of a planner that found no plan
///   saved                B    kept for the backward by policy `none`: neither; every change counts
///
/// Throughput, overhead, bubbles and energy per sample follow from these, the workload and the
/// reference run, and are left out: each change is reported once.
#pragma once

#include "scenario/run/run.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plimsoll {

enum class Metric : std::uint8_t { makespan, period, peak_memory, energy, smallest_budget, saved };
inline constexpr std::size_t kMetrics = 6;

struct MetricValue {
  Metric metric = Metric::makespan;
  std::string part;  ///< of peak_memory: the memory
  Energy::Count count = 0;
  bool operator==(const MetricValue&) const = default;
};

/// "makespan", "peak_memory".
[[nodiscard]] const char* to_text(Metric);
/// "makespan", "peak_memory.hbm".
[[nodiscard]] std::string name_of(const MetricValue&);
/// For sentences: "makespan", "peak of hbm".
[[nodiscard]] std::string words_for(const MetricValue&);
/// About four digits, with a unit: "3.652 s".
[[nodiscard]] std::string to_text(const MetricValue&);
/// Every digit: "3652000000001 ps".
[[nodiscard]] std::string exact_text(const MetricValue&);

/// A value as exact_text() writes it; nothing, and why, where the name or the text is none.
struct ReadValue {
  std::optional<MetricValue> value;
  bool knows_name = true;
  std::string problem, hint;
};
[[nodiscard]] ReadValue read_value(const std::string& name, std::string_view text);

/// In a fixed order; those that apply. Of a run that did not end well only `saved`, and of an
/// infeasible one also `smallest_budget`: where a run ran out of memory is no cost of it.
[[nodiscard]] std::vector<MetricValue> values_of(const RunResult&);

/// By how much a value may differ from a recorded one, as a share of that.
struct Tolerances {
  std::array<Ratio, kMetrics> by_metric{};  ///< 0: not at all
  [[nodiscard]] Ratio of(Metric metric) const {
    return by_metric[static_cast<std::size_t>(metric)];
  }
};
/// The largest that can be asked for: 10, or 1000 %.
inline constexpr Ratio kMostTolerance{10'000'000'000};

/// `{makespan: 1 %, energy: 0.001}`: percentages, or shares below 1; metrics that are not named
/// keep what `outer` has.
[[nodiscard]] Format<std::vector<std::pair<Metric, Ratio>>> tolerance_format();
[[nodiscard]] Tolerances with(Tolerances outer,
                              const std::vector<std::pair<Metric, Ratio>>& changed);

enum class Change : std::uint8_t { none, within, better, worse };

/// Exact: a difference of |was| * tolerance, rounded down to a whole count, is still within.
[[nodiscard]] Change change_of(const MetricValue& was, const MetricValue& is, Ratio tolerance);

/// "+3.1 % (412 ms, was 399.6 ms)"; where that shows no difference: "+1 ps (412 ms)".
[[nodiscard]] std::string change_in_words(const MetricValue& was, const MetricValue& is);

}  // namespace plimsoll
