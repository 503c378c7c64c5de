#include "scenario/capacity/batch_search.hpp"

#include "execution/find_metrics.hpp"
#include "scenario/document/memo.hpp"
#include "scenario/run/failure_words.hpp"
#include "scenario/run/largest.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace plimsoll {

namespace {

constexpr std::int64_t kMaxIterations = 1'000'000;
/// Few runs, since every configuration is searched, and again for every change.
constexpr LastSearch kSearch{.all = 9, .samples = 9, .neighbours = 1, .scan = 9};

/// Parts per billion of `whole`, rounded down.
Ratio share_of_bytes(Bytes part, Bytes whole) {
  __extension__ using Wide = __int128;
  return Ratio{static_cast<std::int64_t>(Wide{part.count()} * kWhole.count() / whole.count())};
}

Bytes bytes_of_share(Ratio share, Bytes whole) {
  __extension__ using Wide = __int128;
  return Bytes{static_cast<std::int64_t>(Wide{whole.count()} * share.count() / kWhole.count())};
}

std::vector<std::size_t> working_memories(const Platform& platform) {
  std::vector<std::size_t> memories;
  for (const Processor& processor : platform.processors)
    memories.push_back(index(processor.memory));
  std::ranges::sort(memories);
  memories.erase(std::ranges::unique(memories).begin(), memories.end());
  return memories;
}

/// What stays free is reserved, so that no policy plans with it.
void keep_free(Platform& platform, Ratio headroom) {
  for (const std::size_t m : working_memories(platform)) {
    Memory& memory = platform.memories[m];
    if (!memory.capacity.is_unlimited())
      memory.reserved =
          std::min(memory.capacity, memory.reserved + bytes_of_share(headroom, memory.capacity));
  }
}

/// The least free share of the memories in which operators run; `asked` of it was reserved.
Ratio headroom_of(const Metrics& metrics, const Platform& platform, Ratio asked) {
  Ratio least = kWhole;
  for (const std::size_t m : working_memories(platform)) {
    const Memory& memory = platform.memories[m];
    if (memory.capacity.is_unlimited() || memory.capacity == Bytes{}) continue;
    const Bytes used =
        find_memory(metrics, memory.name)->peak_reserved - bytes_of_share(asked, memory.capacity);
    least = std::min(least, share_of_bytes(memory.capacity - used, memory.capacity));
  }
  return least;
}

SampleRate rate_of(double samples_per_second) {
  constexpr double kNano = 1e9;
  constexpr double kMost = 9e18;
  return SampleRate{static_cast<std::int64_t>(std::min(samples_per_second * kNano, kMost))};
}

UnitFigures figures_of(const RunResult& result, const Platform& platform, std::int64_t batch,
                       Ratio asked) {
  const Metrics& metrics = result.metrics;
  UnitFigures figures{.batch = batch,
                      .throughput = rate_of(metrics.throughput.value_or(0)),
                      .headroom = headroom_of(metrics, platform, asked),
                      .power_limit = platform.power_limit,
                      .mfu = metrics.mfu};
  if (!metrics.energy) return figures;
  figures.energy_per_sample = metrics.energy->per_sample;
  figures.average_power = metrics.energy->average;
  figures.samples_per_charge = metrics.energy->samples_per_battery;
  return figures;
}

class Search {
 public:
  Search(const Scenario& scenario, const Node& policy, const CapacityWorkload& workload,
         ScenarioMemo& memo, std::int64_t limit_work)
      : scenario_(scenario),
        policy_(policy),
        workload_(workload),
        memo_(memo),
        limit_work_(limit_work),
        workload_key_(scenario.workload_key) {
    keep_free(scenario_.platform, workload.targets.headroom);
  }

  BatchSearch run() {
    const BatchRange range = allowed();
    const std::int64_t step = step_of(range);
    const std::int64_t first = (range.at_least + step - 1) / step;
    const std::int64_t last = range.at_most / step;
    if (first > last) {
      found_.tried.push_back({.batch = range.at_least,
                              .why = fmt::format("no batch up to {} divides into {} equal parts, "
                                                 "one for each microbatch of each rank",
                                                 range.at_most, step),
                              .is_refused = true});
      return std::move(found_);
    }
    const auto holds = [&](std::size_t candidate) {
      attempt((first + static_cast<std::int64_t>(candidate)) * step);
      return found_.tried.back().figures.has_value();
    };
    const auto candidates = static_cast<std::size_t>(last - first + 1);
    LastSearch search = kSearch;
    search.scans = is_online(policy_);
    found_.is_cut_short = find_last(candidates, holds, search).is_cut_short;
    std::ranges::sort(found_.tried, {}, &TriedBatch::batch);
    const TriedBatch* largest = found_.largest();
    found_.is_limited_by_plan =
        workload_.batch && largest != nullptr && largest->batch == last * step;
    return std::move(found_);
  }

 private:
  [[nodiscard]] BatchRange allowed() const {
    const std::int64_t own =
        scenario_.workload_options.batch.value_or(default_batch(scenario_.workload));
    if (!workload_.batch) return {own, own, 1};
    return *workload_.batch;
  }

  [[nodiscard]] std::int64_t step_of(const BatchRange& range) const {
    Diagnostics diagnostics;
    const auto bound = bind_policy(policy_, diagnostics);
    diagnostics.throw_if_errors();
    const std::int64_t replicas = scenario_.parallel ? scenario_.parallel->samples() : 1;
    return std::lcm(range.multiple_of, bound->microbatches * replicas);
  }

  void attempt(std::int64_t batch) {
    TriedBatch tried{.batch = batch};
    if (workload_.batch) scenario_.workload_options.batch = batch;
    scenario_.workload_key = fmt::format("{} x {}", workload_key_, batch);
    scenario_.iterations = iterations(batch);
    try {
      measure(tried);
    } catch (const InputError& refusal) {
      tried.why = refusal.diagnostics().front().message;
      tried.is_refused = true;
    }
    found_.tried.push_back(std::move(tried));
  }

  void measure(TriedBatch& tried) {
    WorkMeter meter(limit_work_);
    const RunResult result =
        run_policy(scenario_, policy_,
                   {.memo = &memo_, .work = Work(&meter), .sums_only = true, .is_reported = false});
    found_.parameters = result.policy_parameters;
    tried.why = failure_in_words(result);
    if (!tried.why.empty()) return;
    tried.figures = figures_of(result, scenario_.platform, tried.batch, workload_.targets.headroom);
    tried.processors =
        scenario_.parallel
            ? scenario_.parallel->product()
            : std::ranges::count_if(result.metrics.processors,
                                    [](const ProcessorMetrics& it) { return it.busy > Time{}; });
  }

  /// Steps of the whole run, which throughput is that of.
  [[nodiscard]] std::int64_t iterations(std::int64_t batch) const {
    if (!workload_.run) return 1;
    __extension__ using Wide = __int128;
    const Wide samples = Wide{workload_.run->samples} * workload_.run->epochs;
    return static_cast<std::int64_t>(
        std::clamp<Wide>((samples + batch - 1) / batch, 1, kMaxIterations));
  }

  Scenario scenario_;
  const Node& policy_;
  const CapacityWorkload& workload_;
  ScenarioMemo& memo_;
  const std::int64_t limit_work_;
  const std::string workload_key_;
  BatchSearch found_;
};

}  // namespace

const TriedBatch* BatchSearch::largest() const {
  const TriedBatch* largest = nullptr;
  for (const TriedBatch& it : tried)
    if (it.figures) largest = &it;
  return largest;
}

BatchSearch search_batches(const Scenario& scenario, const Node& policy,
                           const CapacityWorkload& workload, ScenarioMemo& memo,
                           std::int64_t limit_work) {
  return Search(scenario, policy, workload, memo, limit_work).run();
}

}  // namespace plimsoll
