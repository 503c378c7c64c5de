#include "report/capacity_text.hpp"

#include "report/capacity_words.hpp"
#include "report/text_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

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

class AnswerText {
 public:
  AnswerText(const CapacityReport& report, const CapacityAnswer& answer, const Style& style)
      : plan_(report.plan),
        workload_(report.plan.workloads[answer.workload]),
        answer_(answer),
        style_(style) {}

  std::string run() {
    text_ += style_(Paint::bold, workload_.name) + "   " + answer_.title;
    if (const auto targets = target_phrases(workload_); !targets.empty())
      text_ += "\n  " + wrapped(fmt::format("{}", fmt::join(targets, "; ")), kReportWidth, 2);
    text_ += "\n\n";
    add_table();
    add_best();
    add_shortfalls();
    add_insights();
    return std::move(text_);
  }

 private:
  [[nodiscard]] const std::string& platform_of(const Configuration& it) const {
    return plan_.platforms[it.candidate].name;
  }
  /// "offload/greedy"; "pipeline/1f1b (2)" where a platform is tried with several of that name.
  [[nodiscard]] std::string policy_of(const Configuration& it) const {
    std::size_t same = 0, place = 0;
    for (const Configuration& other : answer_.configurations) {
      if (other.candidate != it.candidate || other.policy != it.policy) continue;
      ++same;
      if (&other == &it) place = same;
    }
    return same > 1 ? fmt::format("{} ({})", it.policy, place) : it.policy;
  }
  [[nodiscard]] std::string name_of(const Configuration& it) const {
    return fmt::format("{} with {}", platform_of(it), policy_of(it));
  }
  [[nodiscard]] bool any(auto has) const {
    return std::ranges::any_of(answer_.configurations, has);
  }

  /// A column that only some plans need.
  struct Extra {
    Column column;
    std::function<std::string(const Configuration&)> text;  ///< of one that runs
  };

  [[nodiscard]] std::vector<Extra> extras() const {
    const auto right = [](const char* header, int dispensable) {
      return Column{header, Column::Align::right, dispensable};
    };
    std::vector<Extra> all;
    const auto add = [&](Column column, auto value_of, auto text_of) {
      if (!any([&](const Configuration& it) { return it.figures && value_of(it); })) return;
      all.push_back({std::move(column), [value_of, text_of](const Configuration& it) {
                       const auto value = value_of(it);
                       return value ? text_of(*value) : std::string("-");
                     }});
    };
    const auto priced = [this](std::int64_t micros) { return money_text(micros, plan_.currency); };
    add(
        right("time", 0), [](const auto& it) { return it.deployment->seconds; }, long_time);
    add(
        right("energy", 2), [](const auto& it) { return it.deployment->energy; }, hours_text);
    add(
        right("a sample", 0), [](const auto& it) { return it.figures->energy_per_sample; },
        [](Energy energy) { return to_text(energy); });
    add(
        right("a charge", 0), [](const auto& it) { return it.figures->samples_per_charge; },
        thousands);
    add(
        right("cost", 0), [](const auto& it) { return it.deployment->run_cost; }, priced);
    add(
        right("to buy", 1), [](const auto& it) { return it.deployment->purchase; }, priced);
    return all;
  }

  void add_table() {
    const char* rate = workload_.tokens_per_sample ? "tokens/s" : "samples/s";
    std::vector<Column> columns{{""}, {"platform"}, {"policy"}};
    for (const char* header : {"batch", rate, "units", "free"})
      columns.push_back({header, Column::Align::right});
    const std::vector<Extra> more = extras();
    for (const Extra& it : more) columns.push_back(it.column);
    TextTable table(columns);
    for (const Configuration& it : answer_.configurations) {
      if (it.verdict == Verdict::does_not_apply) continue;
      std::vector<Cell> row = common_cells(it);
      for (const Extra& extra : more) row.push_back({it.figures ? extra.text(it) : "-"});
      table.add(std::move(row));
    }
    if (table.is_empty()) return;
    text_ += table.text(style_);
    add_legend();
  }

  void add_legend() {
    text_ += "\n  " +
             wrapped(
                 "batch: the fastest of the largest that holds (+: the plan allows no larger); "
                 "rate of one unit; units for the targets (to: where each is as slow as the "
                 "error band allows); free: of memory, at the peak; the rest: of the whole run "
                 "on all units, a sample, a charge",
                 kReportWidth, 2) +
             "\n";
    if (!answer_.axes.empty())
      text_ +=
          "  *: on the front: none is better in one of " + axes_text() + " and as good in all\n";
    for (const Configuration& it : answer_.configurations)
      if (policy_of(it) != it.policy)
        text_ += "  " +
                 wrapped(fmt::format("{}: {}", name_of(it), it.parameters), kReportWidth, 4) + "\n";
    text_ += '\n';
  }

  [[nodiscard]] std::vector<Cell> common_cells(const Configuration& it) const {
    const char* mark = it.is_on_front ? "*" : it.verdict == Verdict::feasible ? "" : "no";
    std::vector<Cell> row{{mark, it.is_on_front ? Paint::good : Paint::bad},
                          {platform_of(it)},
                          {policy_of(it)},
                          {batch_text(it)}};
    if (!it.figures) {
      row.insert(row.end(), 3, {"-"});
      return row;
    }
    const double rate = samples_per_second(it.figures->throughput) *
                        static_cast<double>(workload_.tokens_per_sample.value_or(1));
    row.push_back({decimal(rate)});
    row.push_back({units_text(*it.deployment)});
    row.push_back({percent(as_fraction(it.figures->headroom))});
    return row;
  }

  [[nodiscard]] std::string amount(const std::optional<std::int64_t>& micros) const {
    return micros ? money_text(*micros, plan_.currency) : "-";
  }

  [[nodiscard]] std::string axes_text() const {
    std::vector<std::string> names;
    for (const Axis axis : answer_.axes) names.emplace_back(to_text(axis));
    return fmt::format("{}", fmt::join(names, ", "));
  }

  /// Who is best on each axis of the front.
  void add_best() {
    if (answer_.axes.empty()) {
      text_ += style_(Paint::bad, "  Nothing carries it.") + "\n";
      return;
    }
    for (const Axis axis : answer_.axes) {
      const Configuration* best = nullptr;
      for (const Configuration& it : answer_.configurations)
        if (it.is_on_front && (best == nullptr || is_better(axis, it, *best))) best = &it;
      if (best == nullptr) continue;
      text_ +=
          "  " +
          wrapped(fmt::format("{}: {}, {}", superlative(axis), name_of(*best), figure(axis, *best)),
                  kReportWidth, 4) +
          "\n";
    }
  }

  static bool is_better(Axis axis, const Configuration& a, const Configuration& b) {
    switch (axis) {
      case Axis::throughput:
        return a.deployment->throughput > b.deployment->throughput;
      case Axis::cost:
        return a.deployment->run_cost < b.deployment->run_cost;
      case Axis::energy:
        return a.figures->energy_per_sample < b.figures->energy_per_sample;
      case Axis::headroom:
        return a.figures->headroom > b.figures->headroom;
    }
    return false;
  }

  static const char* superlative(Axis axis) {
    constexpr std::array names{"fastest", "cheapest", "least energy", "most memory free"};
    return names[static_cast<std::size_t>(axis)];
  }

  [[nodiscard]] std::string figure(Axis axis, const Configuration& it) const {
    switch (axis) {
      case Axis::throughput:
        return fmt::format("{} samples/s with {}",
                           decimal(samples_per_second(it.deployment->throughput)),
                           counted(static_cast<std::size_t>(it.deployment->units), "unit"));
      case Axis::cost:
        return amount(it.deployment->run_cost) + " for the run";
      case Axis::energy:
        return to_text(*it.figures->energy_per_sample) + " a sample";
      case Axis::headroom:
        return percent(as_fraction(it.figures->headroom));
    }
    return {};
  }

  /// Policies of one platform that have the same in their way are told together.
  void add_shortfalls() {
    std::string lines;
    const auto& all = answer_.configurations;
    for (auto it = all.begin(); it != all.end();) {
      const auto same = [&](const Configuration& other) {
        return other.candidate == it->candidate && other.verdict == it->verdict &&
               shortfalls(other) == shortfalls(*it);
      };
      const auto end = std::find_if_not(it, all.end(), same);
      if (const auto reasons = shortfalls(*it); !reasons.empty()) {
        std::vector<std::string> policies;
        for (auto each = it; each != end; ++each) policies.push_back(policy_of(*each));
        lines +=
            "  - " +
            wrapped(fmt::format("{} with {} {}: {}", platform_of(*it), fmt::join(policies, ", "),
                                to_text(it->verdict), fmt::join(reasons, "; ")),
                    kReportWidth, 4) +
            "\n";
      }
      it = end;
    }
    if (!lines.empty()) text_ += "\n  What is in the way:\n" + lines;
  }

  static std::vector<std::string> shortfalls(const Configuration& it) {
    std::vector<std::string> all = it.reasons;
    if (!it.holes.empty())
      all.push_back(fmt::format("batches of {} do not hold, although larger ones do",
                                fmt::join(it.holes, ", ")));
    return all;
  }

  void add_insights() {
    if (answer_.insights.empty()) return;
    text_ += "\n  What would move it (each change was run, policy and batch chosen anew):\n";
    for (const Insight& insight : answer_.insights) {
      const Configuration& it = answer_.configurations[insight.configuration];
      text_ +=
          "  - " +
          wrapped(fmt::format("{}: {}", name_of(it), insight_text(insight, it)), kReportWidth, 4) +
          "\n";
    }
  }

  static std::string insight_text(const Insight& insight, const Configuration& base) {
    constexpr double kWorthTelling = 0.005;
    std::vector<const Sensitivity*> shown;
    for (const Sensitivity& it : insight.sensitivities)
      if (it.gain ? std::fabs(*it.gain) >= kWorthTelling : it.figures || base.figures)
        shown.push_back(&it);
    std::ranges::stable_sort(shown, [](const auto* a, const auto* b) {
      return a->gain.value_or(0) > b->gain.value_or(0);
    });
    std::vector<std::string> parts;
    for (const Sensitivity* it : shown) parts.push_back(sensitivity_text(*it, base));
    std::vector<std::string> others;
    for (const Sensitivity& it : insight.sensitivities)
      if (std::ranges::find(shown, &it) == shown.end()) others.push_back(it.change);
    if (!others.empty()) parts.push_back(fmt::format("no difference: {}", fmt::join(others, ", ")));
    return fmt::format("{}. {}", bound_text(insight, base), fmt::join(parts, "; "));
  }

  static std::string bound_text(const Insight& insight, const Configuration& base) {
    if (!base.figures) return "does not fit";
    if (insight.bottleneck) return fmt::format("held back by {}", to_text(*insight.bottleneck));
    return "held back by nothing that was tried";
  }

  static std::string sensitivity_text(const Sensitivity& it, const Configuration& base) {
    if (!it.figures) return fmt::format("{}: does not fit", it.change);
    const std::string batch = fmt::format("batch {}", thousands(it.figures->batch));
    if (!it.gain)
      return fmt::format("{}: `{}` carries {} samples/s ({})", it.change, it.policy,
                         decimal(samples_per_second(it.figures->throughput)), batch);
    std::vector<std::string> other;
    if (it.policy != base.policy) other.push_back(fmt::format("with `{}`", it.policy));
    if (it.figures->batch != base.figures->batch) other.push_back(batch);
    return fmt::format("{}: {}{} throughput{}", it.change, *it.gain < 0 ? "" : "+",
                       percent(*it.gain),
                       other.empty() ? "" : fmt::format(" ({})", fmt::join(other, ", ")));
  }

  const CapacityPlan& plan_;
  const CapacityWorkload& workload_;
  const CapacityAnswer& answer_;
  const Style& style_;
  std::string text_;
};

}  // namespace

std::string capacity_text(const CapacityReport& report, const Style& style) {
  const CapacityPlan& plan = report.plan;
  std::string text = style(Paint::bold, plan.name) + "   " +
                     counted(plan.workloads.size(), "workload") + ", " +
                     counted(plan.platforms.size(), "platform") + "\n";
  if (!plan.about.empty()) text += wrapped(plan.about, kReportWidth, 0) + "\n";
  Quality worst = Quality::measured;
  for (const CapacityAnswer& answer : report.answers) {
    text += "\n" + AnswerText(report, answer, style).run();
    worst = std::max(worst, answer.worst_quality);
  }
  text += "\nWhat all of this rests on:\n";
  for (const std::string& it : assumptions(report))
    text += "- " + wrapped(it, kReportWidth, 2) + "\n";
  text += "- " +
          wrapped(fmt::format("`{}` is the worst quality among the platforms' numbers "
                              "(`plimsoll list platforms NAME` gives each with its source)",
                              to_text(worst)),
                  kReportWidth, 2) +
          "\n";
  text += "- " + wrapped("error band: " + error_sentence(report), kReportWidth, 2) + "\n";
  return text;
}

}  // namespace plimsoll
