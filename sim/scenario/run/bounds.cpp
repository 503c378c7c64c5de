#include "scenario/run/bounds.hpp"

#include "execution/find_metrics.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace plimsoll {

namespace {

const char* to_text(ExpectedStatus status) {
  switch (status) {
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

/// To 1e-9, and to what can be counted.
template <class T>
std::optional<T> rounded_bound(std::optional<double> value) {
  constexpr double kMost = 9.2e18;
  if (!value) return std::nullopt;
  return T{std::llround(std::clamp(*value * 1e9, -kMost, kMost))};
}

class BoundChecker {
 public:
  BoundChecker(const Expectation& expectation, const RunResult& result)
      : expect_(expectation), result_(result), metrics_(result.metrics) {}

  std::vector<BoundCheck> run() {
    check_status();
    for (const auto& [name, limits] : expect_.peak_memory)
      check("peak of " + name.value, limits, peak_of(name.value));
    check("makespan", expect_.makespan, metrics_.makespan);
    check("period", expect_.period, metrics_.period);
    check("throughput", expect_.throughput, rounded_bound<SampleRate>(metrics_.throughput));
    check("overhead", expect_.overhead, rounded_bound<Ratio>(result_.overhead));
    for (const auto& [name, limits] : expect_.bubble)
      check("bubble of " + name.value, limits, rounded_bound<Ratio>(bubble_of(name.value)));
    const auto& energy = metrics_.energy;
    check("energy", expect_.energy, energy ? std::optional(energy->total) : std::nullopt);
    check("energy per sample", expect_.energy_per_sample,
          energy ? std::optional(energy->per_sample) : std::nullopt);
    check("saved bytes", expect_.saved, std::optional(result_.saved_bytes));
    check("smallest budget", expect_.smallest_budget,
          result_.infeasible && !result_.infeasible->smallest_budget.is_unlimited()
              ? std::optional(result_.infeasible->smallest_budget)
              : std::nullopt);
    return std::move(checks_);
  }

 private:
  void check_status() {
    const auto& given = expect_.status;
    const char* expected = to_text(given ? given->value : ExpectedStatus::ok);
    const char* found = status_text(result_);
    checks_.push_back({std::string_view(expected) == found, given ? given->where : expect_.where,
                       fmt::format("status is {}, expected {}", found, expected)});
  }

  template <class T>
  void check(const std::string& what, const std::optional<Limits<T>>& limits,
             const std::optional<T>& value) {
    if (limits) check(what, *limits, value);
  }

  template <class T>
  void check(const std::string& what, const Limits<T>& limits, const std::optional<T>& value) {
    const auto bound = [&](const std::optional<T>& limit, const char* relation, auto holds) {
      if (!limit) return;
      const std::string expected = fmt::format("expected {}{}", relation, text_of(*limit));
      if (value)
        checks_.push_back(
            {holds(*value, *limit), limits.where,
             fmt::format("{} is {}, {}", what, told_apart(*value, *limit), expected)});
      else
        checks_.push_back({false, limits.where,
                           fmt::format("the run has no {} (status {}), {}", what,
                                       status_text(result_), expected)});
    };
    bound(limits.at_least, "at least ", std::greater_equal<T>{});
    bound(limits.at_most, "at most ", std::less_equal<T>{});
    bound(limits.equals, "", std::equal_to<T>{});
  }

  template <class T>
  static std::string text_of(T value) {
    return plimsoll::to_text(value);
  }

  /// Values that read the same with four digits are told with all.
  template <class T>
  static std::string told_apart(T value, T limit) {
    const std::string text = text_of(value);
    if (value == limit || text != text_of(limit)) return text;
    return fmt::format("{} ({}{})", text, value > limit ? "above by " : "below by ",
                       text_of(value > limit ? value - limit : limit - value));
  }

  [[nodiscard]] std::optional<Bytes> peak_of(const std::string& memory) const {
    const MemoryMetrics* found = find_memory(metrics_, memory);
    if (found == nullptr) return std::nullopt;
    return found->peak_allocated;
  }

  [[nodiscard]] std::optional<double> bubble_of(const std::string& processor) const {
    const auto found = std::ranges::find(metrics_.processors, processor, &ProcessorMetrics::name);
    if (found == metrics_.processors.end()) return std::nullopt;
    return found->bubble;
  }

  const Expectation& expect_;
  const RunResult& result_;
  const Metrics& metrics_;
  std::vector<BoundCheck> checks_;
};

}  // namespace

std::vector<BoundCheck> check_bounds(const Expectation& expectation, const RunResult& result) {
  return BoundChecker(expectation, result).run();
}

bool meets(const Expectation& expectation, const RunResult& result) {
  return std::ranges::all_of(check_bounds(expectation, result), &BoundCheck::holds);
}

}  // namespace plimsoll
