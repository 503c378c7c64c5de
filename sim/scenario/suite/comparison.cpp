#include "scenario/suite/comparison.hpp"

#include "scenario/suite/recorded_execution.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// The value of the same metric and part, or nullptr.
const RecordedValue* find(const RecordedRun& run, const MetricValue& like) {
  const auto found = std::ranges::find_if(run.values, [&](const RecordedValue& other) {
    return other.value.metric == like.metric && other.value.part == like.part;
  });
  return found == run.values.end() ? nullptr : &*found;
}

Finding other_status(const RecordedRun& was, const RecordedRun& is) {
  using Kind = Finding::Kind;
  const Kind kind = is.status == "ok"    ? Kind::better
                    : was.status == "ok" ? Kind::worse
                                         : Kind::changed;
  return {kind, was.where, fmt::format("status {}, was {}", is.status, was.status)};
}

/// What became of a recorded value; nothing where it holds.
std::optional<Finding> finding_on(const RecordedValue& was, const RecordedRun& is,
                                  const Tolerances& tolerances) {
  using Kind = Finding::Kind;
  const std::string words = words_for(was.value);
  const RecordedValue* now = find(is, was.value);
  if (now == nullptr)
    return Finding{Kind::stale, was.where,
                   fmt::format("{} is recorded, and the run no longer has any", words)};
  const Change change = change_of(was.value, now->value, tolerances.of(was.value.metric));
  if (change == Change::none || change == Change::within) return std::nullopt;
  const Kind kind = was.value.metric == Metric::saved ? Kind::changed
                    : change == Change::better        ? Kind::better
                                                      : Kind::worse;
  const std::string by = change_in_words(was.value, now->value);
  return Finding{kind, was.where, fmt::format("{} {}", words, by)};
}

}  // namespace

RecordedRun record_of(const RunResult& result, const Platform& platform) {
  RecordedRun run{{}, result.scenario, label_of(result), status_text(result), {}, {}, {}};
  if (!result.infeasible) run.plan = plan_digest(result, platform);
  for (MetricValue& value : values_of(result)) run.values.push_back({std::move(value), {}});
  return run;
}

Comparison compare(const RecordedRun& was, const RecordedRun& is, const Tolerances& tolerances) {
  Comparison comparison;
  comparison.is_another_plan = was.plan != is.plan;
  if (was.status != is.status) {
    comparison.findings.push_back(other_status(was, is));
    return comparison;
  }
  comparison.held = 1;
  for (const RecordedValue& value : was.values) {
    if (auto finding = finding_on(value, is, tolerances))
      comparison.findings.push_back(std::move(*finding));
    else
      ++comparison.held;
  }
  for (const RecordedValue& value : is.values)
    if (find(was, value.value) == nullptr)
      comparison.findings.push_back(
          {Finding::Kind::missing, was.where,
           fmt::format("{} is not recorded ({})", words_for(value.value), to_text(value.value))});
  return comparison;
}

RecordedRun carried_over(const RecordedRun& was, RecordedRun is, const Tolerances& tolerances) {
  if (was.status != is.status) return is;
  for (RecordedValue& now : is.values) {
    const RecordedValue* before = find(was, now.value);
    if (before == nullptr) continue;
    const Change change = change_of(before->value, now.value, tolerances.of(now.value.metric));
    if (change == Change::within) now.value = before->value;
  }
  return is;
}

}  // namespace plimsoll
