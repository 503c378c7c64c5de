#include "report/capacity/capacity_json.hpp"

#include "report/capacity/capacity_words.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

namespace plimsoll {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kMicrosPerUnit = 1e6;

/// "misses targets" -> "misses_targets".
std::string as_key(std::string text) {
  std::ranges::replace(text, ' ', '_');
  return text;
}

void add_figures(const UnitFigures& it, const CapacityWorkload& workload, Json& object) {
  object["batch"] = it.batch;
  object["throughput_samples_per_s"] = samples_per_second(it.throughput);
  if (workload.tokens_per_sample)
    object["throughput_tokens_per_s"] =
        samples_per_second(it.throughput) * static_cast<double>(*workload.tokens_per_sample);
  object["headroom"] = as_fraction(it.headroom);
  if (it.energy_per_sample) object["energy_per_sample_j"] = in_joules(*it.energy_per_sample);
  if (it.average_power) object["average_w"] = in_watts(*it.average_power);
  if (it.power_limit) object["power_limit_w"] = in_watts(*it.power_limit);
  if (it.samples_per_charge) object["samples_per_charge"] = *it.samples_per_charge;
  if (it.mfu) object["mfu"] = *it.mfu;
}

Json deployment_json(const Deployment& it, const std::string& currency) {
  Json object{{"units", it.units}};
  if (it.units_at_worst) object["units_at_worst"] = *it.units_at_worst;
  object["processors"] = it.processors;
  object["throughput_samples_per_s"] = samples_per_second(it.throughput);
  if (it.seconds) object["run_s"] = *it.seconds;
  if (it.energy) object["run_kwh"] = in_kwh(*it.energy);
  const auto money = [&](const char* key, const std::optional<std::int64_t>& micros) {
    if (micros)
      object[key] = {{"amount", static_cast<double>(*micros) / kMicrosPerUnit},
                     {"currency", currency}};
  };
  money("run_cost", it.run_cost);
  if (it.is_electricity_unknown) object["electricity_unknown"] = true;
  money("purchase", it.purchase);
  money("purchase_at_worst", it.purchase_at_worst);
  money("cost_with_purchase", it.cost_with_purchase);
  return object;
}

class Writer {
 public:
  explicit Writer(const CapacityReport& report) : report_(report), plan_(report.plan) {}

  Json run() const {
    Json object{{"capacity", plan_.name}};
    if (!plan_.about.empty()) object["about"] = plan_.about;
    Json& platforms = object["platforms"] = Json::array();
    for (std::size_t c = 0; c < plan_.platforms.size(); ++c) platforms.push_back(platform_json(c));
    Json& answers = object["workloads"] = Json::array();
    for (const CapacityAnswer& answer : report_.answers) answers.push_back(answer_json(answer));
    object["assumptions"] = assumptions(report_);
    object["error"] = error_json(*std::ranges::max_element(
        report_.errors, {}, [](const CandidateError& it) { return it.slower; }));
    return object;
  }

 private:
  /// `time` is the wider of its two sides.
  [[nodiscard]] static Json error_json(const CandidateError& it) {
    return {{"time", as_fraction(std::max(it.slower, it.faster))},
            {"slower", as_fraction(it.slower)},
            {"faster", as_fraction(it.faster)},
            {"energy", as_fraction(it.energy)},
            {"source", it.source},
            {"basis", as_key(to_text(it.basis))},
            {"of_the_plan", it.basis == CandidateError::Basis::of_the_plan}};
  }

  [[nodiscard]] Json platform_json(std::size_t candidate) const {
    const CapacityCandidate& it = plan_.platforms[candidate];
    Json object{{"name", it.name}};
    if (const auto origin = origin_of(it)) object["from"] = *origin;
    if (it.set.is_mapping())
      for (const auto& [path, value] : it.set.entries())
        object["set"][path.scalar()] = as_written(value);
    if (const Platform* platform = platform_of(plan_, candidate))
      object["worst_quality"] = to_text(worst_quality(it, *platform));
    object["error"] = error_json(report_.errors[candidate]);
    return object;
  }

  [[nodiscard]] Json answer_json(const CapacityAnswer& answer) const {
    const CapacityWorkload& workload = plan_.workloads[answer.workload];
    Json object{
        {"name", workload.name}, {"workload", answer.title}, {"targets", target_phrases(workload)}};
    Json& configurations = object["configurations"] = Json::array();
    for (const Configuration& it : answer.configurations)
      configurations.push_back(configuration_json(it, workload));
    Json& axes = object["front_axes"] = Json::array();
    for (const Axis axis : answer.axes) axes.push_back(to_text(axis));
    Json& insights = object["insights"] = Json::array();
    for (const Insight& it : answer.insights)
      insights.push_back(insight_json(it, answer, workload));
    object["provenance"] = {{"worst_quality", to_text(answer.worst_quality)}};
    return object;
  }

  [[nodiscard]] Json configuration_json(const Configuration& it,
                                        const CapacityWorkload& workload) const {
    Json object{{"platform", plan_.platforms[it.candidate].name}, {"policy", it.policy}};
    if (!it.parameters.empty()) object["policy_parameters"] = it.parameters;
    if (it.axes) object["parallel"] = axes_json(*it.axes);
    object["verdict"] = as_key(to_text(it.verdict));
    if (!it.reasons.empty()) object["reasons"] = it.reasons;
    if (it.largest_batch) {
      object["largest_batch"] = *it.largest_batch;
      object["largest_batch_limited_by_plan"] = it.is_limited_by_plan;
    }
    if (!it.holes.empty()) object["batches_that_do_not_hold"] = it.holes;
    if (it.is_search_cut_short) object["search_cut_short"] = true;
    if (it.figures) add_figures(*it.figures, workload, object["unit"]);
    if (it.deployment) object["deployment"] = deployment_json(*it.deployment, plan_.currency);
    if (it.sending) {
      Json& sending = object["sending"] = {{"sample_s", in_seconds(it.sending->time)}};
      if (it.sending->energy) sending["sample_j"] = in_joules(*it.sending->energy);
      if (it.sending->epochs_at_par) sending["epochs_at_par"] = *it.sending->epochs_at_par;
    }
    object["on_front"] = it.is_on_front;
    if (it.axes) object["divisions"] = divisions_json(it, workload);
    return object;
  }

  static Json axes_json(const Split::Axes& axes) {
    Json object = Json::object();
    for (const auto& [axis, size] : axes) object[axis] = size;
    return object;
  }

  static Json divisions_json(const Configuration& it, const CapacityWorkload& workload) {
    Json all = Json::array();
    for (const TriedSplit& split : it.splits) {
      Json object{{"parallel", axes_json(split.axes)}, {"verdict", as_key(to_text(split.verdict))}};
      if (!split.why.empty()) object["reason"] = split.why;
      if (split.figures) add_figures(*split.figures, workload, object["unit"]);
      all.push_back(std::move(object));
    }
    return all;
  }

  [[nodiscard]] Json insight_json(const Insight& insight, const CapacityAnswer& answer,
                                  const CapacityWorkload& workload) const {
    const Configuration& base = answer.configurations[insight.configuration];
    Json object{{"platform", plan_.platforms[base.candidate].name}, {"policy", base.policy}};
    if (!base.parameters.empty()) object["policy_parameters"] = base.parameters;
    if (insight.bottleneck) object["bottleneck"] = as_key(to_text(*insight.bottleneck));
    Json& changes = object["sensitivities"] = Json::array();
    for (const Sensitivity& it : insight.sensitivities) {
      Json change{{"change", it.change}, {"part", as_key(to_text(it.part))}};
      if (it.figures) change["policy"] = it.policy;
      if (it.gain) change["throughput_gain"] = *it.gain;
      if (it.largest_batch) change["largest_batch"] = *it.largest_batch;
      if (it.figures) add_figures(*it.figures, workload, change["unit"]);
      changes.push_back(std::move(change));
    }
    return object;
  }

  const CapacityReport& report_;
  const CapacityPlan& plan_;
};

}  // namespace

std::string capacity_json(const CapacityReport& report) {
  // Names of files may hold any bytes.
  return Writer(report).run().dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace plimsoll
