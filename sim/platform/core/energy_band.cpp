#include "platform/core/energy_band.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace plimsoll {

namespace {

constexpr std::array<std::string_view, 5> kKeys{".power", ".energy", ".compute", ".efficiency",
                                                ".operating_point"};
constexpr std::array<std::string_view, 4> kParts{"processors", "memories", "links", "cluster"};

/// Whether a number of this path moves an energy; one of a whole component may.
bool moves_energy(std::string_view path) {
  if (path.starts_with("energy.regulator_efficiency")) return true;
  const auto is_start = [&](std::string_view part) { return path.starts_with(part); };
  if (std::ranges::none_of(kParts, is_start)) return false;
  const auto is_within = [&](std::string_view key) {
    return path.find(key) != std::string_view::npos;
  };
  return std::ranges::count(path, '.') <= 1 || std::ranges::any_of(kKeys, is_within);
}

bool is_fitted(const Platform& platform) {
  return std::ranges::any_of(platform.processors, &Processor::draws_by_operator);
}

}  // namespace

EnergyBand energy_band(const Platform& platform) {
  Quality worst = Quality::measured;
  for (const Provenance& it : platform.provenance)
    if (moves_energy(it.path)) worst = std::max(worst, it.quality);
  if (std::ranges::any_of(platform.without_provenance, moves_energy)) worst = Quality::estimate;
  if (worst != Quality::measured) return {worst, 0.5, 2};
  constexpr double kOfBoard = 0.1, kFitted = 0.15;
  const double band = is_fitted(platform) ? kFitted : kOfBoard;
  return {worst, 1 - band, 1 + band};
}

}  // namespace plimsoll
