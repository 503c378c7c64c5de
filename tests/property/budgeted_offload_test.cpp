// The planners of offload with a budget, on the networks of the library.
#include "support/library.hpp"
#include "support/policies.hpp"

#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::library;
using test::library_network;
using test::library_platform;
using test::Played;

}  // namespace

TEST_CASE("every network of the library is offloaded under a budget, as claimed") {
  const Platform platform = library_platform("v100-sxm2-host");
  const MemoryId hbm = *platform.find_memory("hbm");
  for (const std::string& name : library()) {
    const Workload workload =
        build(library_network(name), {.batch = 4, .optimizer = Optimizer::sgd_momentum});
    const std::int64_t none = test::play_policy("none", workload, platform).peak(hbm);
    for (const char* policy : {"offload/greedy", "offload/dynamic", "offload/exact"})
      for (const int percent : {100, 80, 60}) {
        CAPTURE(name, policy, percent);
        std::int64_t budget = none * percent / 100;
        const Played it = test::played_within(budget, hbm, policy, workload, platform);
        REQUIRE(it.plan.bounds.makespan);
      }
  }
}

}  // namespace plimsoll
