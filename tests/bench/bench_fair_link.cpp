// F senders keep one flow each on one fair link of 16 GB/s; when one ends its sender starts
// another.
//
//   bench_fair_link [senders [flows of each]]
//
// Sender f's flow i has 1,000,000 + 7,919 ((31 f + 17 i) mod 997) + f bytes. Prints flows per CPU
// second for the FlowNetwork, which execution uses, and for the FairShare alone; both must end at
// the same picosecond, else exit status 1.
#include "cpu_clock.hpp"
#include "engine/fair_share.hpp"
#include "engine/flow_network.hpp"

#include <array>
#include <cstdio>
#include <vector>

using namespace plimsoll;

namespace {

constexpr ByteRate kCapacity{16'000'000'000};

Bytes size_of(std::uint32_t sender, std::uint32_t turn) {
  return Bytes{1'000'000 + 7'919 * std::int64_t{(31 * sender + 17 * turn) % 997} + sender};
}

struct Outcome {
  Time end;
  double cpu = 0;
};

/// `start(now, sender, bytes)` begins a flow on `link`.
template <class Link, class Start>
Outcome run(Link& link, Start start, std::uint32_t senders, std::uint32_t turns) {
  std::vector<std::uint32_t> turn(senders, 0), ended;
  ended.reserve(senders);
  Outcome outcome;
  const double begin = bench::cpu_seconds();
  for (std::uint32_t f = 0; f < senders; ++f) start(Time{}, f, size_of(f, 0));
  while (link.active() > 0) {
    outcome.end = link.next_end();
    ended.clear();
    link.advance(outcome.end, ended);
    for (const std::uint32_t f : ended) {
      if (++turn[f] < turns) start(outcome.end, f, size_of(f, turn[f]));
    }
  }
  outcome.cpu = bench::cpu_seconds() - begin;
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  const auto senders = static_cast<std::uint32_t>(bench::argument(argc, argv, 1, 1024));
  const auto turns = static_cast<std::uint32_t>(bench::argument(argc, argv, 2, 2000));

  FairShare share(kCapacity);
  const Outcome alone = run(
      share, [&](Time now, std::uint32_t f, Bytes bytes) { share.start(now, f, bytes); }, senders,
      turns);
  FlowNetwork network(std::array{kCapacity});
  const PathId path = network.add_path(std::array{CapacityId{0}});
  const Outcome general = run(
      network, [&](Time now, std::uint32_t f, Bytes bytes) { network.start(now, f, bytes, path); },
      senders, turns);

  const double flows = static_cast<double>(senders) * turns;
  std::printf("senders %u turns %u end_ps %lld fair_share_rate %.4g\n", senders, turns,
              static_cast<long long>(general.end.count()), flows / alone.cpu);
  std::printf("rate %.4g flows per CPU second\n", flows / general.cpu);
  return alone.end == general.end ? 0 : 1;
}
