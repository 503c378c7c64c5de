#include "report/capacity_words.hpp"

#include "report/style.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

std::string money_text(std::int64_t micros, const std::string& currency) {
  constexpr std::int64_t kMicros = 1'000'000, kHundredth = kMicros / 100;
  if (micros > 0 && micros < kMicros) return fmt::format("0.{:06} {}", micros, currency);
  const std::int64_t hundredths =
      micros / kHundredth + (micros % kHundredth >= kHundredth / 2 ? 1 : 0);
  return fmt::format("{}.{:02} {}", thousands(hundredths / 100), hundredths % 100, currency);
}

std::string long_time(std::int64_t seconds) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86'400;
  const auto time = static_cast<double>(seconds);
  if (time < 2 * kMinute) return fmt::format("{} s", seconds);
  if (time < 2 * kHour) return decimal(time / kMinute) + " min";
  if (time < 3 * kDay) return decimal(time / kHour) + " h";
  return decimal(time / kDay) + " d";
}

double samples_per_second(SampleRate rate) {
  return static_cast<double>(rate.count()) / 1e9;
}

double in_kwh(Energy energy) {
  constexpr double kJoules = 3.6e6;
  return in_joules(energy) / kJoules;
}

std::string hours_text(Energy energy) {
  constexpr double kThousand = 1000;
  const double kwh = in_kwh(energy);
  if (kwh >= 1) return decimal(kwh) + " kWh";
  if (kwh * kThousand >= 1) return decimal(kwh * kThousand) + " Wh";
  return decimal(kwh * kThousand * kThousand) + " mWh";
}

std::vector<std::string> target_phrases(const CapacityWorkload& workload) {
  const CapacityTargets& targets = workload.targets;
  std::vector<std::string> phrases;
  const auto say = [&](const auto& target, const char* pattern, auto text) {
    if (target) phrases.push_back(fmt::format(fmt::runtime(pattern), text(*target)));
  };
  const auto as_text = [](const auto& value) { return to_text(value); };
  say(targets.throughput, "at least {}", as_text);
  say(targets.tokens_per_second, "at least {} tokens/s", thousands);
  if (workload.run)
    phrases.push_back(fmt::format(
        "{} samples{}", thousands(workload.run->samples),
        workload.run->epochs > 1 ? fmt::format(" x {} epochs", workload.run->epochs) : ""));
  say(targets.deadline, "within {}", as_text);
  if (targets.headroom > Ratio{})
    phrases.push_back(fmt::format("{} of memory free", percent(as_fraction(targets.headroom))));
  say(targets.energy_per_sample, "at most {} a sample", as_text);
  say(targets.average_power, "at most {} a unit on average", as_text);
  say(targets.samples_per_charge, "{} samples on a charge", thousands);
  return phrases;
}

namespace {

std::string scaling_sentence(const Scaling& scaling) {
  if (scaling.source.empty())
    return "n units carry n times what one does: exchanging gradients is taken to cost nothing, so "
           "the numbers of units above one are lower bounds (`scaling` of the plan changes that)";
  return fmt::format("n units carry {} of n times what one does: {}",
                     percent(as_fraction(scaling.efficiency)), scaling.source);
}

std::string energy_sentence(const CapacityReport& report) {
  std::vector<std::string> parts;
  for (std::size_t c = 0; c < report.plan.platforms.size(); ++c) {
    const std::string& boundary = report.energy_boundaries[c];
    parts.push_back(fmt::format("{}: {}", report.plan.platforms[c].name,
                                boundary.empty() ? "not said" : boundary));
  }
  return fmt::format(
      "energy is that of a unit up to a boundary ({}); what lies beyond it, cooling "
      "and idle units are not in it",
      fmt::join(parts, ", "));
}

}  // namespace

std::vector<std::string> assumptions(const CapacityReport& report) {
  std::vector<std::string> all{
      "a unit is one platform as its file describes it", scaling_sentence(report.plan.scaling),
      "one training step is simulated and repeated: loading data, validation and checkpoints take "
      "no time"};
  const bool any_energy = std::ranges::any_of(report.answers, [](const CapacityAnswer& answer) {
    return std::ranges::any_of(answer.configurations, [](const Configuration& it) {
      return it.figures && it.figures->energy_per_sample;
    });
  });
  if (any_energy) all.push_back(energy_sentence(report));
  if (!report.plan.currency.empty())
    all.emplace_back(
        "prices are those of the plan, as they stand there; rent is by the second, and "
        "buying is not written off over the run");
  return all;
}

std::vector<std::string> foundations(const CapacityReport& report) {
  std::vector<std::string> all = assumptions(report);
  Quality worst = Quality::measured;
  for (const CapacityAnswer& answer : report.answers) worst = std::max(worst, answer.worst_quality);
  all.push_back(
      fmt::format("`{}` is the worst quality among the platforms' numbers (`plimsoll "
                  "list platforms NAME` gives each with its source)",
                  to_text(worst)));
  all.push_back(fmt::format(
      "error band: times ±{}, energy ±{}: {}{}", percent(as_fraction(report.error.time)),
      percent(as_fraction(report.error.energy)), report.error.source,
      report.is_error_published ? "; how far Plimsoll is off on your machine nobody has measured "
                                  "yet (`error` of the plan)"
                                : ""));
  return all;
}

}  // namespace plimsoll
