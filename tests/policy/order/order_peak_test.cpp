// The orders of least peak: by trying all, by the proven optima of others, and on every network.
#include "policy/order/beam_order.hpp"
#include "policy/order/every_order.hpp"
#include "policy/order/exact_order.hpp"
#include "policy/order/order_bound.hpp"
#include "policy/order/order_state.hpp"
#include "policy/remat/graph/oracle_graphs.hpp"
#include "policy/remat/graph/random_graphs.hpp"
#include "property/random_graphs.hpp"
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"
#include "workload/core/workload_builder.hpp"

#include <fstream>
#include <map>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace plimsoll {
namespace {

using nlohmann::json;

constexpr const char* kMethods[] = {"exact", "beam"};

test::Played played_by(const char* method, const Workload& workload, const Platform& platform) {
  const test::Played run = test::play_policy(
      fmt::format("{{name: order/peak, method: {}}}", method), workload, platform);
  REQUIRE(run.execution.status == RunStatus::ok);
  REQUIRE(run.plan.claims.makespan);
  test::require_claims_hold(run);
  REQUIRE(run.plan.bounds.peak.size() == 1);
  const auto [memory, bound] = run.plan.bounds.peak.front();
  REQUIRE(bound.count() <= run.peak(memory));
  REQUIRE(run.plan.claims.optimal == (bound.count() == run.peak(memory)));
  return run;
}

/// Least over all orders; nothing where there are too many.
std::optional<std::int64_t> least_peak(const Workload& workload, const Platform& platform) {
  const Topology topology(platform);
  const ChainView view = chain_view(workload);
  const Problem problem{workload, view, platform, topology, judge_by_execution};
  return test::EveryOrder(problem).least_peak(20'000);
}

/// `exact` is the least over all orders, `beam` at least that and at most `none`.
class Trials {
 public:
  explicit Trials(Platform platform) : platform_(std::move(platform)) {}

  void run(const Workload& workload) {
    const auto least = least_peak(workload, platform_);
    if (!least) return;
    const std::int64_t none = test::play_policy("none", workload, platform_).peak(MemoryId{0});
    const test::Played exact = played_by("exact", workload, platform_);
    REQUIRE(exact.peak(MemoryId{0}) == *least);
    REQUIRE(exact.plan.claims.optimal == true);
    const std::int64_t beam = played_by("beam", workload, platform_).peak(MemoryId{0});
    REQUIRE(beam >= *least);
    REQUIRE(beam <= none);
    ++all;
    if (*least < none) ++better;
    if (beam == *least) ++met;
  }

  int all = 0, better = 0, met = 0;

 private:
  const Platform platform_;
};

std::string random_layers(test::Dice& dice) {
  std::string yaml = "workload: n\ninput: [4]\nlayers:\n";
  for (std::int64_t layer = 0, n = dice(1, 3); layer < n; ++layer)
    yaml += fmt::format("  - linear: {}\n{}", dice(1, 6), dice(0, 1) == 0 ? "" : "  - relu\n");
  return yaml;
}

/// An instance of tests/oracles/order_only.json, as a forward and backwards: those add to a tensor
/// that several write.
Workload workload_of_instance(const json& instance) {
  WorkloadBuilder builder(instance["name"].get<std::string>());
  std::map<std::string, std::uint32_t> numbers;
  std::map<std::string, OperatorSpec> specs;
  for (const json& tensor : instance["tensors"]) {
    const TensorId id = builder.add({.name = fmt::format("t{}", specs.size()),
                                     .bytes = Bytes{tensor["size"].get<std::int64_t>()}});
    for (const json& by : tensor["producers"]) specs[by.get<std::string>()].kept.push_back(id);
    for (const json& by : tensor["readers"]) specs[by.get<std::string>()].reads.push_back(id);
  }
  // By name they are in a topological order.
  for (auto& [name, spec] : specs) {
    spec.name = name;
    spec.phase = name == "A" ? Phase::forward : Phase::backward;
    spec.given_time = Time{1};
    spec.bare = spec.kept;
    builder.add(spec);
  }
  return builder.freeze();
}

}  // namespace

TEST_CASE("order/peak: exact is the least over all orders of random graphs, and so is the beam") {
  test::Dice dice(20261201);
  Trials compute(test::one_gpu({})), recorded(test::one_gpu({})), shared(test::one_gpu({}));
  Trials networks(test::library_platform("v100-pcie-16gb"));
  for (int round = 0; round < test::rounds(2000); ++round) {
    const std::string yaml = test::random_compute_graph(dice, 8);
    CAPTURE(yaml);
    compute.run(test::workload_of(yaml));
  }
  for (int round = 0; round < test::rounds(1000); ++round) {
    const std::string yaml = test::random_recorded_step(dice, 5);
    CAPTURE(yaml);
    recorded.run(test::workload_of(yaml));
  }
  for (int round = 0; round < test::rounds(1000); ++round) {
    const std::string yaml = test::random_graph(dice, 5);
    CAPTURE(yaml);
    shared.run(test::workload_of(yaml));
  }
  for (int round = 0; round < test::rounds(500); ++round) {
    const std::string yaml = random_layers(dice);
    const WorkloadOptions options{.batch = dice(1, 3),
                                  .optimizer = dice(0, 1) == 0 ? Optimizer::sgd : Optimizer::adam,
                                  .split_backward = dice(0, 1) == 0};
    CAPTURE(yaml);
    networks.run(test::workload_of(yaml, options));
  }
  // Of 4,495 graphs of the full test, 1,579 of which have a better order than their own.
  for (const Trials* trials : {&compute, &recorded, &shared, &networks}) {
    CAPTURE(trials->all, trials->better, trials->met);
    CHECK(trials->better > trials->all / 8);
    CHECK(trials->met == trials->all);
  }
}

TEST_CASE("order/peak meets the optima of OLLA's own tests") {
  std::ifstream file(std::string(PLIMSOLL_SOURCE_DIR) + "/tests/oracles/order_only.json");
  const json instances = json::parse(file)["instances"];
  REQUIRE(instances.size() == 3);
  for (const json& instance : instances) {
    CAPTURE(instance["name"]);
    const OrderGraph graph = order_graph(workload_of_instance(instance));
    const auto least = instance["min_peak"].get<std::int64_t>();
    const ExactOrder exact = exact_order(graph, 0, least + 1, kMostOrderStates, Work());
    REQUIRE_FALSE(exact.order.empty());
    CHECK(peak_of(graph, exact.order) == least);
    const auto beam = beam_order(graph, 0, least + 1, {}, Work());
    REQUIRE(beam);
    CHECK(peak_of(graph, *beam) == least);
    // None is better.
    CHECK(exact_order(graph, 0, least, kMostOrderStates, Work()).is_proven);
    CHECK(exact_order(graph, 0, least, kMostOrderStates, Work()).order.empty());
  }
}

TEST_CASE("order/peak meets the fronts of free orders where they run nothing again") {
  const json graphs = test::rematerialization_oracle()["graphs"];
  const Platform platform = test::one_gpu({});
  int points = 0, lower = 0;
  for (const auto& [name, graph] : graphs.items())
    for (const auto& [convention, unread] : test::kConventions) {
      const Workload workload = test::workload_of(test::compute_graph_yaml(graph, unread));
      const json& last = graph[convention]["pareto_any_order"].back();
      REQUIRE(last[1] == graph["total_dur"]);
      for (const char* method : kMethods) {
        CAPTURE(name, convention, method);
        CHECK(played_by(method, workload, platform).peak(MemoryId{0}) ==
              last[0].get<std::int64_t>());
      }
      ++points;
      if (last[0] < graph[convention]["no_recompute_index_order_peak"]) ++lower;
    }
  CHECK(points == 16);
  CHECK(lower == 4);
}

TEST_CASE("order/peak: reversed in time a graph has the same least peak") {
  test::Dice dice(20261202);
  for (int round = 0; round < test::rounds(1000); ++round) {
    const std::string yaml =
        round % 2 == 0 ? test::random_compute_graph(dice, 14) : test::random_recorded_step(dice, 8);
    CAPTURE(yaml);
    const OrderGraph graph = order_graph(test::workload_of(yaml));
    const OrderGraph back = reversed(graph);
    const std::int64_t given = peak_of(graph, graph.given);
    REQUIRE(peak_of(back, back.given) == given);
    const std::int64_t bound = cut_bound(graph, graph.given, Work());
    REQUIRE(cut_bound(back, back.given, Work()) == bound);
    const ExactOrder forth = exact_order(graph, bound, given + 1, kMostOrderStates, Work());
    const ExactOrder other = exact_order(back, bound, given + 1, kMostOrderStates, Work());
    REQUIRE(forth.is_proven);
    REQUIRE(other.is_proven);
    REQUIRE(peak_of(graph, forth.order) == peak_of(back, other.order));
    REQUIRE(bound <= peak_of(graph, forth.order));
  }
}

TEST_CASE("order/peak on every network: no more than `none`, in the same time, as claimed") {
  test::Sample sample(3);
  Platform platform = test::library_platform("v100-sxm2-host");
  const MemoryId home = *platform.find_memory("hbm");
  platform.memories[index(home)].capacity = Bytes::unlimited();
  int all = 0, better = 0, proven = 0;
  for (const std::string& network : test::library())
    for (const bool is_split : {false, true})
      for (const bool is_autocast : {false, true}) {
        if (!sample.takes_next() || (is_autocast && !test::takes_autocast(network))) continue;
        WorkloadOptions options{
            .batch = 2, .optimizer = Optimizer::adamw, .split_backward = is_split};
        if (is_autocast) options.autocast = DType::fp16;
        CAPTURE(network, is_split, is_autocast);
        const Workload workload = build(test::library_network(network), options);
        const test::Played none = test::play_policy("none", workload, platform);
        const test::Played run = test::play_policy("order/peak", workload, platform);
        test::require_claims_hold(run);
        CHECK(run.execution.makespan == none.execution.makespan);
        CHECK(run.peak(home) <= none.peak(home));
        const std::int64_t bound = run.plan.bounds.peak.front().second.count();
        REQUIRE(bound <= run.peak(home));
        REQUIRE(run.plan.claims.optimal == (bound == run.peak(home)));
        ++all;
        if (run.peak(home) < none.peak(home)) ++better;
        if (run.plan.claims.optimal == true) ++proven;
      }
  CAPTURE(all, better, proven);
  CHECK(better > all / 4);
  // More than half of all of them; of a sample it may be fewer.
  CHECK(proven > all / (test::runs_all() ? 2 : 3));
}

TEST_CASE("order/peak: passes over all gradients stay whole") {
  const Platform platform = test::library_platform("v100-pcie-16gb");
  const Workload workload = test::workload_of(
      "workload: n\ninput: [4]\nlayers:\n  - linear: 8\n  - relu\n  - linear: 4\n",
      {.optimizer = Optimizer::sgd, .clips_gradients = Location{}});
  const test::Played run = played_by("exact", workload, platform);
  std::size_t norms = 0, clips = 0;
  for (const Step& step : run.plan.steps) {
    const std::string& name = workload[step.op].name;
    if (name.ends_with(".norm")) {
      ++norms;
      CHECK(clips == 0);
    }
    if (name.ends_with(".clip")) ++clips;
    if (name.ends_with(".update")) CHECK(clips == norms);
  }
  CHECK(norms == 2);
  CHECK(clips == 2);
}

TEST_CASE("order/peak: operators between the backwards and the updates, and behind those") {
  const Platform platform = test::library_platform("h100-sxm-80gb");
  const MemoryId home = *platform.find_memory("hbm");
  const Located<Fp8> in_blocks{{.recipe = Fp8Recipe::block}, {}};
  const std::vector<WorkloadOptions> steps = {
      // A weight is orthogonalized and changed before the next one; others have one operator.
      {.optimizer = Optimizer::muon},
      {.optimizer = Optimizer::muon, .clips_gradients = Location{}},
      // Behind the updates, operators that use no gradient make the weights in fp8.
      {.dtype = DType::bf16, .optimizer = Optimizer::sgd, .fp8 = in_blocks},
      {.dtype = DType::bf16,
       .optimizer = Optimizer::sgd,
       .fp8 = in_blocks,
       .clips_gradients = Location{}},
      // Three passes before the updates: unscaled, measured, clipped.
      {.dtype = DType::fp16,
       .optimizer = Optimizer::adamw,
       .master_weights = true,
       .clips_gradients = Location{}}};
  const std::string layers =
      "workload: n\ninput: [16, 128]\nlayers:\n  - linear: 256\n  - relu\n  - linear: 128\n";
  for (std::size_t s = 0; s < steps.size(); ++s) {
    CAPTURE(s);
    const Workload workload = test::workload_of(layers, steps[s]);
    const OrderGraph graph = order_graph(workload);
    REQUIRE(graph.given.size() == graph.nodes());
    REQUIRE(needs_of(graph, graph.given));
    const test::Played none = test::play_policy("none", workload, platform);
    const test::Played run = test::play_policy("order/peak", workload, platform);
    REQUIRE(run.execution.status == RunStatus::ok);
    test::require_claims_hold(run);
    CHECK(run.execution.makespan == none.execution.makespan);
    CHECK(run.peak(home) <= none.peak(home));
  }
}

TEST_CASE("order/peak says what its exact method cannot do") {
  const Platform platform = test::one_gpu({});
  test::Dice dice(20261203);
  // Each of many reads five of twenty.
  const auto wide = [&](int operators) {
    std::string yaml = "workload: g\ngraph:\n  operators:\n";
    for (int v = 0; v < operators; ++v) {
      std::string reads;
      for (int read = 0; v >= 20 && read < 5; ++read)
        reads += fmt::format("{}v{}", read == 0 ? "" : ", ", dice(0, 3) + 4 * read);
      yaml +=
          fmt::format("    - {{name: o{0}, inputs: [{1}], time: 1 s, outputs: {{v{0}: {2} B}}}}\n",
                      v, reads, dice(1, 100));
    }
    return test::workload_of(yaml);
  };
  const Workload many = wide(70);
  CHECK_THROWS_WITH(
      test::planned("{name: order/peak, method: exact}", many, platform),
      Catch::Contains("the best of 70 operators and 0 barriers between them is not known"));
  CHECK(test::play_policy("order/peak", many, platform).plan.claims.optimal == false);
  CHECK(played_by("exact", wide(25), platform).plan.claims.optimal == true);
  const OrderGraph graph = order_graph(wide(40));
  CHECK_FALSE(exact_order(graph, 0, peak_of(graph, graph.given), 1000, Work()).is_proven);
}

}  // namespace plimsoll
