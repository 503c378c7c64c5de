#include "report/capacity/capacity_answer.hpp"

#include "report/capacity/capacity_divisions.hpp"
#include "report/capacity/capacity_words.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace plimsoll {

namespace {

std::string batch_text(const Configuration& it) {
  if (!it.figures) return "-";
  const std::string largest = thousands(*it.largest_batch) + (it.is_limited_by_plan ? "+" : "");
  return fmt::format("{} of {}", thousands(it.figures->batch), largest);
}

/// "2", or "2 to 3" where the error band asks for more.
std::string units_text(const Deployment& it) {
  if (!it.units_at_worst || *it.units_at_worst == it.units) return thousands(it.units);
  return fmt::format("{} to {}", thousands(it.units), thousands(*it.units_at_worst));
}

/// "50.00 EUR", or "50.00 to 75.00 EUR" where the error band asks for more.
std::string purchase_text(const Deployment& it, const std::string& currency) {
  const std::string least = money_text(*it.purchase, currency);
  if (!it.purchase_at_worst || *it.purchase_at_worst == *it.purchase) return least;
  return fmt::format("{} to {}", amount_text(*it.purchase),
                     money_text(*it.purchase_at_worst, currency));
}

bool is_better(Axis axis, const Configuration& a, const Configuration& b) {
  switch (axis) {
    case Axis::throughput:
      return a.figures->throughput > b.figures->throughput;
    case Axis::cost:
      return a.deployment->run_cost < b.deployment->run_cost;
    case Axis::energy:
      return a.figures->energy_per_sample < b.figures->energy_per_sample;
    case Axis::headroom:
      return a.figures->headroom > b.figures->headroom;
  }
  return false;
}

const char* superlative(Axis axis) {
  constexpr std::array names{"fastest", "cheapest to run", "least energy", "most memory free"};
  return names[static_cast<std::size_t>(axis)];
}

std::vector<std::string> shortfalls_of(const Configuration& it) {
  std::vector<std::string> all = it.reasons;
  if (!it.holes.empty())
    all.push_back(fmt::format("batches of {} do not hold, although larger ones do",
                              fmt::join(it.holes, ", ")));
  if (it.is_search_cut_short)
    all.emplace_back("not all batches were tried: one of the others may be the largest that holds");
  return all;
}

std::string insight_text(const Insight& insight, const Configuration& base) {
  std::vector<const Sensitivity*> shown;
  std::vector<std::string> others;
  for (const Sensitivity& it : insight.sensitivities) {
    if (CapacityWords::is_noticeable(it, base))
      shown.push_back(&it);
    else
      others.push_back(it.change);
  }
  std::ranges::stable_sort(shown, [](const auto* a, const auto* b) {
    return a->gain.value_or(0) > b->gain.value_or(0);
  });
  std::vector<std::string> parts;
  for (const Sensitivity* it : shown)
    parts.push_back(fmt::format("{}: {}", it->change, CapacityWords::effect_of(*it, base)));
  if (!others.empty()) parts.push_back(fmt::format("no difference: {}", fmt::join(others, ", ")));
  return fmt::format("{}. {}", CapacityWords::bound_of(insight, base), fmt::join(parts, "; "));
}

}  // namespace

std::string CapacityWords::policy_of(const Configuration& it) const {
  std::size_t same = 0, place = 0;
  for (const Configuration& other : answer_.configurations) {
    if (other.candidate != it.candidate || other.policy != it.policy) continue;
    ++same;
    if (&other == &it) place = same;
  }
  return same > 1 ? fmt::format("{} ({})", it.policy, place) : it.policy;
}

std::string CapacityWords::name_of(const Configuration& it) const {
  return fmt::format("{} with {}", platform_of(it), policy_of(it));
}

std::string CapacityWords::names_of(std::span<const Configuration* const> some) const {
  struct Group {
    std::vector<std::string> platforms, policies;
  };
  std::vector<Group> groups;
  for (const Configuration* it : some) {
    if (groups.empty() || groups.back().platforms.front() != platform_of(*it))
      groups.push_back({{platform_of(*it)}, {}});
    groups.back().policies.push_back(policy_of(*it));
  }
  std::vector<Group> joined;
  for (Group& group : groups) {
    const auto same = std::ranges::find(joined, group.policies, &Group::policies);
    if (same == joined.end())
      joined.push_back(std::move(group));
    else
      same->platforms.push_back(std::move(group.platforms.front()));
  }
  std::vector<std::string> parts;
  for (const Group& group : joined)
    parts.push_back(fmt::format("{} with {}", fmt::join(group.platforms, ", "),
                                fmt::join(group.policies, ", ")));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<CapacityWords::Extra> CapacityWords::extras() const {
  std::vector<Extra> all;
  const auto add = [&](const char* header, auto value_of, auto text_of) {
    const bool any = std::ranges::any_of(answer_.configurations, [&](const Configuration& it) {
      return it.figures && value_of(it);
    });
    if (!any) return;
    all.push_back(
        {Column{header, Column::Align::right}, [value_of, text_of](const Configuration& it) {
           const auto value = value_of(it);
           return value ? text_of(*value) : std::string("-");
         }});
  };
  const auto priced = [this](std::int64_t micros) { return money_text(micros, plan_.currency); };
  add(
      "divided by", [](const auto& it) { return it.axes; },
      [](const Split::Axes& axes) { return to_text(axes); });
  add(
      "MFU", [](const auto& it) { return it.figures->mfu; },
      [](double mfu) { return percent(mfu); });
  add(
      "time", [](const auto& it) { return it.deployment->seconds; }, long_time);
  add(
      "a sample", [](const auto& it) { return it.figures->energy_per_sample; },
      [](Energy energy) { return to_text(energy); });
  add(
      "a charge", [](const auto& it) { return it.figures->samples_per_charge; }, thousands);
  add(
      "cost", [](const auto& it) { return it.deployment->run_cost; }, priced);
  add(
      "energy", [](const auto& it) { return it.deployment->energy; }, hours_text);
  add(
      "to buy",
      [](const auto& it) { return it.deployment->purchase ? it.deployment : std::nullopt; },
      [this](const Deployment& it) { return purchase_text(it, plan_.currency); });
  return all;
}

CapacityTable CapacityWords::table() const {
  const char* rate = workload_.tokens_per_sample ? "tokens/s" : "samples/s";
  CapacityTable table;
  table.columns = {{""}, {"platform"}, {"policy"}};
  for (const char* header : {"batch", rate, "units", "free"})
    table.columns.push_back({header, Column::Align::right});
  const std::vector<Extra> more = extras();
  for (const Extra& it : more) table.columns.push_back(it.column);
  for (const Configuration& it : answer_.configurations) {
    if (it.verdict == Verdict::does_not_apply) continue;
    std::vector<std::string> row = common_cells(it);
    for (const Extra& extra : more) row.push_back(it.figures ? extra.text(it) : "-");
    table.rows.push_back(std::move(row));
    table.configurations.push_back(&it);
  }
  return table;
}

std::vector<std::string> CapacityWords::common_cells(const Configuration& it) const {
  const char* mark = it.is_on_front                    ? "*"
                     : it.verdict == Verdict::feasible ? ""
                     : it.verdict == Verdict::at_risk  ? "risk"
                                                       : "no";
  std::vector<std::string> row{mark, platform_of(it), policy_of(it), batch_text(it)};
  if (!it.figures) {
    row.insert(row.end(), 3, "-");
    return row;
  }
  row.push_back(decimal(samples_per_second(it.figures->throughput) *
                        static_cast<double>(workload_.tokens_per_sample.value_or(1))));
  row.push_back(units_text(*it.deployment));
  row.push_back(percent(as_fraction(it.figures->headroom)));
  return row;
}

std::vector<std::string> CapacityWords::legend() const {
  std::vector<std::string> lines{
      "batch: the fastest of the largest that holds (+: the plan allows no larger); rate of one "
      "unit; units for the targets, and what they cost to buy (to: where each is as slow as the "
      "error band allows); free: of memory, at the peak; the rest: of the whole run on the fewer "
      "units, a sample, a charge"};
  std::vector<std::string> axes;
  for (const Axis axis : answer_.axes) axes.emplace_back(axis_text(axis));
  if (!axes.empty())
    lines.push_back(fmt::format("*: on the front: none is better in one of {} and as good in all",
                                fmt::join(axes, ", ")));
  if (is_any_at_risk())
    lines.emplace_back(
        "risk: there are enough units, but not where each is as slow as the error band allows");
  const auto names = [this](std::span<const Configuration* const> some) { return names_of(some); };
  std::ranges::move(division_lines(answer_.configurations, names), std::back_inserter(lines));
  for (const Configuration& it : answer_.configurations)
    if (policy_of(it) != it.policy)
      lines.push_back(fmt::format("{}: {}", name_of(it), it.parameters));
  return lines;
}

std::string CapacityWords::figure(Axis axis, const Configuration& it) const {
  switch (axis) {
    case Axis::throughput:
      return decimal(samples_per_second(it.figures->throughput)) + " samples/s a unit";
    case Axis::cost:
      return money_text(*it.deployment->run_cost, plan_.currency) + " for the run" +
             (it.deployment->is_electricity_unknown ? " without electricity" : "");
    case Axis::energy:
      return to_text(*it.figures->energy_per_sample) + " a sample";
    case Axis::headroom:
      return percent(as_fraction(it.figures->headroom));
  }
  return {};
}

std::vector<std::string> CapacityWords::best() const {
  std::vector<std::string> lines;
  for (const Axis axis : answer_.axes) {
    const Configuration* best = nullptr;
    for (const Configuration& it : answer_.configurations)
      if (it.is_on_front && (best == nullptr || is_better(axis, it, *best))) best = &it;
    if (best != nullptr)
      lines.push_back(
          fmt::format("{}: {}, {}", superlative(axis), name_of(*best), figure(axis, *best)));
  }
  if (const Configuration* best = cheapest_with_purchase())
    lines.push_back(fmt::format("cheapest with what it costs to buy: {}, {}", name_of(*best),
                                money_text(*best->deployment->cost_with_purchase, plan_.currency)));
  return lines;
}

bool CapacityWords::is_any_at_risk() const {
  return std::ranges::any_of(answer_.configurations, [](const Configuration& it) {
    return it.verdict == Verdict::at_risk;
  });
}

std::string CapacityWords::nothing_carries_it() const {
  return is_any_at_risk() ? "Nothing carries it for certain: see those at risk."
                          : "Nothing carries it.";
}

const Configuration* CapacityWords::cheapest_with_purchase() const {
  const Configuration* best = nullptr;
  bool is_any_bought = false;
  for (const Configuration& it : answer_.configurations) {
    if (it.verdict != Verdict::feasible) continue;
    const auto& cost = it.deployment->cost_with_purchase;
    if (!cost) return nullptr;
    is_any_bought = is_any_bought || it.deployment->purchase;
    if (best == nullptr || *cost < *best->deployment->cost_with_purchase) best = &it;
  }
  return is_any_bought ? best : nullptr;
}

std::vector<std::string> CapacityWords::shortfalls() const {
  struct Obstacle {
    Verdict verdict;
    std::vector<std::string> reasons;
    std::vector<const Configuration*> of;
  };
  std::vector<Obstacle> obstacles;
  for (const Configuration& it : answer_.configurations) {
    std::vector<std::string> reasons = shortfalls_of(it);
    if (reasons.empty()) continue;
    const auto same = std::ranges::find_if(obstacles, [&](const Obstacle& other) {
      return other.verdict == it.verdict && other.reasons == reasons;
    });
    if (same == obstacles.end())
      obstacles.push_back({it.verdict, std::move(reasons), {&it}});
    else
      same->of.push_back(&it);
  }
  std::vector<std::string> lines;
  for (const Obstacle& it : obstacles)
    lines.push_back(fmt::format("{} {}: {}", names_of(it.of), to_text(it.verdict),
                                fmt::join(it.reasons, "; ")));
  return lines;
}

std::vector<std::string> CapacityWords::insights() const {
  std::vector<std::string> lines;
  for (const Insight& insight : answer_.insights) {
    const Configuration& it = answer_.configurations[insight.configuration];
    lines.push_back(fmt::format("{}: {}", name_of(it), insight_text(insight, it)));
  }
  return lines;
}

std::vector<std::string> CapacityWords::sendings() const {
  std::vector<std::string> lines;
  for (const Configuration& it : answer_.configurations) {
    if (!it.sending) continue;
    std::string text =
        fmt::format("{}: sending {} to {} takes {}", name_of(it), to_text(workload_.send->bytes),
                    workload_.send->to.value, to_text(it.sending->time));
    text += it.sending->energy ? fmt::format(" and {}", to_text(*it.sending->energy))
                               : "; what that draws is not stated";
    if (it.sending->epochs_at_par)
      text +=
          fmt::format(", the energy of training on it {} times; {}",
                      decimal(*it.sending->epochs_at_par), cheaper_way(*it.sending->epochs_at_par));
    lines.push_back(std::move(text));
  }
  return lines;
}

std::string CapacityWords::cheaper_way(double epochs_at_par) const {
  if (!workload_.run)
    return epochs_at_par < 1 ? "sending is cheaper, however short the training"
                             : "up to so many epochs training here is cheaper";
  const std::int64_t epochs = workload_.run->epochs;
  return fmt::format("with {} {} is cheaper", counted(static_cast<std::size_t>(epochs), "epoch"),
                     static_cast<double>(epochs) < epochs_at_par ? "training here" : "sending");
}

std::string CapacityWords::how_it_was_measured() {
  return fmt::format(
      "each change was run, policy and batch chosen anew; under {:.0f} % is no difference",
      100 * kNoticeableGain);
}

std::string CapacityWords::bound_of(const Insight& insight, const Configuration& base) {
  if (!base.figures) return "does not fit";
  if (insight.bottleneck) return fmt::format("held back by {}", to_text(*insight.bottleneck));
  return "held back by nothing that was tried";
}

bool CapacityWords::is_noticeable(const Sensitivity& it, const Configuration& base) {
  return it.gain ? std::fabs(*it.gain) >= kNoticeableGain : it.figures || base.figures;
}

std::string CapacityWords::effect_of(const Sensitivity& it, const Configuration& base) {
  if (!is_noticeable(it, base)) return "no difference";
  if (!it.figures) return "does not fit";
  const std::string batch = fmt::format("batch {}", thousands(it.figures->batch));
  if (!it.gain)
    return fmt::format("`{}` carries {} samples/s ({})", it.policy,
                       decimal(samples_per_second(it.figures->throughput)), batch);
  std::vector<std::string> other;
  if (it.policy != base.policy) other.push_back(fmt::format("with `{}`", it.policy));
  if (it.figures->batch != base.figures->batch) other.push_back(batch);
  return fmt::format("{}{} throughput{}", *it.gain < 0 ? "" : "+", percent(*it.gain),
                     other.empty() ? "" : fmt::format(" ({})", fmt::join(other, ", ")));
}

}  // namespace plimsoll
