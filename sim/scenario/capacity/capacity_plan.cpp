#include "scenario/capacity/capacity_plan.hpp"

#include "base/gather.hpp"
#include "base/names_hint.hpp"
#include "scenario/document/document_kind.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::int64_t kMaxSamples = 1'000'000'000'000'000;
constexpr std::size_t kMaxEntries = 100;

Format<BatchRange> batch_range_format() {
  const auto fixed = mapped<std::int64_t, BatchRange>(batch_format(), [](std::int64_t batch) {
    return BatchRange{batch, batch, 1};
  });
  const auto range =
      Record<BatchRange>("batch", "The mini-batches that may be chosen.")
          .optional("at_least", &BatchRange::at_least, batch_format(), "default 1")
          .optional("at_most", &BatchRange::at_most, batch_format(), "default 1024")
          .optional("multiple_of", &BatchRange::multiple_of, batch_format(), "default 1")
          .check({"at_least", "at_most", "multiple_of"},
                 [](BatchRange& it, const Node& node, Diagnostics& diagnostics) {
                   const std::int64_t step = it.multiple_of;
                   if (it.at_most / step >= (it.at_least + step - 1) / step) return;
                   diagnostics.error(node.where(), fmt::format("no multiple of {} from {} to {}",
                                                               step, it.at_least, it.at_most));
                 })
          .format();
  return either(fixed, range);
}

Format<TrainingRun> training_run_format() {
  return Record<TrainingRun>("run", "The whole training.")
      .required("samples", &TrainingRun::samples, integer(1, kMaxSamples), "of an epoch")
      .optional("epochs", &TrainingRun::epochs, integer(1, 1'000'000), "default 1")
      .check({"samples", "epochs"},
             [](TrainingRun& it, const Node& node, Diagnostics& diagnostics) {
               if (it.samples > kMaxSamples / it.epochs)
                 diagnostics.error(node.where(),
                                   fmt::format("more than {} samples in all", kMaxSamples));
             })
      .format();
}

/// Who writes tokens there means the target beside it.
Format<SampleRate> throughput_format() {
  const Format<SampleRate> rate = quantity<SampleRate>();
  auto read = [rate](const Node& node, Diagnostics& diagnostics) -> std::optional<SampleRate> {
    if (!node.is_scalar() || node.scalar().find("tok") == std::string::npos)
      return rate.read(node, diagnostics);
    const std::string& text = node.scalar();
    const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
    const bool is_whole = end > 0 && end < text.size() && (text[end] == ' ' || text[end] == 't');
    diagnostics.error(
        node.where(),
        fmt::format("found `{}`; expected samples per second, such as 250 samples/s", text),
        fmt::format("tokens have a target of their own: `tokens_per_second: {}`",
                    is_whole ? text.substr(0, end) : "N"));
    return std::nullopt;
  };
  return {std::move(read), rate.shape};
}

Format<CapacityTargets> targets_format() {
  using T = CapacityTargets;
  return Record<T>("targets", "What a configuration must reach.")
      .optional("throughput", &T::throughput, throughput_format(), "at least so many samples/s")
      .optional("tokens_per_second", &T::tokens_per_second, integer(1, kMaxSamples),
                "at least; asks for `tokens_per_sample`")
      .optional("deadline", &T::deadline, quantity<Time>(), "of the whole run")
      .optional("headroom", &T::headroom, efficiency(),
                "share of each memory in which operators run that stays free; default none")
      .optional("energy_per_sample", &T::energy_per_sample, quantity<Energy>(), "at most")
      .optional("average_power", &T::average_power, quantity<Power>(), "of one unit, at most")
      .optional("samples_per_charge", &T::samples_per_charge, integer(1, kMaxSamples),
                "that one charge of the battery must carry")
      .format();
}

void check_targets(CapacityWorkload& it, const Node& node, Diagnostics& diagnostics) {
  if (it.targets.tokens_per_second && !it.tokens_per_sample)
    diagnostics.error(node.where(), "`tokens_per_second` asks for `tokens_per_sample`");
  if (it.targets.deadline && !it.run)
    diagnostics.error(node.where(), "a deadline asks for `run: {samples: N}`");
  if (it.targets.throughput && it.targets.throughput->count() == 0)
    diagnostics.error(node.where(), "a target of no samples/s is none");
  if (it.targets.deadline && *it.targets.deadline == Time{})
    diagnostics.error(node.where(), "a deadline of 0 s cannot be met");
}

Format<SendOption> send_format() {
  return Record<SendOption>("send", "To send a sample instead of training on it.")
      .where(&SendOption::where)
      .required("to", &SendOption::to, located(name()), "a memory at the far end of a link")
      .required("bytes", &SendOption::bytes, quantity<Bytes>(), "of a sample")
      .format();
}

Format<CapacityWorkload> workload_format() {
  using W = CapacityWorkload;
  return Record<W>("workload", "What is to be trained, and what it must reach.")
      .where(&W::where)
      .required("name", &W::name, text(), "for the report")
      .required("workload", &W::workload, raw(), "as in a scenario")
      .optional(
          "parallel", &W::parallel, raw(),
          "as in a scenario; an axis may have a list of sizes, of which the best is chosen, and "
          "`data` has what the others leave")
      .optional("sharding", &W::sharding, raw(), "as in a scenario")
      .optional("batch", &W::batch, batch_range_format(),
                "a number, or {at_least, at_most, multiple_of}; default: as the workload says")
      .optional("tokens_per_sample", &W::tokens_per_sample, integer(1, kMaxSamples),
                "for rates in tokens")
      .optional("run", &W::run, training_run_format(), "the whole training")
      .optional("send", &W::send, send_format(),
                "what sending a sample takes instead: {to: MEMORY, bytes: SIZE}")
      .optional("targets", &W::targets, targets_format(), "default none")
      .optional("platforms", &W::platforms, list_of(located(text()), 1, kMaxEntries),
                "names of candidates; default all")
      .optional("policies", &W::policies, raw(), "one or a list; default: the plan's")
      .check({"targets", "tokens_per_sample", "run"}, check_targets)
      .format();
}

Format<UnitPrice> price_format() {
  return Record<UnitPrice>("price", "Of one unit: one platform as its file describes it.")
      .optional("device", &UnitPrice::device, money(""), "to buy it")
      .optional("hour", &UnitPrice::hour, money("/h"), "to rent it")
      .optional("kwh", &UnitPrice::kwh, money("/kWh"), "of electricity")
      .format();
}

Format<CapacityCandidate> candidate_format() {
  using C = CapacityCandidate;
  return Record<C>("candidate", "A platform that could carry it.")
      .where(&C::where)
      .required("platform", &C::platform, raw(), "a name, a path, or a platform in place")
      .optional("name", &C::name, text(), "default: that of the platform")
      .optional("set", &C::set, raw(), "paths of the platform, and the values they get")
      .optional("count", &C::count, integer(1, 1'000'000),
                "units that there are; default: as many as needed")
      .optional("price", &C::price, price_format(), "default none")
      .optional("policies", &C::policies, raw(),
                "one or a list; default: the workload's or the plan's")
      .format();
}

Format<WhatIf> what_if_format() {
  return Record<WhatIf>("what-if", "A change whose effect is measured.")
      .where(&WhatIf::where)
      .required("name", &WhatIf::name, text(), "for the report: PCIe 5")
      .required("set", &WhatIf::set, map_of(text()), "paths of the platform, and their values")
      .format();
}

Format<Scaling> scaling_format() {
  return Record<Scaling>("scaling", "Several units against one of them.")
      .required("efficiency", &Scaling::efficiency, efficiency(), "share of n times one unit")
      .required("source", &Scaling::source, text(), "where the number comes from")
      .format();
}

/// At an error of all of it nothing is left of the throughput.
Format<Ratio> error_of_time() {
  const Format<Ratio> any = fraction();
  auto read = [any](const Node& node, Diagnostics& diagnostics) -> std::optional<Ratio> {
    const auto error = any.read(node, diagnostics);
    if (!error || *error < kWhole) return error;
    diagnostics.error(node.where(),
                      fmt::format("found {}, expected less than 100 %", node.describe()));
    return std::nullopt;
  };
  return {std::move(read), any.shape};
}

Format<ErrorBand> error_format() {
  return Record<ErrorBand>("error", "How far a real machine may be from the figures.")
      .required("time", &ErrorBand::time, error_of_time(), "of the throughput, either way")
      .required("energy", &ErrorBand::energy, fraction(), "either way")
      .required("source", &ErrorBand::source, text(), "where the numbers come from")
      .format();
}

Format<CapacityPlan> plan_format() {
  using P = CapacityPlan;
  return Record<P>("capacity", "A capacity plan.")
      .required("capacity", &P::name, text(), "its name")
      .optional("about", &P::about, text(), "what is to be decided")
      .required("workloads", &P::workloads, list_of(workload_format(), 1, kMaxEntries),
                "each with targets")
      .required("platforms", &P::platforms, list_of(candidate_format(), 1, kMaxEntries),
                "the candidates")
      .optional("policies", &P::policies, raw(), "one or a list; default: none")
      .optional("what_if", &P::what_if, list_of(what_if_format(), 0, kMaxEntries),
                "changes that are tried on every candidate that has what they set")
      .optional("scaling", &P::scaling, scaling_format(), "default: n units carry n times one")
      .optional("error", &P::error, error_format(), "default: published errors of like models")
      .format();
}

/// The name of a platform, wherever it stands.
std::string name_of_platform(const Node& platform) {
  if (platform.is_scalar()) return std::filesystem::path(platform.scalar()).stem().string();
  const Node* name = platform.find("platform");
  return name != nullptr && name->is_scalar() ? name->scalar() : std::string();
}

void check_candidates(CapacityPlan& plan, Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (CapacityCandidate& it : plan.platforms) {
    if (std::ranges::find(names, it.name) != names.end())
      diagnostics.error(it.where, fmt::format("there is a candidate `{}` already; expected a "
                                              "`name` that tells them apart",
                                              it.name));
    names.push_back(it.name);
    for (const auto* price : {&it.price.device, &it.price.hour, &it.price.kwh}) {
      if (!*price) continue;
      if (plan.currency.empty()) plan.currency = (*price)->currency;
      if ((*price)->currency != plan.currency)
        diagnostics.error(it.where, fmt::format("a price in {} beside others in {}; currencies are "
                                                "not converted",
                                                (*price)->currency, plan.currency));
    }
  }
  for (const CapacityWorkload& workload : plan.workloads)
    for (const auto& wanted : workload.platforms)
      if (std::ranges::find(names, wanted.value) == names.end())
        diagnostics.error(wanted.where, fmt::format("there is no candidate `{}`", wanted.value),
                          hint_of_names(wanted.value, names));
}

void check_workload_names(const CapacityPlan& plan, Diagnostics& diagnostics) {
  for (auto it = plan.workloads.begin(); it != plan.workloads.end(); ++it)
    if (std::find_if(plan.workloads.begin(), it,
                     [&](const auto& other) { return other.name == it->name; }) != it)
      diagnostics.error(it->where, fmt::format("there is a workload `{}` already", it->name));
}

/// Whether there is something to shard: several ranks that hold the same (MeshOptions::alike()).
bool has_replicas(const Split& split) {
  return split.has("data") || split.has("context") || split.has("expert");
}

Scenario scenario_of(const CapacityPlan& plan, const CapacityWorkload& workload,
                     const CapacityCandidate& candidate, const Split& split,
                     const Overrides& overrides) {
  Diagnostics diagnostics;
  Node document = parse_value("{scenario: capacity}", candidate.where.origin);
  document.set("platform", candidate.platform, diagnostics);
  document.set("workload", workload.workload, diagnostics);
  const Node* policies = &candidate.policies;
  if (policies->is_null()) policies = &workload.policies;
  if (policies->is_null()) policies = &plan.policies;
  document.set("policy", *policies, diagnostics);
  if (!candidate.set.is_null()) document.set("set", candidate.set, diagnostics);
  if (!split.parallel.is_null()) document.set("parallel", split.parallel, diagnostics);
  const bool shards = workload.parallel.is_null() || has_replicas(split);
  if (shards && !workload.sharding.is_null())
    document.set("sharding", workload.sharding, diagnostics);
  diagnostics.throw_if_errors();
  return read_scenario(document, plan.folder, overrides);
}

/// The sizes of a chain, a graph or a profile are those of one batch.
void check_batch(const CapacityWorkload& workload, const Scenario& scenario) {
  const bool scales = std::holds_alternative<LayersSpec>(scenario.workload) ||
                      std::holds_alternative<OnnxSpec>(scenario.workload);
  if (!workload.batch || scales) return;
  refuse(workload.where,
         fmt::format("the times and sizes of workload `{}` are those of one batch; "
                     "expected no `batch` here",
                     scenario.workload_name),
         "");
}

/// Whoever sends needs a way to where it sends.
void check_send(const CapacityWorkload& workload, const CapacityCandidate& candidate,
                const Platform& platform) {
  if (!workload.send) return;
  if (workload.send->bytes == Bytes{})
    throw InputError(
        {{Severity::error, workload.send->where, "a sample of 0 B is none to send", ""}});
  if (platform.find_memory(workload.send->to.value)) return;
  std::vector<std::string> known;
  for (const Memory& memory : platform.memories) known.push_back(memory.name);
  refuse(workload.send->to.where,
         fmt::format("candidate `{}` has no memory `{}` to send to", candidate.name,
                     workload.send->to.value),
         hint_of_names(workload.send->to.value, known));
}

bool is_wanted(const CapacityWorkload& workload, const CapacityCandidate& candidate) {
  return workload.platforms.empty() ||
         std::ranges::any_of(workload.platforms, [&](const Located<std::string>& it) {
           return it.value == candidate.name;
         });
}

/// The platform of a candidate is known once a scenario with it is read.
void add_pairings_of(CapacityPlan& plan, std::size_t w, std::size_t c) {
  const CapacityWorkload& workload = plan.workloads[w];
  const CapacityCandidate& candidate = plan.platforms[c];
  Scenario whole = scenario_of(plan, workload, candidate, {}, {});
  check_batch(workload, whole);
  check_send(workload, candidate, whole.platform);
  if (workload.parallel.is_null()) {
    plan.pairings.push_back({w, c, {}, std::move(whole)});
    return;
  }
  std::vector<Split> splits = splits_of(workload.parallel, whole.platform);
  if (!workload.sharding.is_null() && std::ranges::none_of(splits, has_replicas))
    refuse(workload.sharding.where(),
           "`sharding` divides what ranks of the data, context and expert axes all hold, and "
           "`parallel` gives these axes no rank beside the first");
  for (Split& split : splits) {
    Scenario scenario = scenario_of(plan, workload, candidate, split, {});
    plan.pairings.push_back({w, c, std::move(split), std::move(scenario)});
  }
}

void add_pairings(CapacityPlan& plan, Diagnostics& diagnostics) {
  for (std::size_t w = 0; w < plan.workloads.size(); ++w)
    for (std::size_t c = 0; c < plan.platforms.size(); ++c) {
      if (!is_wanted(plan.workloads[w], plan.platforms[c])) continue;
      if (plan.workloads[w].workload.is_null() || plan.platforms[c].platform.is_null()) continue;
      gather(diagnostics, [&] { add_pairings_of(plan, w, c); });
    }
}

/// A change that no candidate knows is a mistake; of those that can be read.
void check_change(const WhatIf& what_if, const CapacityPlan& plan, Diagnostics& diagnostics) {
  std::optional<Diagnostic> first;
  for (const CapacityPairing& pairing : plan.pairings) {
    try {
      (void)changed_scenario(plan, pairing, what_if);
      return;
    } catch (const InputError& error) {
      if (!first) first = error.diagnostics().front();
    }
  }
  if (first)
    diagnostics.error(
        what_if.where,
        fmt::format("the change `{}` applies to no candidate: {}", what_if.name, first->message),
        first->hint);
}

template <class T>
std::vector<T> items_that_are_there(const Node& document, const char* key, const Format<T>& item,
                                    const std::function<void(const Node&, T&)>& take_parts) {
  std::vector<T> items;
  Diagnostics told_already;
  const Node* list = document.is_mapping() ? document.find(key) : nullptr;
  if (list == nullptr || !list->is_sequence()) return items;
  for (const Node& node : list->items()) {
    auto it = item.read(node, told_already);
    if (!it && node.is_mapping()) take_parts(node, it.emplace());
    if (it) items.push_back(std::move(*it));
  }
  return items;
}

void take_part(const Node& item, const char* key, Node& part) {
  if (const Node* found = item.find(key)) part = *found;
}

/// Of a file with errors: what of it can be read.
CapacityPlan parts_that_are_there(const Node& document) {
  CapacityPlan plan;
  plan.workloads = items_that_are_there<CapacityWorkload>(
      document, "workloads", workload_format(), [](const Node& item, CapacityWorkload& it) {
        it.where = item.where();
        take_part(item, "workload", it.workload);
      });
  plan.platforms = items_that_are_there<CapacityCandidate>(
      document, "platforms", candidate_format(), [](const Node& item, CapacityCandidate& it) {
        it.where = item.where();
        take_part(item, "platform", it.platform);
      });
  plan.what_if = items_that_are_there<WhatIf>(document, "what_if", what_if_format(),
                                              [](const Node&, WhatIf&) {});
  if (document.is_mapping()) take_part(document, "policies", plan.policies);
  return plan;
}

}  // namespace

CapacityPlan read_capacity_plan(const Node& document, const std::filesystem::path& folder) {
  Diagnostics diagnostics;
  auto whole = plan_format().read(document, diagnostics);
  CapacityPlan plan = whole ? std::move(*whole) : parts_that_are_there(document);
  plan.folder = folder;
  if (plan.policies.is_null()) plan.policies = parse_value("none", document.where().origin);
  for (CapacityCandidate& it : plan.platforms)
    if (it.name.empty()) it.name = name_of_platform(it.platform);
  if (whole) {
    check_candidates(plan, diagnostics);
    check_workload_names(plan, diagnostics);
  }
  add_pairings(plan, diagnostics);
  for (const WhatIf& what_if : plan.what_if) check_change(what_if, plan, diagnostics);
  diagnostics.throw_if_errors();
  return plan;
}

CapacityPlan load_capacity_plan(const std::filesystem::path& path) {
  const Node document = read_document(path);
  expect_kind(document, DocumentKind::capacity);
  return read_capacity_plan(document, path.parent_path());
}

std::int64_t least_of(const BatchRange& range) {
  return (range.at_least + range.multiple_of - 1) / range.multiple_of * range.multiple_of;
}

void check_workloads(const CapacityPlan& plan) {
  Diagnostics diagnostics;
  std::set<std::size_t> built;
  for (const CapacityPairing& pairing : plan.pairings) {
    // A candidate may set a part of the workload, too.
    if (plan.platforms[pairing.candidate].set.is_null() && !built.insert(pairing.workload).second)
      continue;
    WorkloadOptions options = pairing.scenario.workload_options;
    if (const auto& batch = plan.workloads[pairing.workload].batch)
      options.batch = least_of(*batch);
    gather(diagnostics, [&] { (void)build(pairing.scenario.workload, options); });
  }
  diagnostics.throw_if_errors();
}

std::string capacity_plan_schema() {
  return json_schema(plan_format().shape, "Plimsoll capacity plan");
}

Scenario changed_scenario(const CapacityPlan& plan, const CapacityPairing& pairing,
                          const WhatIf& what_if) {
  Overrides overrides;
  for (const auto& [path, value] : what_if.set) overrides.set.emplace_back(path.value, value);
  return scenario_of(plan, plan.workloads[pairing.workload], plan.platforms[pairing.candidate],
                     pairing.split, overrides);
}

}  // namespace plimsoll
