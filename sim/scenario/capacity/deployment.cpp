#include "scenario/capacity/deployment.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace plimsoll {

namespace {

__extension__ using Wide = __int128;

constexpr Wide kNano = 1'000'000'000;
constexpr Wide kPicosecondsInSecond = kNano * 1000;
constexpr Wide kSecondsInHour = 3600;
/// 3.6 MJ in zeptojoules.
constexpr Wide kZeptojoulesInKwh = Wide{3'600'000} * kNano * kNano * 1000;

Wide ceil_div(Wide a, Wide b) {
  return (a + b - 1) / b;
}

std::int64_t narrowed(Wide value) {
  return static_cast<std::int64_t>(
      std::min<Wide>(value, std::numeric_limits<std::int64_t>::max() - 1));
}

/// Nothing where it leaves the range.
std::optional<Wide> product(Wide a, Wide b) {
  Wide result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

/// `efficiency` of what several carry; one alone loses nothing.
std::int64_t units_for(SampleRate target, SampleRate one, Ratio efficiency) {
  if (one >= target) return 1;
  return narrowed(ceil_div(Wide{target.count()} * kWhole.count(),
                           std::max<Wide>(Wide{one.count()} * efficiency.count(), 1)));
}

SampleRate rate_of_share(SampleRate rate, Ratio share) {
  return SampleRate{narrowed(Wide{rate.count()} * share.count() / kWhole.count())};
}

SampleRate rate_of_units(SampleRate one, std::int64_t units, Ratio efficiency) {
  if (units == 1) return one;
  return SampleRate{narrowed(Wide{rate_of_share(one, efficiency).count()} * units)};
}

Wide samples_of(const TrainingRun& run) {
  return Wide{run.samples} * run.epochs;
}

/// Rent by the second and electricity, in millionths; without electricity where that is not known;
/// nothing without a price of what is, or where a sum leaves the range of numbers.
std::optional<std::int64_t> cost_of_run(const Deployment& it, const UnitPrice& price) {
  const bool has_electricity = price.kwh && !it.is_electricity_unknown;
  if ((!price.hour && !has_electricity) || !it.seconds) return std::nullopt;
  Wide micros = 0;
  if (price.hour) {
    const auto unit_seconds = product(it.units, *it.seconds);
    const auto rent = unit_seconds ? product(*unit_seconds, price.hour->micros) : std::nullopt;
    if (!rent) return std::nullopt;
    micros += ceil_div(*rent, kSecondsInHour);
  }
  if (has_electricity) {
    if (!it.energy) return std::nullopt;
    const auto electricity =
        product(it.energy->count() / kNano, price.kwh->micros);  // in nanojoule-millionths
    if (!electricity) return std::nullopt;
    micros += ceil_div(*electricity, kZeptojoulesInKwh / kNano);
  }
  if (micros > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
  return static_cast<std::int64_t>(micros);
}

/// Nothing where it leaves the range of numbers.
std::optional<std::int64_t> price_of(std::int64_t units, const Money& each) {
  const auto all = product(each.micros, units);
  return all ? std::optional(narrowed(*all)) : std::nullopt;
}

void add_run(Deployment& it, const UnitFigures& figures, const TrainingRun& run, Ratio efficiency) {
  const Wide samples = samples_of(run);
  it.seconds = narrowed(ceil_div(samples * kNano, it.throughput.count()));
  if (!figures.energy_per_sample) return;
  const auto all = product(figures.energy_per_sample->count(), samples);
  if (!all) return;
  // One alone exchanges nothing.
  const Ratio shared = it.units > 1 ? efficiency : kWhole;
  const auto scaled = product(*all / shared.count(), kWhole.count());
  const auto rest = product(*all % shared.count(), kWhole.count());
  if (scaled && rest) it.energy = Energy{*scaled + *rest / shared.count()};
}

/// A limit of the platform proves the target where no power is stated.
std::optional<std::string> missed_power(const UnitFigures& figures, Power target) {
  if (figures.average_power)
    return *figures.average_power <= target
               ? std::nullopt
               : std::optional(fmt::format("the average power of a unit is {}, the limit {}",
                                           to_text(*figures.average_power), to_text(target)));
  if (!figures.power_limit)
    return "the platform states no power, so the average power of a unit is not known";
  if (*figures.power_limit <= target) return std::nullopt;
  return fmt::format(
      "the platform states no power, and its power limit of {} does not prove the {} of the target",
      to_text(*figures.power_limit), to_text(target));
}

}  // namespace

std::optional<SampleRate> target_rate(const CapacityWorkload& workload) {
  const CapacityTargets& targets = workload.targets;
  Wide nano = 0;
  if (targets.throughput) nano = targets.throughput->count();
  if (targets.tokens_per_second)
    nano = std::max(
        nano, ceil_div(Wide{*targets.tokens_per_second} * kNano, *workload.tokens_per_sample));
  if (targets.deadline)
    nano = std::max(nano, ceil_div(samples_of(*workload.run) * kNano * kPicosecondsInSecond,
                                   targets.deadline->count()));
  if (nano == 0) return std::nullopt;
  return SampleRate{narrowed(nano)};
}

std::vector<std::string> missed_by_unit(const UnitFigures& figures,
                                        const CapacityTargets& targets) {
  std::vector<std::string> missed;
  if (targets.energy_per_sample && !figures.energy_per_sample)
    missed.emplace_back("the platform states no power, so the energy of a sample is not known");
  else if (targets.energy_per_sample && *figures.energy_per_sample > *targets.energy_per_sample)
    missed.push_back(fmt::format("the energy of a sample is {}, the limit {}",
                                 to_text(*figures.energy_per_sample),
                                 to_text(*targets.energy_per_sample)));
  if (targets.average_power)
    if (auto why = missed_power(figures, *targets.average_power)) missed.push_back(std::move(*why));
  if (targets.samples_per_charge) {
    if (!figures.samples_per_charge)
      missed.emplace_back("the platform has no battery, or states no power");
    else if (*figures.samples_per_charge < *targets.samples_per_charge)
      missed.push_back(fmt::format("one charge carries {} samples of {}",
                                   *figures.samples_per_charge, *targets.samples_per_charge));
  }
  return missed;
}

Deployment deploy(const UnitFigures& figures, std::int64_t processors,
                  const CapacityWorkload& workload, const CapacityCandidate& candidate,
                  const CapacityPlan& plan, const CandidateError& error) {
  Deployment it;
  const Ratio scaling = plan.scaling.efficiency;
  if (const auto target = target_rate(workload)) {
    it.units = units_for(*target, figures.throughput, scaling);
    it.units_at_worst =
        units_for(*target, rate_of_share(figures.throughput, kWhole - error.slower), scaling);
  }
  it.processors = narrowed(product(processors, it.units).value_or(0));
  it.throughput = rate_of_units(figures.throughput, it.units, scaling);
  if (workload.run) add_run(it, figures, *workload.run, scaling);
  it.is_electricity_unknown = candidate.price.kwh && !figures.energy_per_sample;
  it.run_cost = cost_of_run(it, candidate.price);
  if (candidate.price.device) {
    it.purchase = price_of(it.units, *candidate.price.device);
    if (it.units_at_worst)
      it.purchase_at_worst = price_of(*it.units_at_worst, *candidate.price.device);
  }
  if (it.purchase || it.run_cost)
    it.cost_with_purchase = narrowed(Wide{it.purchase.value_or(0)} + it.run_cost.value_or(0));
  return it;
}

}  // namespace plimsoll
