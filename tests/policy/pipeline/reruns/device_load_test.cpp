#include "policy/pipeline/reruns/device_load.hpp"

#include "policy/pipeline/orders/one_f_one_b.hpp"
#include "policy/pipeline/reruns/device_families.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

namespace plimsoll {
namespace {

std::uint32_t most_kept(const std::vector<DeviceLoad>& loads) {
  std::uint32_t most = 0;
  for (const DeviceLoad& load : loads)
    for (const SlotCounts& it : load.others) most = std::max(most, it.kept);
  return most;
}

}  // namespace

TEST_CASE("1f1b: device i runs a task beside at most min(m, p - i) - 1 others") {
  for (const std::uint32_t p : {1U, 2U, 5U})
    for (const std::uint32_t m : {1U, 3U, 8U}) {
      const Schedule schedule = one_f_one_b(p, m, 1);
      for (std::uint32_t device = 0; device < p; ++device)
        CHECK(most_kept(device_loads(schedule.orders[device])) == std::min(m, p - device) - 1);
    }
}

TEST_CASE("a half for weights holds on to what its microbatch kept") {
  // Two microbatches; the halves for weights come last. When the second half for inputs runs, the
  // first microbatch waits for its weights; when that runs, both have been through.
  const std::vector<Task> order{
      {Task::Kind::forward, 0, 0},         {Task::Kind::forward, 0, 1},
      {Task::Kind::backward_input, 0, 0},  {Task::Kind::backward_input, 0, 1},
      {Task::Kind::backward_weight, 0, 0}, {Task::Kind::backward_weight, 0, 1}};
  // Before each task but for its own microbatch: nothing; one kept; one kept; one held; one held;
  // nothing.
  const std::vector<DeviceLoad> expected{{0, {}}, {0, {{0, 0, 1}}}, {0, {{0, 1, 0}}}};
  CHECK(device_loads(order) == expected);
}

TEST_CASE("devices that run the same slot are a family") {
  // Devices 0 and 2 run slots 0 and 2 in two directions, device 1 slot 1 in both.
  Schedule schedule{.placement = {0, 1, 2}};
  schedule.orders = {{{Task::Kind::forward, 0, 0}, {Task::Kind::forward, 2, 1}},
                     {{Task::Kind::forward, 1, 0}, {Task::Kind::forward, 1, 1}},
                     {{Task::Kind::forward, 2, 0}, {Task::Kind::forward, 0, 1}}};
  const std::vector<DeviceFamily> families = device_families(schedule);
  REQUIRE(families.size() == 2);
  CHECK(families[0].devices == std::vector<std::uint32_t>{0, 2});
  CHECK(families[0].slots == std::vector<std::uint32_t>{0, 2});
  CHECK(families[1].devices == std::vector<std::uint32_t>{1});
  CHECK(families[1].slots == std::vector<std::uint32_t>{1});
}

}  // namespace plimsoll
