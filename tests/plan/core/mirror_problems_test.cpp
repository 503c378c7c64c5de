#include "plan/core/mirror_problems.hpp"

#include <functional>

#include <catch2/catch.hpp>

using namespace plimsoll;

namespace {

/// Whether two processors that were the same are alike after one change of the second.
bool alike_after(const std::function<void(Processor&, Memory&)>& change) {
  Platform platform;
  for (const char* number : {"0", "1"}) {
    Memory memory;
    memory.name = std::string("hbm") + number;
    Processor gpu;
    gpu.name = std::string("gpu") + number;
    gpu.memory = MemoryId{static_cast<std::uint32_t>(platform.memories.size())};
    platform.memories.push_back(memory);
    platform.processors.push_back(gpu);
  }
  change(platform.processors[1], platform.memories[1]);
  return are_alike(platform, ProcessorId{0}, ProcessorId{1});
}

}  // namespace

TEST_CASE("processors are alike where all but their names and places is the same") {
  CHECK(alike_after([](Processor&, Memory&) {}));
  CHECK_FALSE(alike_after([](Processor& gpu, Memory&) { gpu.streams = 2; }));
  CHECK_FALSE(alike_after([](Processor& gpu, Memory&) { gpu.power = ProcessorPower{}; }));
  CHECK_FALSE(alike_after([](Processor& gpu, Memory&) { gpu.kernels.tile = 2; }));
  CHECK_FALSE(alike_after([](Processor&, Memory& hbm) { hbm.capacity = Bytes{1}; }));
  CHECK_FALSE(alike_after([](Processor&, Memory& hbm) { hbm.read.latency = Time{1}; }));
  // These were left out where the fields were listed one by one: wear is measured by memory.
  CHECK_FALSE(alike_after([](Processor&, Memory& hbm) { hbm.endurance = 1000; }));
  CHECK_FALSE(alike_after([](Processor&, Memory& hbm) { hbm.is_switch = true; }));
}
