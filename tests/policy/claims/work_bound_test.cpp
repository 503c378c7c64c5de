// The bound that every plan has, whatever its policy: the work of the busiest processor.
#include "policy/claims/work_bound.hpp"

#include "support/chains.hpp"
#include "support/policies.hpp"

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

using test::Played;
using test::seconds;

constexpr const char* kTwoGpus =
    "platform: two\nmemories:\n  hbm0: {capacity: unlimited}\n  hbm1: {capacity: unlimited}\n"
    "processors:\n  gpu0: {memory: hbm0}\n  gpu1: {memory: hbm1}\n"
    "links:\n  l: {between: [hbm0, hbm1], bandwidth: 1 GB/s}\n";

struct Bounded {
  Time bound, makespan;
};

Bounded bounded(const std::string& policy, const Workload& workload, const Platform& platform) {
  const Played it = test::play_policy(policy, workload, platform);
  const Topology topology(platform);
  const ChainView view = chain_view(workload);
  return {work_bound(it.plan, Problem{workload, view, platform, topology}), it.execution.makespan};
}

}  // namespace

TEST_CASE("a processor runs each of its operators once at least") {
  // 6 stages of 1 s forward and 2 s backward: 18 s.
  const Workload workload =
      test::chain_workload(test::equal_chain(6, {.forward = 1, .backward = 2}));
  const Platform platform = test::platform_of(test::platform_yaml({}));
  const Bounded none = bounded("none", workload, platform);
  CHECK(none.bound == seconds(18));
  CHECK(none.makespan == none.bound);
  for (const char* policy :
       {"remat/every-stage", "remat/sqrt", "offload/all", "offload/vdnn-all"}) {
    CAPTURE(policy);
    const Bounded it = bounded(policy, workload, platform);
    CHECK(it.bound == seconds(18));
    CHECK(it.makespan > it.bound);  // runs again, or waits for copies at 1 B/s
  }
}

TEST_CASE("a pipeline takes at least as long as its busiest device works") {
  // Three microbatches of 1 + 2 s on the first device, of 3 + 4 s on the second: 21 s. The second
  // waits for one forward of 1 s and the first then runs one backward of 2 s.
  const Workload workload = test::workload_of(
      "workload: uneven\nchain:\n  - {name: a, forward: 1 s, backward: 2 s, saved: 1 B}\n"
      "  - {name: b, forward: 3 s, backward: 4 s, saved: 1 B}\n");
  const Bounded it =
      bounded("{name: pipeline/1f1b, microbatches: 3}", workload, test::platform_of(kTwoGpus));
  CHECK(it.bound == seconds(21));
  CHECK(it.makespan == seconds(24));
}

}  // namespace plimsoll
