// The workload of bench_execution in SimGrid's S4U interface (3.32), for comparison. SimGrid
// keeps no account of memory. The network model is set to the plain one (CM02, no cross-traffic),
// in which the makespan is the closed form; the program prints it.
//
//   simgrid_pipeline [stages [microbatches]]
#include "cpu_clock.hpp"

#include <cstdio>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace s4u = simgrid::s4u;

namespace {

constexpr double kFlopsPerSecond = 1e12;
constexpr double kFlops = 1e9;                 // 1 ms
constexpr std::uint64_t kMessage = 8'000'000;  // 0.5 ms at 16 GB/s

std::vector<s4u::Host*> make_line(long stages) {
  auto* zone = s4u::create_full_zone("line");
  std::vector<s4u::Host*> hosts;
  for (long i = 0; i < stages; ++i) {
    hosts.push_back(zone->create_host("stage-" + std::to_string(i), kFlopsPerSecond)->seal());
    if (i == 0) continue;
    const auto* link =
        zone->create_link("link-" + std::to_string(i), 16e9)->set_latency(1e-6)->seal();
    zone->add_route(hosts[static_cast<std::size_t>(i - 1)]->get_netpoint(),
                    hosts.back()->get_netpoint(), nullptr, nullptr, {s4u::LinkInRoute(link)}, true);
  }
  zone->seal();
  return hosts;
}

/// One stage: receives, executes, sends without waiting, for each microbatch. A send is waited for
/// only when the second one after it begins, so transfers overlap with executions.
void play_stage(s4u::Mailbox* in, s4u::Mailbox* out, long microbatches) {
  static int content = 0;                                   // a message must carry something
  if (in != nullptr) in->set_receiver(s4u::Actor::self());  // messages start when sent
  s4u::CommPtr last, before_last;
  for (long m = 0; m < microbatches; ++m) {
    if (in != nullptr) in->get<int>();
    s4u::this_actor::execute(kFlops);
    if (out == nullptr) continue;
    if (before_last) before_last->wait();
    before_last = last;
    last = out->put_async(&content, kMessage);
  }
  if (before_last) before_last->wait();
  if (last) last->wait();
}

}  // namespace

int main(int argc, char** argv) {
  s4u::Engine engine(&argc, argv);
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/crosstraffic:0");
  const long stages = bench::argument(argc, argv, 1, 8);
  const long microbatches = bench::argument(argc, argv, 2, 20'000);
  s4u::Mailbox* in = nullptr;
  for (auto* host : make_line(stages)) {
    const bool is_last = host->get_name() == "stage-" + std::to_string(stages - 1);
    auto* out = is_last ? nullptr : s4u::Mailbox::by_name("after-" + host->get_name());
    s4u::Actor::create(host->get_name(), host, [=] { play_stage(in, out, microbatches); });
    in = out;
  }
  const double begin = bench::cpu_seconds();
  engine.run();
  const double cpu = bench::cpu_seconds() - begin;
  const double activities = static_cast<double>((2 * stages - 1) * microbatches);
  std::printf("stages %ld microbatches %ld makespan_s %.9f\n", stages, microbatches,
              s4u::Engine::get_clock());
  std::printf("rate %.4g activities per CPU second\n", activities / cpu);
}
