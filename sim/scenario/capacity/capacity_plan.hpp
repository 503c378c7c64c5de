/// The file of a capacity plan: which workloads must be carried, and by what.
///
///   capacity: vision-team
///   workloads:
///     - name: fine-tuning
///       workload: {model: resnet50, optimizer: sgd-momentum}
///       batch: {at_least: 32, at_most: 512}
///       run: {samples: 1281167, epochs: 10}
///       targets: {deadline: 24 h, headroom: 5 %}
///   platforms:
///     - {platform: rtx-4090, count: 4, price: {device: 1800 EUR, kwh: 0.30 EUR/kWh}}
///     - {platform: a100-pcie-80gb, count: 2}
///   policies: [none, offload/greedy]
///
/// docs/capacity.md tells every key.
#pragma once

#include "scenario/capacity/money.hpp"
#include "scenario/capacity/splits.hpp"
#include "scenario/document/scenario.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace plimsoll {

/// Mini-batches that may be chosen: least, least + step, ... up to most.
struct BatchRange {
  std::int64_t at_least = 1, at_most = 1024, multiple_of = 1;
};

/// The least batch of a range that is a multiple of its step.
[[nodiscard]] std::int64_t least_of(const BatchRange& range);

/// What all of the training is, for deadlines, energy and cost.
struct TrainingRun {
  std::int64_t samples = 0;
  std::int64_t epochs = 1;
};

struct CapacityTargets {
  std::optional<SampleRate> throughput;
  std::optional<std::int64_t> tokens_per_second;
  std::optional<Time> deadline;  ///< of the whole run
  Ratio headroom;                ///< of each memory in which operators run: stays free
  std::optional<Energy> energy_per_sample;
  std::optional<Power> average_power;  ///< of one unit
  std::optional<std::int64_t> samples_per_charge;
};

/// The other way to learn from a sample: to send it to someone who trains elsewhere.
struct SendOption {
  Location where;
  Located<std::string> to;  ///< a memory at the far end of a link
  Bytes bytes;              ///< of a sample
};

struct CapacityWorkload {
  Location where;
  std::string name;
  Node workload;                    ///< as in a scenario
  Node parallel;                    ///< as in a scenario, with lists of sizes; or nothing
  Node sharding;                    ///< as in a scenario, or nothing
  std::optional<BatchRange> batch;  ///< without one: as the workload says
  std::optional<std::int64_t> tokens_per_sample;
  std::optional<TrainingRun> run;
  std::optional<SendOption> send;
  CapacityTargets targets;
  std::vector<Located<std::string>> platforms;  ///< names of candidates; empty: all
  Node policies;                                ///< as in a scenario; nothing: the plan's
};

/// For one unit: one platform as its file describes it.
struct UnitPrice {
  std::optional<Money> device;  ///< to buy it
  std::optional<Money> hour;    ///< to rent it
  std::optional<Money> kwh;     ///< of electricity
};

struct CapacityCandidate {
  Location where;
  std::string name;                   ///< the platform's, unless another is given
  Node platform;                      ///< as in a scenario
  Node set;                           ///< as in a scenario, or nothing
  std::optional<std::int64_t> count;  ///< units that there are; without one: as many as needed
  UnitPrice price;
  Node policies;  ///< of this candidate; nothing: the workload's or the plan's
};

/// A change whose effect is measured: "PCIe 5".
struct WhatIf {
  Location where;
  std::string name;
  std::vector<std::pair<Located<std::string>, std::string>> set;
};

/// How several units together compare with one of them.
struct Scaling {
  Ratio efficiency = kWhole;
  std::string source;
};

/// How far a real machine may be from the figures, either way.
struct ErrorBand {
  Ratio time, energy;
  std::string source;
};

/// A workload on a candidate, divided in one way, with all its policies.
struct CapacityPairing {
  std::size_t workload = 0, candidate = 0;  ///< of the plan
  Split split;                              ///< nothing where the workload has no `parallel`
  Scenario scenario;
};

struct CapacityPlan {
  std::filesystem::path folder;  ///< next to which names are looked up
  std::string name, about;
  std::vector<CapacityWorkload> workloads;
  std::vector<CapacityCandidate> platforms;
  Node policies;
  std::vector<WhatIf> what_if;
  Scaling scaling;
  std::optional<ErrorBand> error;
  std::string currency;  ///< of all prices; empty without any
  /// Every workload on every candidate that it may have; those of one candidate follow each other.
  std::vector<CapacityPairing> pairings;
};

/// Reads a plan and all that it names. Throws InputError with all that is wrong.
[[nodiscard]] CapacityPlan load_capacity_plan(const std::filesystem::path& path);

/// The same from a document; names are looked up next to `folder`.
[[nodiscard]] CapacityPlan read_capacity_plan(const Node& document,
                                              const std::filesystem::path& folder);

/// Builds every workload at its least batch. Throws InputError with all that is wrong.
void check_workloads(const CapacityPlan& plan);

[[nodiscard]] std::string capacity_plan_schema();

/// A pairing with what `what_if` sets. Throws InputError.
[[nodiscard]] Scenario changed_scenario(const CapacityPlan& plan, const CapacityPairing& pairing,
                                        const WhatIf& what_if);

}  // namespace plimsoll
