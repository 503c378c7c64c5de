#include "report/capacity/capacity_words.hpp"

#include "report/text/style.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

std::string amount_text(std::int64_t micros) {
  constexpr std::int64_t kUnit = 1'000'000, kHundredth = kUnit / 100;
  if (micros > 0 && micros < kUnit) return fmt::format("0.{:06}", micros);
  const std::int64_t hundredths =
      micros / kHundredth + (micros % kHundredth >= kHundredth / 2 ? 1 : 0);
  return fmt::format("{}.{:02}", thousands(hundredths / 100), hundredths % 100);
}

std::string money_text(std::int64_t micros, const std::string& currency) {
  return fmt::format("{} {}", amount_text(micros), currency);
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

const char* axis_text(Axis axis) {
  return axis == Axis::throughput ? "throughput of a unit" : to_text(axis);
}

std::optional<std::string> origin_of(const CapacityCandidate& candidate) {
  return candidate.platform.is_scalar() ? std::optional(candidate.platform.scalar()) : std::nullopt;
}

const Platform* platform_of(const CapacityPlan& plan, std::size_t candidate) {
  const auto found = std::ranges::find(plan.pairings, candidate, &CapacityPairing::candidate);
  return found == plan.pairings.end() ? nullptr : &found->scenario.platform;
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

/// "`memories.vram.capacity: 48 GiB`, ...".
std::string set_text(const CapacityCandidate& candidate) {
  std::vector<std::string> parts;
  for (const auto& [path, value] : candidate.set.entries())
    parts.push_back(fmt::format("`{}: {}`", path.scalar(), as_written(value)));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// For each that is not simply the platform of its name: which one it is, and what the plan sets.
std::vector<std::string> platform_sentences(const CapacityPlan& plan) {
  std::vector<std::string> sentences;
  for (const CapacityCandidate& it : plan.platforms) {
    const std::string origin = origin_of(it).value_or(it.name);
    std::string text = origin == it.name ? it.name : fmt::format("{} is {}", it.name, origin);
    if (it.set.is_mapping() && !it.set.entries().empty())
      text += fmt::format(": the plan sets {}, which counts as `{}`", set_text(it),
                          to_text(Quality::estimate));
    if (text != it.name) sentences.push_back(std::move(text));
  }
  return sentences;
}

bool has_energy(const CapacityPlan& plan, std::size_t candidate) {
  const Platform* platform = platform_of(plan, candidate);
  return platform != nullptr && platform->has_energy();
}

std::string energy_sentence(const CapacityPlan& plan) {
  std::vector<std::string> parts;
  for (std::size_t c = 0; c < plan.platforms.size(); ++c) {
    if (!has_energy(plan, c)) continue;
    const std::string& boundary = platform_of(plan, c)->energy_boundary;
    parts.push_back(
        fmt::format("{}: {}", plan.platforms[c].name, boundary.empty() ? "not said" : boundary));
  }
  return fmt::format(
      "energy is that of a unit up to a boundary ({}); what lies beyond it, cooling "
      "and idle units are not in it",
      fmt::join(parts, ", "));
}

/// Of a platform without power: why its energy is missing, and what that means.
std::string no_power_sentence(const CapacityCandidate& candidate, const Platform& platform,
                              bool is_power_asked_for) {
  std::string text =
      fmt::format("{} states no power (set `processors.{}.power`): its energy is not known",
                  candidate.name, platform.processors.front().key());
  if (candidate.price.kwh) text += "; electricity is not counted";
  if (is_power_asked_for && platform.power_limit)
    text += fmt::format("; its power limit of {} stands for its average power",
                        to_text(*platform.power_limit));
  return text;
}

/// For each platform without power where another has it, or where electricity or power matter.
std::vector<std::string> no_power_sentences(const CapacityPlan& plan, bool any_energy) {
  const bool is_power_asked_for = std::ranges::any_of(
      plan.workloads,
      [](const CapacityWorkload& workload) { return workload.targets.average_power.has_value(); });
  std::vector<std::string> sentences;
  for (std::size_t c = 0; c < plan.platforms.size(); ++c) {
    const Platform* platform = platform_of(plan, c);
    if (platform == nullptr || platform->has_energy()) continue;
    if (any_energy || is_power_asked_for || plan.platforms[c].price.kwh)
      sentences.push_back(no_power_sentence(plan.platforms[c], *platform, is_power_asked_for));
  }
  return sentences;
}

std::string band_text(const CandidateError& error) {
  const std::string slower = percent(as_fraction(error.slower));
  const std::string energy = percent(as_fraction(error.energy));
  if (error.slower == error.faster)
    return fmt::format("throughput ±{}, energy ±{}", slower, energy);
  return fmt::format("a best case: throughput up to {} lower, never higher, energy ±{}", slower,
                     energy);
}

/// One for each band, with the candidates that have it.
std::vector<std::string> error_sentences(const CapacityReport& report) {
  std::vector<std::pair<const CandidateError*, std::vector<std::string>>> bands;
  bool is_fitted = false, is_best_case = false;
  for (std::size_t c = 0; c < report.errors.size(); ++c) {
    if (platform_of(report.plan, c) == nullptr) continue;
    const CandidateError& error = report.errors[c];
    is_fitted = is_fitted || error.basis == CandidateError::Basis::fitted;
    is_best_case = is_best_case || error.basis == CandidateError::Basis::best_case;
    const auto same = std::ranges::find_if(bands, [&](const auto& band) {
      return band.first->slower == error.slower && band.first->source == error.source;
    });
    if (same == bands.end())
      bands.push_back({&error, {report.plan.platforms[c].name}});
    else
      same->second.push_back(report.plan.platforms[c].name);
  }
  std::vector<std::string> sentences;
  for (const auto& [error, names] : bands)
    sentences.push_back(fmt::format(
        "error band of {}: {} ({}{})", fmt::join(names, ", "), band_text(*error), error->source,
        error->basis == CandidateError::Basis::of_the_plan ? ""
                                                           : "; `error` of the plan replaces it"));
  if (is_fitted && is_best_case)
    sentences.emplace_back(
        "platforms that were fitted to measurements are compared with ones that were not: the "
        "latter are a best case, so that a lead of theirs within the error band says little");
  return sentences;
}

}  // namespace

std::vector<std::string> assumptions(const CapacityReport& report) {
  const CapacityPlan& plan = report.plan;
  std::vector<std::string> all{"a unit is one platform as its file describes it"};
  std::ranges::copy(platform_sentences(plan), std::back_inserter(all));
  all.push_back(scaling_sentence(plan.scaling));
  all.emplace_back(
      "one training step is simulated and repeated: loading data, validation and checkpoints take "
      "no time");
  const bool any_energy = std::ranges::any_of(report.answers, [](const CapacityAnswer& answer) {
    return std::ranges::any_of(answer.configurations, [](const Configuration& it) {
      return it.figures && it.figures->energy_per_sample;
    });
  });
  if (any_energy) all.push_back(energy_sentence(plan));
  std::ranges::copy(no_power_sentences(plan, any_energy), std::back_inserter(all));
  if (std::ranges::any_of(plan.workloads, [](const auto& it) { return it.send.has_value(); }))
    all.emplace_back(
        "a sample is sent once, alone, with what the link's packets add left out; what is trained "
        "elsewhere and comes back, and the energy there, count for nothing");
  if (!plan.currency.empty())
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
  std::ranges::copy(error_sentences(report), std::back_inserter(all));
  return all;
}

}  // namespace plimsoll
