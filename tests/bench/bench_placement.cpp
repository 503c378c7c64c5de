// Placement of buffers ahead of time: how often the exact search finds the known optimum, and how
// long it takes.
//
//   bench_placement [instances] [steps in millions] [buffers]
//
// Each row is a family of random lists of `buffers` buffers (500) that fit into 1 MiB by
// construction: tilings by straight cuts, some with their tiles split in time, some with a few tiles
// left out; tilings by pinwheels; and memories that are kept full with short-lived buffers in
// multiples of 8 KiB, of which a share fills its gap exactly. Prints how many were placed within
// that capacity, the mean and longest CPU time, and how far the best rule is above the capacity. The
// last rows are the rules alone, with 10,000 buffers.
#include "cpu_clock.hpp"
#include "memory/placement/place.hpp"
#include "support/buffers.hpp"
#include "support/network_buffers.hpp"

#include <cstdio>
#include <vector>

using namespace plimsoll;

namespace {

constexpr std::int64_t kCapacity = 1 << 20;

struct Family {
  const char* name;
  std::vector<TimedBuffer> (*make)(std::uint64_t seed, std::size_t count);
};

const Family kFamilies[] = {
    {"straight cuts",
     [](std::uint64_t seed, std::size_t n) {
       return test::Tiler(seed, 1000, kCapacity).cut(n, 64).buffers();
     }},
    {"cuts, split in time",
     [](std::uint64_t seed, std::size_t n) {
       return test::Tiler(seed, 1000, kCapacity).cut(n / 2, 64).split(n).buffers();
     }},
    {"cuts, loosened",
     [](std::uint64_t seed, std::size_t n) {
       return test::Tiler(seed, 1000, kCapacity).cut(n, 64).loosen(20).buffers();
     }},
    {"pinwheels",
     [](std::uint64_t seed, std::size_t n) {
       return test::Tiler(seed, 1000, kCapacity).whirl(n, 64).buffers();
     }},
    {"kept full, 5 % exact",
     [](std::uint64_t seed, std::size_t n) {
       return test::filled_memory(seed, n, kCapacity, 8192, 5);
     }},
    {"kept full, 30 % exact",
     [](std::uint64_t seed, std::size_t n) {
       return test::filled_memory(seed, n, kCapacity, 8192, 30);
     }},
    {"a network compiled",
     [](std::uint64_t seed, std::size_t n) {
       return test::NetworkMemory(seed, kCapacity, 4096).buffers(n);
     }},
};

void measure_exact(const Family& family, long instances, std::int64_t steps, std::size_t count) {
  long fit = 0;
  double sum = 0, most = 0, excess = 0;
  for (long i = 0; i < instances; ++i) {
    const std::vector<TimedBuffer> buffers = family.make(static_cast<std::uint64_t>(i), count);
    const Bytes by_rules = end_of(buffers, place_by_rule(buffers, PlacementRule::best));
    excess += static_cast<double>(by_rules.count()) / kCapacity - 1;
    const double begin = bench::cpu_seconds();
    const ExactPlacement found = fit_exactly(buffers, Bytes{kCapacity}, steps);
    const double took = bench::cpu_seconds() - begin;
    if (found.fit == Fit::does_not_fit || collision_in(buffers, found.offsets)) {
      std::puts("a wrong answer");
      return;
    }
    fit += found.fit == Fit::fits ? 1 : 0;
    sum += took;
    most = std::max(most, took);
  }
  std::printf("%-24s %3ld of %3ld placed   mean %7.3f s   longest %7.3f s   best rule %+.0f %%\n",
              family.name, fit, instances, sum / static_cast<double>(instances), most,
              100 * excess / static_cast<double>(instances));
}

void measure_rules() {
  const auto buffers = test::filled_memory(1, 10'000, std::int64_t{1} << 30, 8192, 5);
  for (const std::string& name : placement_rule_names()) {
    const double begin = bench::cpu_seconds();
    const Offsets offsets = place_by_rule(buffers, *placement_rule(name));
    const double took = bench::cpu_seconds() - begin;
    const double above = static_cast<double>(end_of(buffers, offsets).count()) /
                         static_cast<double>(load_of(buffers).count());
    std::printf("%-24s %zu buffers   %7.3f s   end / load %.3f\n", name.c_str(), buffers.size(),
                took, above);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const long instances = bench::argument(argc, argv, 1, 10);
  const std::int64_t steps = bench::argument(argc, argv, 2, 2000) * 1'000'000;
  const auto count = static_cast<std::size_t>(bench::argument(argc, argv, 3, 500));
  for (const Family& family : kFamilies) measure_exact(family, instances, steps, count);
  measure_rules();
}
