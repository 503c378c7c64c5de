// When swapped tensors come back: on demand, in time, and as early as there is room.
#include "policy/offload/copies/swap_timing.hpp"

#include "support/chains.hpp"
#include "support/policies.hpp"

namespace plimsoll {
namespace {

std::vector<std::uint32_t> issued_at(const std::vector<SwapInterval>& trips) {
  std::vector<std::uint32_t> at;
  for (const SwapInterval& it : trips) at.push_back(it.in_after);
  return at;
}

}  // namespace

TEST_CASE("copies back are issued earlier than on demand as far as there is room") {
  // Five stages of 1 s each way that save 10 B; operators 0 to 4 run forward, 5 to 9 backward. Kept
  // whole, 10, 20, 30, 40, 50, 50, 40, 30, 20, 10 B are there. A copy of 10 B takes 2 s.
  const Workload workload = test::chain_workload(test::equal_chain(5, {.output = 0}));
  const Platform platform = test::one_gpu({.bandwidth_out = 5, .bandwidth_in = 5});
  const Topology topology(platform);
  const ChainView view = chain_view(workload);
  const Problem problem{workload, view, platform, topology};
  const OffloadMemories memories{ProcessorId{0}, MemoryId{0}, MemoryId{1}};
  const SwapTiming timing(problem, memories);
  const LoadProfile profile(problem, memories);

  // saved_1 is read by forward 2 last and by backward 2, operator 8, again; saved_2 by operator 7.
  std::vector<SavedTensor> swapped = saved_tensors(workload);
  swapped.resize(2);
  REQUIRE(swapped[0].first_backward_use == 8);
  REQUIRE(swapped[1].first_backward_use == 7);

  // In time: saved_1 is due at 8 s and starts back at 6 s, when operator 6 does; saved_2 has to be
  // back by then, too, and starts at 4 s.
  const std::vector<SwapInterval> early = timing.latest(swapped);
  CHECK(issued_at(early) == std::vector<std::uint32_t>{4, 6});
  const std::vector<SwapInterval> late = on_demand(swapped);
  CHECK(issued_at(late) == std::vector<std::uint32_t>{6, 7});

  // On demand 10, 20, 20, 20, 30, 30, 20, 20, 20, 10 B are there: 30 B at most. Within 30 B saved_2
  // may be there during operator 6, not 5, and saved_1 during operator 7; 6 is taken.
  const auto within = [&](std::int64_t budget) {
    return issued_at(as_early_as_fits(early, late, profile, Bytes{budget}));
  };
  CHECK(profile.peak(late) == Bytes{30});
  CHECK(within(30) == std::vector<std::uint32_t>{5, 6});
  // With 40 B both come in time; with 20 B, which on demand passes, neither moves.
  CHECK(within(40) == issued_at(early));
  CHECK(within(20) == issued_at(late));
}

}  // namespace plimsoll
