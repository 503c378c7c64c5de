// The workload of bench_fair_link in SimGrid's S4U interface (3.32), for comparison, with 1 us of
// latency before each flow (SimGrid wants one). The plain network model, as in
// simgrid_pipeline.cpp.
//
//   simgrid_fair_link [senders [flows of each]]
#include "cpu_clock.hpp"

#include <cstdio>
#include <simgrid/s4u.hpp>
#include <string>

namespace s4u = simgrid::s4u;

int main(int argc, char** argv) {
  s4u::Engine engine(&argc, argv);
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/crosstraffic:0");
  const auto senders = static_cast<unsigned>(bench::argument(argc, argv, 1, 1024));
  const auto turns = static_cast<unsigned>(bench::argument(argc, argv, 2, 20));

  auto* zone = s4u::create_full_zone("pair");
  auto* from = zone->create_host("from", 1e12)->seal();
  auto* to = zone->create_host("to", 1e12)->seal();
  const auto* link = zone->create_link("link", 16e9)->set_latency(1e-6)->seal();
  zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr,
                  {s4u::LinkInRoute(link)}, true);
  zone->seal();
  for (unsigned f = 0; f < senders; ++f) {
    s4u::Actor::create("sender-" + std::to_string(f), from, [=] {
      for (unsigned i = 0; i < turns; ++i) {
        s4u::Comm::sendto(from, to, 1'000'000 + 7'919ull * ((31 * f + 17 * i) % 997) + f);
      }
    });
  }
  const double begin = bench::cpu_seconds();
  engine.run();
  const double cpu = bench::cpu_seconds() - begin;
  std::printf("senders %u turns %u end_s %.12f\n", senders, turns, s4u::Engine::get_clock());
  std::printf("rate %.4g flows per CPU second\n", static_cast<double>(senders) * turns / cpu);
}
