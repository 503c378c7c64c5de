#include "scenario/capacity/error_band.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Throughputs that come out 41 % too high, the most of docs/accuracy.md: 1 - 1 / 1.41.
constexpr Ratio kMostTooFast{410'000'000};
constexpr Ratio kSlowerThanBest{290'780'142};

/// Of energies that are worked out with rated power.
constexpr Ratio kPublishedEnergy{370'000'000};
constexpr const char* kEnergySource =
    "energy from rated power is 27 to 37 % off (Newkirk et al. 2025)";

bool sets_processors(const CapacityCandidate& candidate) {
  return candidate.set.is_mapping() &&
         std::ranges::any_of(candidate.set.entries(), [](const Node::Entry& entry) {
           const std::string& path = entry.key.scalar();
           return path.starts_with("processors") || path.starts_with("platform.processors");
         });
}

}  // namespace

const char* to_text(CandidateError::Basis basis) {
  constexpr std::array names{"of the plan", "fitted", "best case"};
  return names[static_cast<std::size_t>(basis)];
}

std::optional<Ratio> test_error_of(const Platform& platform) {
  std::optional<Ratio> most;
  for (const Provenance& it : platform.provenance) most = std::max(most, it.error_p95);
  return most;
}

CandidateError error_of(const CapacityPlan& plan, const CapacityCandidate& candidate,
                        const Platform& platform) {
  if (plan.error)
    return {CandidateError::Basis::of_the_plan, plan.error->time, plan.error->time,
            plan.error->energy, plan.error->source};
  const auto tested = sets_processors(candidate) ? std::nullopt : test_error_of(platform);
  if (tested && *tested < kWhole)
    return {CandidateError::Basis::fitted, *tested, *tested, kPublishedEnergy,
            fmt::format("95th percentile of the errors of the measurements that judged it; {}",
                        kEnergySource)};
  return {CandidateError::Basis::best_case, kSlowerThanBest, Ratio{}, kPublishedEnergy,
          fmt::format("nothing was fitted: such throughputs came out up to {} too high; {}",
                      to_text(kMostTooFast), kEnergySource)};
}

}  // namespace plimsoll
