// Planners of single operators on the networks of the library, in fp32 and under autocast: whom they are
// never behind, what they claim, and that what they refuse cannot be had.
#include "support/library.hpp"
#include "support/policies.hpp"
#include "support/sample.hpp"

#include <functional>
#include <optional>
#include <set>

#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Played;

/// Of networks that are walked by default: larger ones take too long.
constexpr std::size_t kMostOperators = 300;

/// A training step on one GPU of as much memory as it likes, with a budget.
struct NetworkWithin {
  std::string name;
  bool is_autocast = false;
  Workload workload;
  Platform platform;
  MemoryId home{};
  std::int64_t peak = 0;  ///< of keeping everything
  std::int64_t budget = 0;

  /// Nothing where there is no plan.
  [[nodiscard]] std::optional<Played> run(const char* policy) const {
    CAPTURE(policy);
    auto found = test::played_or_smallest(
        test::with_parameters(policy, fmt::format(", budget: {} B", budget)), workload, platform);
    if (const auto* smallest = std::get_if<Bytes>(&found)) {
      CHECK(smallest->count() > budget);
      return std::nullopt;
    }
    CHECK(std::get<Played>(found).peak(home) <= budget);
    return std::get<Played>(std::move(found));
  }
};

std::optional<NetworkWithin> network_on_gpu(const std::string& name, bool is_autocast,
                                            Optimizer optimizer) {
  if (is_autocast && !test::takes_autocast(name)) return std::nullopt;
  WorkloadOptions options{.batch = 32, .optimizer = optimizer};
  if (is_autocast) options.autocast = DType::fp16;
  NetworkWithin it{.name = name, .is_autocast = is_autocast};
  it.workload = build(test::library_network(name), options);
  it.platform = test::library_platform("v100-pcie-16gb");
  it.home = it.platform.processors.front().memory;
  it.platform.memories[static_cast<std::size_t>(it.home)].capacity = Bytes::unlimited();
  it.peak = test::play_policy("none", it.workload, it.platform).peak(it.home);
  return it;
}

/// One of `one_in` of all networks within 90, 80, ..., 40 % of their memory.
void for_networks(std::uint64_t one_in, const std::function<void(const NetworkWithin&)>& check) {
  test::Sample sample(one_in);
  for (const std::string& name : test::library())
    for (const bool is_autocast : {false, true})
      for (int tenths = 9; tenths >= 4; --tenths) {
        if (!sample.takes_next()) continue;
        auto it = network_on_gpu(name, is_autocast, Optimizer::sgd_momentum);
        if (!it || (!test::runs_all() && it->workload.operators.size() > kMostOperators)) continue;
        it->budget = it->peak * tenths / 10;
        CAPTURE(name, is_autocast, tenths);
        check(*it);
      }
}

}  // namespace

TEST_CASE("hybrid/graph is behind hybrid/best on no network, and measures what it claims") {
  for_networks(101, [](const NetworkWithin& it) {
    const auto graph = it.run("hybrid/graph"), best = it.run("hybrid/best");
    if (best) REQUIRE(graph.has_value());
    if (best) CHECK(graph->execution.makespan <= best->execution.makespan);
  });
}

TEST_CASE("what remat/search refuses on a network is proven not to be there") {
  for_networks(37, [](const NetworkWithin& it) {
    const Planned planned = test::answer(
        fmt::format("{{name: remat/search, budget: {} B}}", it.budget), it.workload, it.platform);
    if (const auto* no = std::get_if<Infeasible>(&planned))
      CHECK(no->why.find("no proof") == std::string::npos);
  });
}

TEST_CASE("within 60 % of a transformer's memory remat/search adds at most half of rotor's time") {
  // In fp32; under autocast it adds 48 to 74 % of that.
  const std::set<std::string> small{"gpt2-small", "vit-s-16"};
  for (const std::string& name : test::library()) {
    if (!name.starts_with("gpt2-") && !name.starts_with("bert-") && !name.starts_with("vit-"))
      continue;
    if (!test::runs_all() && !small.contains(name)) continue;
    auto it = network_on_gpu(name, false, Optimizer::adamw);
    REQUIRE(it);
    CAPTURE(name);
    const Time once = test::play_policy("none", it->workload, it->platform).execution.makespan;
    it->budget = it->peak * 6 / 10;
    const auto searched = it->run("remat/search"), rotor = it->run("remat/rotor");
    REQUIRE(searched);
    REQUIRE(rotor);
    CHECK((searched->execution.makespan - once) * 2 <= rotor->execution.makespan - once);
  }
}

}  // namespace plimsoll
