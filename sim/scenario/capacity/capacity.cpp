#include "scenario/capacity/capacity.hpp"

#include "platform/core/copy_energy.hpp"
#include "platform/core/home_memory.hpp"
#include "scenario/capacity/batch_search.hpp"
#include "scenario/capacity/deployment.hpp"
#include "scenario/capacity/platform_change.hpp"
#include "scenario/document/memo.hpp"
#include "scenario/run/checkpoint_copy.hpp"
#include "scenario/run/parallel.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// One configuration to be tried, on a platform as it is or changed.
struct Trial {
  std::size_t pairing = 0;
  std::size_t policy = 0;
  std::shared_ptr<const Scenario> scenario;  ///< shared by its policies
};

/// A change to be tried for an insight.
struct Probe {
  std::size_t answer = 0, insight = 0;
  Sensitivity sensitivity;
  Trial trial;
};

bool is_worth_more(const Configuration& a, const Configuration& b) {
  if (a.verdict != b.verdict) return a.verdict < b.verdict;
  return a.figures && b.figures && a.figures->throughput > b.figures->throughput;
}

/// The part of the platform that a what-if changes.
Part part_of(const WhatIf& what_if, const Platform& platform) {
  std::optional<Part> part;
  for (const auto& [path, value] : what_if.set) {
    Part its = Part::several;
    if (path.value.starts_with("links.")) its = Part::link;
    if (path.value.starts_with("processors.")) its = Part::compute;
    if (path.value.starts_with("memories.")) {
      const std::string rest = path.value.substr(std::string_view("memories.").size());
      const auto memory = platform.find_memory(rest.substr(0, rest.find('.')));
      const bool computes = memory && is_home(platform, *memory);
      const Part of_memory = rest.ends_with(".bandwidth") ? Part::memory_bandwidth : Part::memory;
      its = computes ? of_memory : Part::storage;
    }
    part = part && *part != its ? Part::several : its;
  }
  return part.value_or(Part::several);
}

Sending sending_of(const SendOption& send, const UnitFigures& figures, const Platform& platform) {
  const MemoryId to = *platform.find_memory(send.to.value);
  if (is_home(platform, to))
    refuse(send.to.where, fmt::format("`{}` is the memory of a processor", send.to.value),
           "expected a memory at the far end of a link");
  try {
    const PlayedCopy copy = play_copy_out(send.bytes, platform, ProcessorId{0}, to);
    Sending sending{.time = copy.time, .energy = {}, .epochs_at_par = {}};
    // What nobody states must not make sending free.
    const MemoryId from = platform[ProcessorId{0}].memory;
    if (states_copy_energy(platform, Topology(platform), from, to)) sending.energy = copy.energy;
    if (sending.energy && figures.energy_per_sample && *figures.energy_per_sample > Energy{})
      sending.epochs_at_par = in_joules(*sending.energy) / in_joules(*figures.energy_per_sample);
    return sending;
  } catch (const std::invalid_argument& problem) {
    refuse(send.to.where, problem.what());
  }
}

class Planning {
 public:
  Planning(CapacityPlan plan, unsigned jobs, const CapacityProgress& progress,
           std::int64_t limit_work)
      : options_{.jobs = jobs}, progress_(progress), limit_work_(limit_work) {
    report_.errors.resize(plan.platforms.size());
    for (const CapacityPairing& it : plan.pairings)
      report_.errors[it.candidate] =
          error_of(plan, plan.platforms[it.candidate], it.scenario.platform);
    report_.plan = std::move(plan);
  }

  CapacityReport run() {
    load();
    measure();
    for (CapacityAnswer& answer : report_.answers) find_front(answer);
    choose_insights();
    measure_probes();
    for (CapacityAnswer& answer : report_.answers)
      for (Insight& insight : answer.insights) find_bottleneck(insight);
    return std::move(report_);
  }

 private:
  [[nodiscard]] const CapacityWorkload& workload_of(const CapacityAnswer& answer) const {
    return report_.plan.workloads[answer.workload];
  }

  void load() {
    for (std::size_t w = 0; w < report_.plan.workloads.size(); ++w)
      report_.answers.push_back({.workload = w});
    for (const CapacityPairing& it : report_.plan.pairings) {
      CapacityAnswer& answer = report_.answers[it.workload];
      answer.title = it.scenario.workload_name;
      answer.worst_quality =
          std::max(answer.worst_quality,
                   worst_quality(report_.plan.platforms[it.candidate], it.scenario.platform));
    }
  }

  [[nodiscard]] const CapacityPairing& pairing_of(const Trial& trial) const {
    return report_.plan.pairings[trial.pairing];
  }

  [[nodiscard]] BatchSearch search(const Trial& trial) const {
    return search_batches(*trial.scenario, trial.scenario->policies[trial.policy],
                          report_.plan.workloads[pairing_of(trial).workload], *memo_, limit_work_);
  }

  [[nodiscard]] std::vector<BatchSearch> search_all(CapacityStage stage,
                                                    const std::vector<Trial>& trials) const {
    progress_(stage, 0, trials.size());
    return by_number<BatchSearch>(
        trials.size(), options_, [&](std::size_t i) { return search(trials[i]); },
        [&](std::size_t ended) { progress_(stage, ended, trials.size()); });
  }

  void measure() {
    std::vector<Trial> trials;
    const std::vector<CapacityPairing>& pairings = report_.plan.pairings;
    for (std::size_t p = 0; p < pairings.size(); ++p) {
      Scenario scenario = pairings[p].scenario;
      scenario.workload_key = scenario.platform_key = fmt::format("{}", p);
      const auto shared = std::make_shared<const Scenario>(std::move(scenario));
      for (std::size_t policy = 0; policy < shared->policies.size(); ++policy)
        trials.push_back({p, policy, shared});
    }
    const std::vector<BatchSearch> found = search_all(CapacityStage::configurations, trials);
    for (std::size_t i = 0; i < trials.size(); ++i) take(trials[i], found[i]);
  }

  /// Of the ways to divide a training the best is a configuration.
  void take(const Trial& trial, const BatchSearch& found) {
    const CapacityPairing& pairing = pairing_of(trial);
    std::vector<Configuration>& all = report_.answers[pairing.workload].configurations;
    std::vector<Trial>& origin = origin_[pairing.workload];
    Configuration it = configuration_of(pairing, trial.policy, found);
    const auto [place, is_new] =
        places_.try_emplace({pairing.workload, pairing.candidate, trial.policy}, all.size());
    if (is_new) {
      all.push_back(std::move(it));
      origin.push_back(trial);
      return;
    }
    Configuration& best = all[place->second];
    std::vector<TriedSplit> splits = std::move(best.splits);
    splits.insert(splits.end(), it.splits.begin(), it.splits.end());
    if (is_worth_more(it, best)) {
      best = std::move(it);
      origin[place->second] = trial;
    }
    best.splits = std::move(splits);
  }

  [[nodiscard]] Configuration configuration_of(const CapacityPairing& pairing, std::size_t policy,
                                               const BatchSearch& found) const {
    Configuration it = undivided(pairing, policy, found);
    if (pairing.split.parallel.is_null()) return it;
    it.axes = pairing.split.axes;
    it.splits = {{pairing.split.axes, it.verdict,
                  it.figures || it.reasons.empty() ? "" : it.reasons.front(), it.figures}};
    return it;
  }

  /// Without what it says of the division.
  [[nodiscard]] Configuration undivided(const CapacityPairing& pairing, std::size_t policy,
                                        const BatchSearch& found) const {
    const CapacityWorkload& workload = report_.plan.workloads[pairing.workload];
    const CapacityCandidate& candidate = report_.plan.platforms[pairing.candidate];
    Configuration it{.candidate = pairing.candidate};
    it.policy = policy_name(pairing.scenario.policies[policy]);
    it.parameters = found.parameters;
    it.is_limited_by_plan = found.is_limited_by_plan;
    const TriedBatch* best = best_of(found, workload.targets);
    if (best == nullptr) return refuse(std::move(it), found);
    it.largest_batch = found.largest()->batch;
    it.is_search_cut_short = found.is_cut_short;
    for (const TriedBatch& tried : found.tried)
      if (!tried.figures && tried.batch < *it.largest_batch) it.holes.push_back(tried.batch);
    it.figures = best->figures;
    it.deployment = deploy(*it.figures, best->processors, workload, candidate, report_.plan,
                           report_.errors[pairing.candidate]);
    if (workload.send)
      it.sending = sending_of(*workload.send, *it.figures, pairing.scenario.platform);
    it.reasons = missed_by_unit(*it.figures, workload.targets);
    if (candidate.count && it.deployment->units > *candidate.count)
      it.reasons.push_back(fmt::format("the targets ask for {} units; there {} {}",
                                       it.deployment->units, *candidate.count == 1 ? "is" : "are",
                                       *candidate.count));
    it.verdict = it.reasons.empty() ? Verdict::feasible : Verdict::misses_targets;
    if (it.verdict == Verdict::feasible && candidate.count &&
        it.deployment->units_at_worst.value_or(1) > *candidate.count) {
      it.verdict = Verdict::at_risk;
      it.reasons.push_back(fmt::format(
          "where each is as slow as the error band allows, the targets ask for {} "
          "units; there {} {}",
          *it.deployment->units_at_worst, *candidate.count == 1 ? "is" : "are", *candidate.count));
    }
    return it;
  }

  static Configuration refuse(Configuration it, const BatchSearch& found) {
    const TriedBatch& least = found.tried.front();
    const bool never = std::ranges::all_of(found.tried, &TriedBatch::is_refused);
    it.verdict = never ? Verdict::does_not_apply : Verdict::does_not_fit;
    it.reasons = {never ? least.why : fmt::format("at a batch of {}: {}", least.batch, least.why)};
    return it;
  }

  /// Whether it misses fewer targets, or as many and is faster.
  static bool is_better(const UnitFigures& a, const UnitFigures& b,
                        const CapacityTargets& targets) {
    const std::size_t missed = missed_by_unit(a, targets).size();
    const std::size_t by_other = missed_by_unit(b, targets).size();
    return missed != by_other ? missed < by_other : a.throughput > b.throughput;
  }

  /// The best batch; the smallest of equally good ones.
  static const TriedBatch* best_of(const BatchSearch& found, const CapacityTargets& targets) {
    const TriedBatch* best = nullptr;
    for (const TriedBatch& it : found.tried) {
      if (!it.figures || it.figures->throughput == SampleRate{}) continue;
      if (best == nullptr || is_better(*it.figures, *best->figures, targets)) best = &it;
    }
    return best;
  }

  // --- the front ---------------------------------------------------------------------------------

  /// Negative where `a` is better on this axis.
  static int compare(Axis axis, const Configuration& a, const Configuration& b) {
    const auto order = [](const auto& less_is_better, const auto& other) {
      return less_is_better < other ? -1 : other < less_is_better ? 1 : 0;
    };
    switch (axis) {
      case Axis::throughput:
        return order(b.figures->throughput, a.figures->throughput);
      case Axis::cost:
        return order(a.deployment->run_cost, b.deployment->run_cost);
      case Axis::energy:
        return order(a.figures->energy_per_sample, b.figures->energy_per_sample);
      case Axis::headroom:
        return order(b.figures->headroom, a.figures->headroom);
    }
    return 0;
  }

  /// Rent without electricity does not compare with rent and electricity.
  static bool has_cost_like(const Configuration& a, const Configuration& b) {
    return a.deployment->run_cost &&
           a.deployment->is_electricity_unknown == b.deployment->is_electricity_unknown;
  }

  static void find_front(CapacityAnswer& answer) {
    std::vector<Configuration*> feasible;
    for (Configuration& it : answer.configurations)
      if (it.verdict == Verdict::feasible) feasible.push_back(&it);
    if (feasible.empty()) return;
    const auto all = [&](auto has) { return std::ranges::all_of(feasible, has); };
    answer.axes = {Axis::throughput};
    if (all([&](const auto* it) { return has_cost_like(*it, *feasible.front()); }))
      answer.axes.push_back(Axis::cost);
    if (all([](const auto* it) { return it->figures->energy_per_sample.has_value(); }))
      answer.axes.push_back(Axis::energy);
    answer.axes.push_back(Axis::headroom);
    for (Configuration* it : feasible)
      it->is_on_front = std::ranges::none_of(feasible, [&](const Configuration* other) {
        return dominates(answer.axes, *other, *it);
      });
  }

  static bool dominates(const std::vector<Axis>& axes, const Configuration& a,
                        const Configuration& b) {
    const auto is = [&](int sign) {
      return [&, sign](Axis axis) { return compare(axis, a, b) * sign > 0; };
    };
    return std::ranges::none_of(axes, is(1)) && std::ranges::any_of(axes, is(-1));
  }

  // --- what would move it ------------------------------------------------------------------------

  void choose_insights() {
    for (std::size_t a = 0; a < report_.answers.size(); ++a) {
      CapacityAnswer& answer = report_.answers[a];
      for (std::size_t c = 0; c < report_.plan.platforms.size(); ++c) {
        std::optional<std::size_t> best;
        for (std::size_t i = 0; i < answer.configurations.size(); ++i) {
          const Configuration& it = answer.configurations[i];
          if (it.candidate != c || it.verdict == Verdict::does_not_apply) continue;
          if (!best || is_worth_more(it, answer.configurations[*best])) best = i;
        }
        if (!best) continue;
        answer.insights.push_back({.configuration = *best});
        add_probes(a, origin_[a][*best]);
      }
    }
  }

  void add_probes(std::size_t a, const Trial& trial) {
    for (const PlatformChange change : platform_changes()) {
      Scenario changed = *trial.scenario;
      if (const auto how = apply(change, changed.platform))
        add_probe(a, *how, plimsoll::part_of(change), trial, std::move(changed));
    }
    for (const WhatIf& what_if : report_.plan.what_if) {
      const Part part = part_of(what_if, trial.scenario->platform);
      try {
        Scenario changed = changed_scenario(report_.plan, pairing_of(trial), what_if);
        // It may set a part of the workload as well.
        changed.workload_key = fmt::format("{} {}", trial.pairing, probes_.size());
        add_probe(a, what_if.name, part, trial, std::move(changed));
      } catch (const InputError&) {
        // This candidate has nothing of the kind; another one has (pairings_of).
      }
    }
  }

  /// For the latest insight of an answer.
  void add_probe(std::size_t a, const std::string& change, Part part, const Trial& trial,
                 Scenario scenario) {
    Probe& probe = probes_.emplace_back();
    probe.answer = a;
    probe.insight = report_.answers[a].insights.size() - 1;
    probe.sensitivity.change = change;
    probe.sensitivity.part = part;
    scenario.platform_key = fmt::format("{} {}", trial.pairing, probes_.size());
    probe.trial = {trial.pairing, trial.policy,
                   std::make_shared<const Scenario>(std::move(scenario))};
  }

  void measure_probes() {
    for (const Probe& it : probes_)
      report_.answers[it.answer].insights[it.insight].sensitivities.push_back(it.sensitivity);
    std::vector<Trial> trials;
    std::vector<std::size_t> probe_of;  // by trial
    for (std::size_t p = 0; p < probes_.size(); ++p)
      for (std::size_t policy = 0; policy < probes_[p].trial.scenario->policies.size(); ++policy) {
        trials.push_back(probes_[p].trial);
        trials.back().policy = policy;
        probe_of.push_back(p);
      }
    const std::vector<BatchSearch> found = search_all(CapacityStage::changes, trials);
    for (std::size_t i = 0; i < trials.size(); ++i) take(probe_of[i], trials[i], found[i]);
  }

  /// Keeps what a policy does on a changed platform where no other did better there.
  void take(std::size_t p, const Trial& trial, const BatchSearch& found) {
    CapacityAnswer& answer = report_.answers[probes_[p].answer];
    Insight& insight = answer.insights[probes_[p].insight];
    Sensitivity& it = insight.sensitivities[place_of(p)];
    const CapacityTargets& targets = workload_of(answer).targets;
    const TriedBatch* best = best_of(found, targets);
    if (best == nullptr || (it.figures && !is_better(*best->figures, *it.figures, targets))) return;
    it.policy = policy_name(trial.scenario->policies[trial.policy]);
    it.figures = best->figures;
    it.largest_batch = found.largest()->batch;
    if (const auto& base = answer.configurations[insight.configuration].figures)
      it.gain = static_cast<double>(it.figures->throughput.count()) /
                    static_cast<double>(base->throughput.count()) -
                1;
  }

  /// Of a probe among those of its insight, which stand one after the other.
  [[nodiscard]] std::size_t place_of(std::size_t p) const {
    std::size_t first = p;
    while (first > 0 && probes_[first - 1].answer == probes_[p].answer &&
           probes_[first - 1].insight == probes_[p].insight)
      --first;
    return p - first;
  }

  static void find_bottleneck(Insight& insight) {
    double most = kNoticeableGain;
    for (const Sensitivity& it : insight.sensitivities)
      if (it.gain && *it.gain >= most) {
        if (insight.bottleneck && *it.gain == most) continue;
        most = *it.gain;
        insight.bottleneck = it.part;
      }
  }

  const ParallelOptions options_;
  const CapacityProgress& progress_;
  const std::int64_t limit_work_;
  const std::unique_ptr<ScenarioMemo> memo_ = std::make_unique<ScenarioMemo>();
  CapacityReport report_;
  std::map<std::size_t, std::vector<Trial>> origin_;  ///< by answer, as its configurations
  /// Of a configuration among those of its answer, by workload, candidate and policy.
  std::map<std::array<std::size_t, 3>, std::size_t> places_;
  std::vector<Probe> probes_;
};

}  // namespace

const char* to_text(Verdict verdict) {
  constexpr std::array names{"feasible", "at risk", "misses targets", "does not fit",
                             "does not apply"};
  return names[static_cast<std::size_t>(verdict)];
}

const char* to_text(Part part) {
  constexpr std::array names{"compute", "memory", "memory bandwidth", "link", "storage", "several"};
  return names[static_cast<std::size_t>(part)];
}

const char* to_text(Axis axis) {
  constexpr std::array names{"throughput", "cost", "energy", "headroom"};
  return names[static_cast<std::size_t>(axis)];
}

Quality worst_quality(const CapacityCandidate& candidate, const Platform& platform) {
  const Quality stated = platform.worst_quality();
  return candidate.set.is_null() ? stated : std::max(stated, Quality::estimate);
}

CapacityReport plan_capacity(CapacityPlan plan, unsigned jobs, const CapacityProgress& progress,
                             std::int64_t limit_work) {
  return Planning(std::move(plan), jobs, progress, limit_work).run();
}

}  // namespace plimsoll
