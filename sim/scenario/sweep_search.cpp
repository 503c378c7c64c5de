#include "scenario/sweep_search.hpp"

#include "scenario/sweep_value.hpp"

#include <algorithm>
#include <cmath>

namespace plimsoll {

namespace {

template <class T>
bool is_within(const Limits<T>& limits, const std::optional<T>& value) {
  return value && (!limits.at_most || *value <= *limits.at_most) &&
         (!limits.at_least || *value >= *limits.at_least);
}

template <class T>
bool is_within(const std::optional<Limits<T>>& limits, const std::optional<T>& value) {
  return !limits || is_within(*limits, value);
}

/// Shares and throughputs are doubles in the result; limits count billionths.
template <class T>
std::optional<T> in_billionths(const std::optional<double>& value) {
  if (!value) return std::nullopt;
  return T(std::llround(*value * 1e9));
}

template <class T, class Part, class Value>
bool are_within(const NamedLimits<T>& limits, const std::vector<Part>& parts, Value value) {
  return std::ranges::all_of(limits, [&](const auto& named) {
    const auto part = std::ranges::find(parts, named.first.value, &Part::name);
    return part != parts.end() && is_within(named.second, std::optional<T>(value(*part)));
  });
}

const char* word(const std::optional<ExpectedStatus>& status) {
  switch (status.value_or(ExpectedStatus::ok)) {
    case ExpectedStatus::ok:
      return "ok";
    case ExpectedStatus::oom:
      return "oom";
    case ExpectedStatus::deadlock:
      return "deadlock";
    case ExpectedStatus::infeasible:
      return "infeasible";
  }
  return "";
}

}  // namespace

bool meets(const Expectation& expectation, const RunResult& run) {
  const Metrics& metrics = run.metrics;
  const auto& energy = metrics.energy;
  return std::string_view(word(expectation.status)) == status_text(run) &&
         are_within(expectation.peak_memory, metrics.memories,
                    [](const MemoryMetrics& it) { return it.peak_allocated; }) &&
         are_within(expectation.bubble, metrics.processors,
                    [](const ProcessorMetrics& it) {
                      return in_billionths<Ratio>(it.bubble).value_or(Ratio::unlimited());
                    }) &&
         is_within(expectation.makespan, metrics.makespan) &&
         is_within(expectation.period, metrics.period) &&
         is_within(expectation.throughput, in_billionths<SampleRate>(metrics.throughput)) &&
         is_within(expectation.overhead, in_billionths<Ratio>(run.overhead)) &&
         is_within(expectation.energy, energy ? std::optional(energy->total) : std::nullopt) &&
         is_within(expectation.energy_per_sample,
                   energy ? std::optional(energy->per_sample) : std::nullopt) &&
         is_within(expectation.saved, std::optional(run.saved_bytes));
}

Format<SweepSearchSpec> sweep_search_format() {
  struct Written {
    Location where;
    Located<std::string> path, from, to;
    std::optional<Located<std::string>> step;
    Expectation subject_to;
  };
  const auto check = [](Written& it, const Node&, Diagnostics& diagnostics) {
    if (it.step) return;
    it.step = {"1", it.from.where};
    if (parse_sweep_value(it.from.value).measure != Measure::number)
      diagnostics.error(it.where, "a quantity needs a `step`: how fine to search");
  };
  return mapped<Written, SweepSearchSpec>(
      Record<Written>("search", "The end of a range up to which all is well, at every point.")
          .where(&Written::where)
          .required("path", &Written::path, located(name()), "what is searched, as `set` takes it")
          .required("from", &Written::from, located(sweep_number_format()), "the least candidate")
          .required("to", &Written::to, located(sweep_number_format()), "no candidate is above it")
          .optional("step", &Written::step, located(sweep_number_format()),
                    "between two candidates; default 1 for numbers")
          .optional("subject_to", &Written::subject_to, expectation_format(),
                    "what must hold; default: the run ends ok")
          .check({"from", "step"}, check)
          .format(),
      [](Written it) {
        SweepRange range{it.where, it.from, it.to, it.step, {}, {}};
        return SweepSearchSpec{it.where, it.path, std::move(range), std::move(it.subject_to)};
      });
}

}  // namespace plimsoll
