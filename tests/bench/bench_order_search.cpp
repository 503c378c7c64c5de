// How long the searches for the orders of a pipeline take by themselves, without the plan that
// is made of what they find, on the settings of the Zero Bubble papers.
//
//   bench_order_search [orders]
//
// The times are those of Table 9 of Qi et al. 2024 (arXiv:2401.10241), what a device keeps is by
// its Table 1; on a V each chunk is half a stage. Prints the list heuristic (that of the published
// code, policies zb-1p, zb-2p and zb-v), then pipeline/search's own search from there with at most
// so many orders: milliseconds of CPU and the makespan, over the lower bound.
#include "cpu_clock.hpp"
#include "policy/pipeline/bounds/makespan_bound.hpp"
#include "policy/pipeline/partition/placement.hpp"
#include "policy/pipeline/search/list_heuristic.hpp"
#include "policy/pipeline/search/order_search.hpp"
#include "policy/pipeline/search/v_search.hpp"

#include <numeric>

#include <fmt/format.h>

namespace plimsoll {
namespace {

struct Setting {
  const char* model;
  std::uint32_t devices, microbatches;
  std::int64_t forward, input, weight, message;  ///< microseconds
  std::int64_t sequence, samples, hidden, heads;
};

constexpr Setting kSettings[] = {
    {"1.5B", 8, 24, 18522, 18086, 9337, 601, 1024, 6, 2304, 24},
    {"1.5B", 8, 64, 18546, 18097, 9321, 762, 1024, 6, 2304, 24},
    {"6.2B", 8, 32, 29802, 29428, 19530, 577, 1024, 3, 4096, 32},
    {"14.6B", 16, 48, 11347, 11248, 8132, 377, 1024, 1, 5120, 40},
    {"14.6B", 16, 128, 11325, 11308, 8109, 378, 1024, 1, 5120, 40},
    {"28.3B", 32, 128, 10408, 10204, 7703, 408, 1024, 1, 6144, 48},
    {"28.3B", 32, 256, 10408, 10204, 7703, 408, 1024, 1, 6144, 48},
};

/// Bytes that a stage keeps for a microbatch, by layer.
std::int64_t kept(const Setting& it) {
  return it.sequence * it.samples * (34 * it.hidden + 5 * it.heads * it.sequence);
}

SlotCosts costs_of(const Setting& it, std::int64_t chunks) {
  // Whole microseconds, as the published code takes them.
  const auto us = [&](std::int64_t time) { return Time{time / chunks * 1'000'000}; };
  SlotCosts::Slot slot{.forward = us(it.forward),
                       .backward_input = us(it.input),
                       .backward_weight = us(it.weight),
                       .forward_message = Time{it.message * 1'000'000},
                       .backward_message = Time{it.message * 1'000'000},
                       .saved = Bytes{kept(it)},
                       .held = Bytes{32 * it.sequence * it.samples * it.hidden}};
  SlotCosts costs{chunks == 1 ? loop_placement(it.devices, 1) : v_placement(it.devices), it.devices,
                  std::vector(it.devices * static_cast<std::size_t>(chunks), slot)};
  // Nothing leaves the ends, nor what the next slot has in the same memory.
  for (std::size_t s = 0; s < costs.slots.size(); ++s) {
    if (s + 1 == costs.slots.size() || costs.placement[s] == costs.placement[s + 1])
      costs.slots[s].forward_message = Time{};
    if (s == 0 || costs.placement[s] == costs.placement[s - 1])
      costs.slots[s].backward_message = Time{};
  }
  return costs;
}

/// CPU milliseconds of one call, of as many as fit into a tenth of a second.
double milliseconds(auto call) {
  const double before = bench::cpu_seconds();
  int calls = 0;
  do {
    call();
    ++calls;
  } while (bench::cpu_seconds() - before < 0.1);
  return 1e3 * (bench::cpu_seconds() - before) / calls;
}

void tell(const Setting& it, std::int64_t chunks, double share, std::int64_t orders) {
  const SlotCosts costs = costs_of(it, chunks);
  const auto limit = static_cast<std::int64_t>(share * static_cast<double>(it.devices)) * kept(it);
  const std::vector<Bytes> limits(it.devices, Bytes{limit});
  const auto heuristic = [&] {
    return chunks == 1 ? list_schedules(costs, it.microbatches, limits)
                       : v_schedules(costs, it.microbatches, limits);
  };
  const double heuristic_ms = milliseconds(heuristic);
  const SlotSlack slack{std::vector<SlotSlack::Times>(costs.slots.size())};
  const TaskNetwork network =
      task_network(costs, slack, it.microbatches, std::vector<Time>(it.devices), true);
  const std::vector<std::int64_t> counts(it.devices, limit);
  const std::int64_t bound = makespan_bound(network, counts).count();
  std::optional<FoundOrders> found;
  const OrderSearch search{network, costs.placement, counts, orders, bound};
  const double search_ms = milliseconds([&] {
    std::vector<TaskOrders> from;
    for (const Schedule& schedule : heuristic()) from.push_back(orders_of(network, schedule));
    found = search_orders(search, from);
  });
  const auto first = orders_of(network, heuristic().front());
  const double of_first = static_cast<double>(OrderEvaluator(network).evaluate(first)->makespan);
  fmt::print(
      "{:6} p {:2} m {:3} {} {:.1f}p: list {:8.2f} ms {:.4f}, search {:9.2f} ms {:.4f} of the "
      "bound, {:.1f} ms\n",
      it.model, it.devices, it.microbatches, chunks == 1 ? "row" : "V  ",
      share / static_cast<double>(chunks), heuristic_ms, of_first / static_cast<double>(bound),
      search_ms, static_cast<double>(found->value.makespan) / static_cast<double>(bound),
      1e-9 * static_cast<double>(found->value.makespan));
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  const long orders = bench::argument(argc, argv, 1, 0);
  for (const plimsoll::Setting& it : plimsoll::kSettings) {
    for (const double share : {1.0, 1.5, 2.0}) plimsoll::tell(it, 1, share, orders);
    plimsoll::tell(it, 2, 2.0, orders);
  }
}
