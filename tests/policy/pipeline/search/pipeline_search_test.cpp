// The search for orders of pipelines: its parts by themselves, and the policy.
#include "policy/pipeline/bounds/makespan_bound.hpp"
#include "policy/pipeline/planning/plan_pipeline.hpp"
#include "policy/pipeline/search/building_blocks.hpp"
#include "policy/pipeline/search/largest_peak.hpp"
#include "policy/pipeline/search/order_compaction.hpp"
#include "policy/pipeline/search/order_search.hpp"
#include "policy/pipeline/search/update_times.hpp"
#include "policy/pipeline/search/warm_ups.hpp"
#include "property/random_chains.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/split_pipelines.hpp"

#include <map>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Dice;
using test::Played;
using test::seconds;

struct Stage {
  std::int64_t forward, input, weight, output, saved, held, parameters;
};

struct SearchCase {
  std::int64_t p, m, v;
  std::vector<Stage> stages;
  std::int64_t latency = 0;
  std::int64_t input = 0;  ///< bytes of a_0
};

SearchCase random_case(Dice& dice, std::int64_t most_devices, std::int64_t most_microbatches,
                       bool with_messages) {
  SearchCase it{dice(2, most_devices), dice(1, most_microbatches), dice(1, 2), {}};
  it.input = with_messages ? 1 : 0;
  for (std::int64_t s = 0; s < it.p * it.v; ++s) {
    const std::int64_t output = with_messages ? dice(0, 3) : 0, saved = output + dice(1, 6);
    it.stages.push_back({dice(1, 6), dice(1, 6), dice(1, 6), output, saved, dice(0, saved),
                         with_messages ? dice(0, 4) : 0});
  }
  it.latency = dice(0, 2);
  return it;
}

std::string chain_yaml(const SearchCase& it) {
  std::string text = fmt::format("workload: random\ninput: {} B\nchain:\n", it.input);
  for (std::size_t s = 0; s < it.stages.size(); ++s) {
    const Stage& stage = it.stages[s];
    text += fmt::format(
        "  - {{name: s{}, forward: {} s, backward_input: {} s, backward_weight: {} s, output: {} "
        "B, saved: {} B, held_for_weight_gradient: {} B, parameters: {} B}}\n",
        s, stage.forward, stage.input, stage.weight, stage.output, stage.saved, stage.held,
        stage.parameters);
  }
  return text;
}

/// A pipeline and what the searches look at, on a row of devices.
struct Setting {
  Workload workload;
  Platform platform;
  Topology topology;
  ChainView view;
  Problem problem;
  PipelineParameters parameters;
  std::vector<ProcessorId> devices;
  Partition partition;
  Slots slots;
  SlotCosts costs;
  std::vector<Time> after;      ///< what devices do at the end of a step
  TaskNetwork network, surely;  ///< with what there may be, and with what there is in any order

  Setting(Workload of, Platform on, PipelineParameters with)
      : workload(std::move(of)),
        platform(std::move(on)),
        topology(platform),
        view(chain_view(workload)),
        problem{workload, view, platform, topology},
        parameters(std::move(with)),
        devices(pipeline_devices(problem, parameters)),
        partition(partition_for(problem, parameters, devices)),
        slots(problem, partition, devices,
              wave_placement(static_cast<std::uint32_t>(devices.size()),
                             static_cast<std::uint32_t>(parameters.virtual_stages))),
        costs(slots.costs()),
        after(update_times(problem, parameters, slots, devices, Plan{})),
        network(task_network(costs, slot_slack(problem, slots, devices),
                             static_cast<std::uint32_t>(parameters.microbatches), after,
                             has_halves(workload))),
        surely(task_network(slots.surely(costs), slot_slack(problem, slots, devices),
                            network.microbatches, after, network.splits)) {
    parameters.partition = {as_choice(partition), {}};  // of all orders
  }

  explicit Setting(const SearchCase& it, bool split = true)
      : Setting(test::workload_of(chain_yaml(it), options(split)),
                test::platform_of(test::row_yaml(it.p, fmt::format("{} s", it.latency))),
                parameters_of(it)) {}

  static bool has_halves(const Workload& workload) {
    return std::ranges::any_of(
        workload.operators, [](const Operator& op) { return op.phase == Phase::backward_weight; });
  }
  static WorkloadOptions options(bool split) {
    WorkloadOptions options;
    options.split_backward = split;
    return options;
  }
  static PipelineParameters parameters_of(const SearchCase& it) {
    PipelineParameters parameters;
    parameters.name = "orders";
    parameters.microbatches = it.m;
    parameters.virtual_stages = it.v;
    return parameters;
  }

  [[nodiscard]] Played play(const TaskOrders& orders) const {
    const auto rule = [&](std::uint32_t, std::uint32_t, std::uint32_t) {
      return schedule_of(network, costs, orders);
    };
    return test::play(std::get<Plan>(plan_pipeline(problem, parameters, rule)), workload, platform);
  }
};

std::vector<std::int64_t> unlimited(const Setting& it) {
  return std::vector<std::int64_t>(it.devices.size(), INT64_MAX);
}

std::vector<std::int64_t> peaks(const Setting& it, const Played& played) {
  std::vector<std::int64_t> peaks;
  for (std::uint32_t d = 0; d < it.devices.size(); ++d)
    peaks.push_back(played.peak(it.slots.memory(d)));
  return peaks;
}

/// Every kind of order to begin with that does not wait for itself.
std::vector<TaskOrders> some_orders(const Setting& it, const std::vector<std::int64_t>& limits) {
  std::vector<TaskOrders> all = warm_ups(it.network, it.costs.placement, limits, 100);
  if (it.parameters.virtual_stages == 2)
    for (TaskOrders& orders : building_blocks(it.network, limits, 8))
      all.push_back(std::move(orders));
  all.push_back(one_at_a_time(it.network));
  OrderEvaluator evaluator(it.network);
  std::erase_if(all, [&](const TaskOrders& orders) { return !evaluator.evaluate(orders); });
  return all;
}

}  // namespace

TEST_CASE("orders are worth what the engine measures: makespan, largest span, bytes kept") {
  // Without outputs and parameters nothing is there but what is kept.
  Dice dice(20251201);
  for (int round = 0; round < 60; ++round) {
    const bool split = dice(0, 3) > 0;
    const SearchCase chosen = random_case(dice, 5, 8, false);
    const Setting it(chosen, split);
    CAPTURE(round, split, chosen.p, chosen.m, chosen.v, chosen.latency, chain_yaml(chosen));
    OrderEvaluator evaluator(it.network);
    const auto all = some_orders(it, unlimited(it));
    for (std::size_t n = 0; n < all.size(); n += 5) {
      const OrderValue value = *evaluator.evaluate(all[n]);
      const Played played = it.play(all[n]);
      REQUIRE(value.makespan == played.execution.makespan.count());
      REQUIRE(value.span == played.execution.period.count());
      const auto kept = kept_by(it.network, all[n]);
      for (std::uint32_t d = 0; d < kept.size(); ++d) REQUIRE(played.peak(MemoryId{d}) == kept[d]);
    }
  }
}

TEST_CASE("on networks, too, orders are worth what the engine measures, and bounds hold") {
  for (const char* name : {"gpt2-small", "resnet50"})
    for (const std::int64_t chunks : {1, 2})
      for (const bool split : {false, true}) {
        CAPTURE(name, chunks, split);
        PipelineParameters parameters;
        parameters.name = "orders";
        parameters.microbatches = 5;
        parameters.virtual_stages = chunks;
        parameters.devices.emplace();
        for (const char* device : {"gpu0", "gpu1", "gpu2", "gpu3"})
          parameters.devices->push_back({device, {}});
        Platform platform = test::library_platform("dgx-1-v100");
        for (Memory& memory : platform.memories) memory.capacity = Bytes::unlimited();
        const Setting it(build(test::library_network(name), Setting::options(split)), platform,
                         parameters);
        const Time bound = makespan_bound(it.network, unlimited(it));
        OrderEvaluator evaluator(it.network);
        const auto all = some_orders(it, unlimited(it));
        for (std::size_t n = 0; n < all.size(); n += 9) {
          const Played played = it.play(all[n]);
          REQUIRE(evaluator.evaluate(all[n])->makespan == played.execution.makespan.count());
          REQUIRE(bound <= played.execution.makespan);
          REQUIRE(makespan_bound(it.surely, peaks(it, played)) <= played.execution.makespan);
        }
      }
}

TEST_CASE("bounds hold within what an order itself needs, as the engine measures it") {
  Dice dice(20261122);
  int raised = 0;
  for (int round = 0; round < 60; ++round) {
    const SearchCase chosen = random_case(dice, 5, 8, true);
    const Setting it(chosen, dice(0, 3) > 0);
    CAPTURE(round, chosen.p, chosen.m, chosen.v, chosen.latency, chain_yaml(chosen));
    const Time without = makespan_bound(it.surely, unlimited(it));
    const auto all = some_orders(it, unlimited(it));
    for (std::size_t n = 0; n < all.size(); n += 5) {
      const Played played = it.play(all[n]);
      const Time bound = makespan_bound(it.surely, peaks(it, played));
      REQUIRE(bound <= played.execution.makespan);
      raised += bound > without ? 1 : 0;
    }
  }
  CHECK(raised > 50);
}

TEST_CASE("moving tasks up keeps every task once, the limits, and what can be executed") {
  Dice dice(20251202);
  int better = 0;
  for (int round = 0; round < 150; ++round) {
    const Setting it(random_case(dice, 5, 8, false), dice(0, 3) > 0);
    CAPTURE(round);
    const TaskNetwork turned = it.network.turned_round();
    OrderEvaluator evaluator(it.network);
    for (const TaskOrders& orders : some_orders(it, unlimited(it))) {
      const auto limits = kept_by(it.network, orders);
      const AllowedDelay allowed_delay{dice(0, 4), dice(0, 4)};
      TaskOrders up = compacted(it.network, orders, limits, allowed_delay);
      TaskOrders backwards = up;
      for (auto& order : backwards) std::ranges::reverse(order);
      TaskOrders down = compacted(turned, backwards, limits, allowed_delay);
      for (auto& order : down) std::ranges::reverse(order);
      for (const TaskOrders& moved : {up, down}) {
        REQUIRE(evaluator.evaluate(moved));
        REQUIRE(keeps_to(it.network, moved, limits));
        for (std::size_t d = 0; d < moved.size(); ++d) {
          std::vector<std::uint32_t> before = orders[d], after = moved[d];
          std::ranges::sort(before);
          std::ranges::sort(after);
          REQUIRE(before == after);
        }
      }
      better += *evaluator.evaluate(up) < *evaluator.evaluate(orders) ? 1 : 0;
    }
  }
  CHECK(better > 500);
}

namespace {

/// All orders of one stage a device, executed in a way of its own: the least makespan under a
/// limit. Microbatches are alike, so that the tasks of a kind go in the order of their
/// microbatches, and an order is a word of F, B and W.
class AllOrders {
 public:
  AllOrders(const SearchCase& it, const std::vector<std::int64_t>& limits)
      : it_(it), limits_(limits), p_(static_cast<std::size_t>(it.p)), words_(p_), chosen_(p_) {
    for (std::size_t d = 0; d < p_; ++d) {
      Word word;
      spell(d, word, {0, 0, 0});
    }
  }

  std::int64_t least() {
    choose(0);
    return least_;
  }

 private:
  enum Part : std::uint8_t { kForward, kInput, kWeight };
  using Word = std::vector<Part>;
  using Counts = std::array<std::int64_t, 3>;

  /// All ways on from `word`, which has so many of each part, that keep to the limit.
  void spell(std::size_t device, Word& word, const Counts& done) {
    const Stage& stage = it_.stages[device];
    const std::int64_t kept =
        stage.saved * (done[kForward] - done[kInput]) + stage.held * (done[kInput] - done[kWeight]);
    if (kept > limits_[device]) return;
    if (done[kWeight] == it_.m) words_[device].push_back(word);
    for (const Part part : {kForward, kInput, kWeight}) {
      if (done[part] == (part == kForward ? it_.m : done[part - 1U])) continue;
      Counts more = done;
      ++more[part];
      word.push_back(part);
      spell(device, word, more);
      word.pop_back();
    }
  }

  void choose(std::size_t device) {
    if (device == p_) {
      least_ = std::min(least_, makespan());
      return;
    }
    for (const Word& word : words_[device]) {
      chosen_[device] = &word;
      choose(device + 1);
    }
  }

  std::int64_t makespan() const {
    const auto m = static_cast<std::size_t>(it_.m);
    // By device: what has come, when, and until when the devices and links are taken.
    std::vector<std::vector<std::int64_t>> values(p_), gradients(p_);
    std::vector<std::int64_t> clock(p_, 0), down(p_, 0), up(p_, 0);
    std::vector<std::size_t> next(p_, 0);
    std::vector<std::array<std::size_t, 3>> done(p_);
    values[0].assign(m, 0);
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t d = 0; d < p_; ++d)
        while (next[d] < 3 * m) {
          const Part part = (*chosen_[d])[next[d]];
          const std::size_t k = done[d][part];
          if (part == kForward && values[d].size() <= k) break;
          if (part == kInput && gradients[d].size() <= k) break;
          const std::int64_t ready = part == kForward ? values[d][k]
                                     : part == kInput ? gradients[d][k]
                                                      : 0;
          const Stage& stage = it_.stages[d];
          const std::array times{stage.forward, stage.input, stage.weight};
          clock[d] = std::max(clock[d], ready) + times[part];
          if (part == kForward && d + 1 < p_)
            values[d + 1].push_back(down[d] = std::max(clock[d], down[d]) + it_.latency);
          if (part == kForward && d + 1 == p_) gradients[d].push_back(clock[d]);
          if (part == kInput && d > 0)
            gradients[d - 1].push_back(up[d] = std::max(clock[d], up[d]) + it_.latency);
          ++done[d][part];
          ++next[d];
          progress = true;
        }
    }
    const auto is_over = [&](std::size_t n) { return n == 3 * m; };
    return std::ranges::all_of(next, is_over) ? std::ranges::max(clock) : INT64_MAX;
  }

  const SearchCase& it_;
  const std::vector<std::int64_t>& limits_;
  const std::size_t p_;
  std::vector<std::vector<Word>> words_;  ///< by device
  std::vector<const Word*> chosen_;       ///< by device
  std::int64_t least_ = INT64_MAX;
};

}  // namespace

TEST_CASE("bounds hold, and what is found is the least, over all orders of small pipelines") {
  Dice dice(20251203);
  int met = 0, limited = 0;
  for (int round = 0; round < 100; ++round) {
    SearchCase chosen = random_case(dice, 3, 2, false);
    chosen.m = dice(2, 6 - chosen.p);
    chosen.v = 1;
    chosen.stages.resize(static_cast<std::size_t>(chosen.p));
    const Setting it(chosen);
    // Between one microbatch and all but one.
    std::vector<std::int64_t> limits;
    for (const Stage& stage : chosen.stages)
      limits.push_back(stage.saved + dice(0, (chosen.m - 1) * stage.saved));
    CAPTURE(round, chosen.p, chosen.latency, chain_yaml(chosen));
    const std::int64_t least = AllOrders(chosen, limits).least() * seconds(1).count();
    const std::int64_t bound = makespan_bound(it.network, limits).count();
    const auto found = search_orders({it.network, it.costs.placement, limits, 5'000, bound}, {});
    REQUIRE(bound <= least);
    REQUIRE(found);
    REQUIRE(found->value.makespan == least);
    REQUIRE(keeps_to(it.network, found->orders, limits));
    met += bound == least ? 1 : 0;
    limited += least > AllOrders(chosen, std::vector<std::int64_t>(limits.size(), 99)).least() *
                           seconds(1).count()
                   ? 1
                   : 0;
  }
  CHECK(met > 70);
  CHECK(limited > 70);
}

TEST_CASE("bounds hold, and are often met, by what is found on one or two chunks a device") {
  Dice dice(20261124);
  int met = 0, met_without = 0;
  for (int round = 0; round < 200; ++round) {
    const SearchCase chosen = random_case(dice, 4, 6, false);
    const Setting it(chosen, dice(0, 3) > 0);
    CAPTURE(round, chosen.p, chosen.m, chosen.v, chosen.latency, chain_yaml(chosen));
    // Up to three times what one microbatch after the other needs.
    std::vector<std::int64_t> limits;
    for (const std::int64_t least : kept_by(it.network, one_at_a_time(it.network)))
      limits.push_back(least + dice(0, 2 * least));
    const std::int64_t bound = makespan_bound(it.network, limits).count();
    const auto found = search_orders({it.network, it.costs.placement, limits, 4'000, bound}, {});
    REQUIRE(found);
    REQUIRE(keeps_to(it.network, found->orders, limits));
    REQUIRE(bound <= found->value.makespan);
    const std::int64_t without = makespan_bound(it.network, unlimited(it)).count();
    met += bound == found->value.makespan ? 1 : 0;
    met_without += without == found->value.makespan ? 1 : 0;
  }
  CHECK(met > 2 * met_without);
}

namespace {

std::string search_policy(const SearchCase& it, const std::string& more) {
  return fmt::format("{{name: pipeline/search, microbatches: {}, virtual_stages: {}{}}}", it.m,
                     it.v, more);
}

/// The least makespan, in ps, among the others of the registry that keep to the limit, all with
/// `more` parameters.
std::int64_t best_of_others(const SearchCase& it, std::int64_t limit, const Platform& platform,
                            const std::string& more = "") {
  const std::map<std::int64_t, std::vector<std::string>> names{
      {1,
       {"1f1b", "gpipe", "zb-h1", "zb-h2", "zb-1p", "zb-2p", "interleaved-1f1b", "interleaved-zb",
        "bpipe", "chimera", "dualpipe", "gis", "gis-h"}},
      {2,
       {"zb-v", "v-half", "v-min", "1f1b-v", "interleaved-1f1b", "interleaved-zb", "looped-bfs",
        "hanayo", "dualpipe-v", "gis", "gis-h"}}};
  std::int64_t best = INT64_MAX;
  for (const std::string& name : names.at(it.v))
    for (const bool limited : {false, true}) {
      if (limited && !name.starts_with("zb-1p") && !name.starts_with("zb-2p") && name != "zb-v")
        continue;
      const std::string policy =
          fmt::format("{{name: pipeline/{}, microbatches: {}, virtual_stages: {}{}{}}}", name, it.m,
                      it.v, more, limited ? fmt::format(", memory_limit: {} B", limit) : "");
      try {
        const Workload workload = test::workload_of(
            chain_yaml(it), Setting::options(test::bound_policy(policy).splits_backward));
        Planned planned = test::answer(policy, workload, platform);
        if (!std::holds_alternative<Plan>(planned)) continue;
        const Played run = test::play(std::get<Plan>(std::move(planned)), workload, platform);
        // What cannot be told without running it the search leaves out.
        if (run.plan.claims.makespan && test::largest_peak(run, it.p) <= limit)
          best = std::min(best, run.execution.makespan.count());
      } catch (const InputError&) {
        // Not for these devices and microbatches.
      }
    }
  return best;
}

}  // namespace

TEST_CASE("pipeline/search is never worse than any other flush schedule at the same limit") {
  Dice dice(20251204);
  int strictly = 0, infeasible = 0;
  for (int round = 0; round < 200; ++round) {
    const SearchCase it = random_case(dice, 6, 12, true);
    const Workload workload = test::workload_of(chain_yaml(it), Setting::options(true));
    const Platform platform =
        test::platform_of(test::row_yaml(it.p, fmt::format("{} s", it.latency)));
    CAPTURE(round, it.p, it.m, it.v, it.latency, chain_yaml(it));
    const Planned none =
        test::answer(search_policy(it, ", orders: 0, memory_limit: 1 B"), workload, platform);
    REQUIRE(std::holds_alternative<Infeasible>(none));
    const std::int64_t smallest = std::get<Infeasible>(none).smallest_budget.count();
    const std::int64_t limit = smallest + dice(0, smallest);
    const auto found = test::played_or_smallest(
        search_policy(it, fmt::format(", orders: 400, memory_limit: {} B", limit)), workload,
        platform);
    REQUIRE(std::holds_alternative<Played>(found));
    const Played& run = std::get<Played>(found);
    REQUIRE(test::largest_peak(run, it.p) <= limit);
    REQUIRE(*run.plan.bounds.makespan <= run.execution.makespan);
    const std::int64_t others = best_of_others(it, limit, platform);
    REQUIRE(run.execution.makespan.count() <= others);
    strictly += run.execution.makespan.count() < others ? 1 : 0;
    infeasible += others == INT64_MAX ? 1 : 0;
    if (*run.plan.claims.optimal) REQUIRE(run.execution.makespan == *run.plan.bounds.makespan);
  }
  CHECK(strictly - infeasible > 60);
}

namespace {

/// A row of devices, each with a host memory of its own over a link that is fast enough to matter.
Platform row_with_hosts(const SearchCase& it) {
  return test::platform_of(fmt::format(
      "platform: row\nmemories: {{hbm: {{capacity: unlimited}}, dram: {{capacity: unlimited}}}}\n"
      "processors: {{gpu: {{memory: hbm}}}}\n"
      "links: {{pcie: {{between: [hbm, dram], bandwidth: 4 B/s}}}}\n"
      "cluster: {{count: {}, topology: chain, link: {{name: l, latency: {} s}}}}\n",
      it.p, it.latency));
}

std::int64_t most_on_devices(const Played& run, const Platform& platform) {
  std::int64_t peak = 0;
  for (const Processor& processor : platform.processors)
    peak = std::max(peak, run.peak(processor.memory));
  return peak;
}

}  // namespace

TEST_CASE("pipeline/search with recomputation and offload is never worse than others with them") {
  Dice dice(20261121);
  int strictly = 0, proven = 0;
  for (const std::string more : {", recompute: full", ", recompute: [0]", ", offload: all",
                                 ", offload: 50 %, distance: 1", ", recompute: [1], offload: [0]"})
    for (int round = 0; round < 24; ++round) {
      const SearchCase it = random_case(dice, 4, 8, true);
      const Workload workload = test::workload_of(chain_yaml(it), Setting::options(true));
      const Platform platform = row_with_hosts(it);
      CAPTURE(more, round, it.p, it.m, it.v, it.latency, chain_yaml(it));
      const Played free =
          test::play_policy(search_policy(it, ", orders: 200" + more), workload, platform);
      test::require_claims_hold(free);
      REQUIRE(free.plan.bounds.makespan);
      REQUIRE(*free.plan.bounds.makespan <= free.execution.makespan);
      const std::int64_t others = best_of_others(it, INT64_MAX, platform, more);
      REQUIRE(free.execution.makespan.count() <= others);
      strictly += free.execution.makespan.count() < others ? 1 : 0;
      proven += *free.plan.claims.optimal ? 1 : 0;
      const std::int64_t needs = most_on_devices(free, platform);
      const auto found = test::played_or_smallest(
          search_policy(it, fmt::format(", orders: 200, memory_limit: {} B{}", needs - 1, more)),
          workload, platform);
      if (!std::holds_alternative<Played>(found)) continue;
      const Played& less = std::get<Played>(found);
      test::require_claims_hold(less);
      REQUIRE(most_on_devices(less, platform) < needs);
      REQUIRE(*less.plan.bounds.makespan <= less.execution.makespan);
    }
  CHECK(strictly > 5);
  CHECK(proven > 5);
}

TEST_CASE("pipeline/search with replicas is never worse than others with them at the same limit") {
  Dice dice(20261122);
  int strictly = 0, tight = 0, proven = 0;
  for (int round = 0; round < 60; ++round) {
    // The policies' microbatches and all devices: those of both replicas.
    SearchCase it = random_case(dice, 4, 6, true);
    it.p *= 2;
    it.m *= 2;
    const Workload workload = test::workload_of(chain_yaml(it), Setting::options(true));
    const Platform platform = test::platform_of(
        fmt::format("platform: c\nmemories: {{hbm: {{capacity: unlimited}}}}\nprocessors: {{gpu: "
                    "{{memory: hbm}}}}\ncluster: {{count: {}, topology: mesh, link: {{name: l, "
                    "bandwidth: {} B/s, latency: {} s}}}}\n",
                    it.p, dice(1, 4), it.latency));
    for (const std::string how : {", data_parallel: 2", ", replicas: 2"}) {
      CAPTURE(round, how, it.p, it.m, it.v, chain_yaml(it));
      const Played free = std::get<Played>(
          test::played_or_smallest(search_policy(it, ", orders: 100" + how), workload, platform));
      const std::int64_t others = best_of_others(it, INT64_MAX, platform, how);
      REQUIRE(free.execution.makespan.count() <= others);
      strictly += free.execution.makespan.count() < others ? 1 : 0;
      proven += *free.plan.claims.optimal ? 1 : 0;
      const std::int64_t limit = test::largest_peak(free, it.p) - 1;
      const auto less = test::played_or_smallest(
          search_policy(it, fmt::format(", orders: 100, memory_limit: {} B", limit) + how),
          workload, platform);
      if (!std::holds_alternative<Played>(less)) continue;
      ++tight;
      REQUIRE(test::largest_peak(std::get<Played>(less), it.p) <= limit);
      REQUIRE(std::get<Played>(less).execution.makespan.count() <=
              best_of_others(it, limit, platform, how));
    }
  }
  CHECK(strictly > 20);
  CHECK(tight > 20);
  CHECK(proven > 20);
}

// One stage, two replicas of two microbatches: F and BW 2 s and 3 s, 12 B of gradients in two
// rounds of 6 B at 2 B/s, and an optimizer of 1 s. Nothing can be faster than 2 x 5 + 2 x 3 + 1 s.
TEST_CASE("pipeline/search counts the reduction of replicas in its bound") {
  const Workload workload = test::workload_of(
      "workload: w\noptimizer: sgd\nchain:\n  - {name: s, forward: 2 s, backward: 3 s, saved: 1 B, "
      "parameters: 12 B, optimizer_step: 1 s}\n");
  const Platform platform = test::platform_of(
      "platform: c\nmemories: {hbm: {capacity: unlimited}}\nprocessors: {gpu: {memory: hbm}}\n"
      "cluster: {count: 2, topology: mesh, link: {name: l, bandwidth: 2 B/s}}\n");
  for (const char* how : {"data_parallel: 2", "replicas: 2"}) {
    const Played it = test::play_policy(
        fmt::format("{{name: pipeline/search, microbatches: 4, backward: whole, {}}}", how),
        workload, platform);
    CHECK(it.execution.makespan == seconds(17));
    CHECK(it.plan.bounds.makespan == seconds(17));
    CHECK(*it.plan.claims.optimal);
  }
}

TEST_CASE("pipeline/search says the same every time") {
  Dice dice(20251205);
  const SearchCase it = random_case(dice, 4, 8, true);
  const Workload workload = test::workload_of(chain_yaml(it), Setting::options(true));
  const Platform platform = test::platform_of(test::row_yaml(it.p, "1 s"));
  const Plan first = test::planned(search_policy(it, ""), workload, platform);
  const Plan second = test::planned(search_policy(it, ""), workload, platform);
  REQUIRE(first.steps.size() == second.steps.size());
  for (std::size_t s = 0; s < first.steps.size(); ++s) {
    CHECK(first.steps[s].op == second.steps[s].op);
    CHECK(first.steps[s].microbatch == second.steps[s].microbatch);
    CHECK(first.steps[s].lane == second.steps[s].lane);
  }
}

TEST_CASE("pipeline/search with whole backwards, capacities for limits, and stages to be cut") {
  // Four stages on two devices, one or two a device: F 1 s and BW 2 s each, 1 B a microbatch.
  const std::string chain =
      "workload: w\nchain:\n  - {name: a, forward: 1 s, backward: 2 s, saved: 1 B}\n"
      "  - {name: b, forward: 1 s, backward: 2 s, saved: 1 B}\n"
      "  - {name: c, forward: 1 s, backward: 2 s, saved: 1 B}\n"
      "  - {name: d, forward: 1 s, backward: 2 s, saved: 1 B}\n";
  const Workload workload = test::workload_of(chain);
  Platform platform = test::platform_of(test::row_yaml(2, "0 s"));
  const std::string policy = "{name: pipeline/search, microbatches: 4, backward: whole}";
  const Played roomy =
      test::play_policy(test::with_parameters(policy, ", virtual_stages: 2"), workload, platform);
  test::require_claims_hold(roomy);
  // On a V, chunks (0, 3) and (1, 2): the second device cannot begin before 1 s, works for 24 s,
  // and after its last backward comes that of the first chunk.
  CHECK(roomy.execution.makespan == seconds(27));
  CHECK(*roomy.plan.claims.optimal);
  // One microbatch after the other, 12 s each, needs two bytes everywhere; they may overlap a bit.
  for (Memory& memory : platform.memories) memory.capacity = Bytes{2};
  const Played tight = test::play_policy(policy, workload, platform);
  test::require_claims_hold(tight);
  CHECK(tight.execution.status == RunStatus::ok);
  CHECK(tight.execution.makespan > seconds(27));
  CHECK(tight.execution.makespan <= seconds(48));
  for (Memory& memory : platform.memories) memory.capacity = Bytes{1};
  const Planned none = test::answer(policy, workload, platform);
  REQUIRE(std::holds_alternative<Infeasible>(none));
  CHECK(std::get<Infeasible>(none).smallest_budget == Bytes{2});
}

}  // namespace plimsoll
