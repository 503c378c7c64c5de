// Allocators in steady state: blocks of random sizes come and go, as many as there were.
//
//   bench_allocators [steps]
//
// Prints millions of operations (allocate or free) per second of CPU time with 10, 1,000 and
// 100,000 blocks in use. `refused` is the share of requests that a full device refused, for each of
// which a cache gives back what it can; the last row has a device too small on purpose.
#include "cpu_clock.hpp"
#include "memory/allocator.hpp"

#include <cstdio>
#include <random>
#include <vector>

using namespace plimsoll;

namespace {

constexpr std::size_t kSizes = std::size_t{1} << 16;

/// Half of them up to 1 MiB, half up to 40 MiB.
std::vector<Bytes> random_sizes() {
  std::mt19937_64 random(1);
  std::vector<Bytes> sizes;
  for (std::size_t i = 0; i < kSizes; ++i) {
    const std::uint64_t most = std::uint64_t{random() % 2 == 0 ? 1u : 40u} << 20;
    sizes.emplace_back(static_cast<std::int64_t>(1 + random() % most));
  }
  return sizes;
}

void measure(const char* name, Allocator memory, std::size_t blocks, long steps,
             const std::vector<Bytes>& sizes) {
  std::vector<MemoryBlock> held;
  std::mt19937_64 random(2);
  std::size_t next = 0;
  long refused = 0;
  const auto allocate = [&] {
    const auto block = memory.allocate(sizes[next++ % kSizes]);
    if (block) held.push_back(*block);
    return block.has_value();
  };
  for (std::size_t i = 0; i < blocks; ++i) allocate();
  const double begin = bench::cpu_seconds();
  for (long i = 0; i < steps / 2; ++i) {
    std::swap(held[random() % held.size()], held.back());
    memory.free(held.back());
    held.pop_back();
    while (!allocate()) ++refused;
  }
  const double seconds = bench::cpu_seconds() - begin;
  std::printf("%-24s %9zu %20.2f %8.1f %%\n", name, held.size(),
              1e-6 * static_cast<double>(steps) / seconds,
              200.0 * static_cast<double>(refused) / static_cast<double>(steps + 2 * refused));
}

}  // namespace

int main(int argc, char** argv) {
  const long steps = bench::argument(argc, argv, 1, 4'000'000);
  const std::vector<Bytes> sizes = random_sizes();
  CachingSettings expandable;
  expandable.expandable_segments = true;
  std::printf("%-24s %9s %20s %10s\n", "allocator", "blocks", "million operations/s", "refused");
  for (const std::size_t blocks : {10u, 1'000u, 100'000u}) {
    const Bytes room = Bytes::unlimited(), arena{std::int64_t{1} << 50};
    measure("ideal", Allocator::ideal(room), blocks, steps, sizes);
    measure("best-fit", Allocator::best_fit(arena, Bytes{512}), blocks, steps, sizes);
    if (blocks <= 1'000)  // it looks through the free blocks
      measure("first-fit", Allocator::first_fit(arena, Bytes{512}), blocks, steps, sizes);
    measure("bfc", Allocator::bfc(room), blocks, steps, sizes);
    measure("caching", Allocator::caching(room), blocks, steps, sizes);
    measure("caching, expandable", Allocator::caching(room, expandable), blocks, steps, sizes);
  }
  measure("caching, 16 GiB", Allocator::caching(Bytes{std::int64_t{16} << 30}), 1'400, steps / 10,
          sizes);
}
