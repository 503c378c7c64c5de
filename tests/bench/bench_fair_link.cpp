// F senders keep one flow each on one fair link of 16 GB/s; when one ends its sender starts
// another.
//
//   bench_fair_link [senders [flows of each]]
//
// Sender f's flow i has 1,000,000 + 7,919 ((31 f + 17 i) mod 997) + f bytes. Prints flows per CPU
// second. The link is never idle, so the last end is when all bytes have passed, at most 1 ps later
// for each flow; else exit status 1.
#include "cpu_clock.hpp"
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
  Bytes bytes;
  double cpu = 0;
};

Outcome run(std::uint32_t senders, std::uint32_t turns) {
  FlowNetwork link(std::array{kCapacity});
  const PathId path = link.add_path(std::array{CapacityId{0}});
  std::vector<std::uint32_t> turn(senders, 0), ended;
  ended.reserve(senders);
  Outcome outcome;
  const auto start = [&](std::uint32_t f) {
    outcome.bytes += size_of(f, turn[f]);
    link.start(outcome.end, f, size_of(f, turn[f]), path);
  };
  const double begin = bench::cpu_seconds();
  for (std::uint32_t f = 0; f < senders; ++f) start(f);
  while (link.active() > 0) {
    outcome.end = link.next_end();
    ended.clear();
    link.advance(outcome.end, ended);
    for (const std::uint32_t f : ended)
      if (++turn[f] < turns) start(f);
  }
  outcome.cpu = bench::cpu_seconds() - begin;
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  const auto senders = static_cast<std::uint32_t>(bench::argument(argc, argv, 1, 1024));
  const auto turns = static_cast<std::uint32_t>(bench::argument(argc, argv, 2, 2000));

  const Outcome it = run(senders, turns);
  const double flows = static_cast<double>(senders) * turns;
  std::printf("senders %u turns %u end_ps %lld\n", senders, turns,
              static_cast<long long>(it.end.count()));
  std::printf("rate %.4g flows per CPU second\n", flows / it.cpu);
  const Time late = it.end - transfer_time(it.bytes, kCapacity);
  return late >= Time{} && static_cast<double>(late.count()) <= flows ? 0 : 1;
}
