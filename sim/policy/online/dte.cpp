#include "policy/interface/registry.hpp"
#include "policy/online/pool_policy.hpp"
#include "policy/online/run/online_plan.hpp"

namespace plimsoll {

namespace {

struct DteParameters : OnlineParameters {
  bool free_neighbours = true;
};

/// What a pool of a framework rounds sizes up to.
constexpr Bytes kDteAlignment{512};

class DtePolicy final : public PoolPolicy {
 public:
  DtePolicy(const StorageGraph& graph, bool free_neighbours, const Work& work)
      : PoolPolicy(graph, false, work), free_neighbours_(free_neighbours) {}

  std::vector<OnlineStep> on_pressure(const OnlineView& view) override {
    const auto piece = least_piece(scored(view), free_neighbours_);
    if (!piece) return {};
    return {release_of(*piece)};
  }

 private:
  const bool free_neighbours_;
};

Planned plan_dte(const Problem& problem, const DteParameters& parameters) {
  const auto make = [&](const StorageGraph& graph) {
    return std::make_unique<DtePolicy>(graph, parameters.free_neighbours, problem.work);
  };
  return plan_online(problem, parameters, {.drops_intermediates = true}, kDteAlignment, make);
}

}  // namespace

PolicyInfo online_dte_policy() {
  auto record = single_processor_record<DteParameters>("online/dte");
  add_online(record);
  record.optional("free_neighbours", &DteParameters::free_neighbours, boolean(),
                  "whether free memory beside a tensor counts with its bytes; without it, it is "
                  "DTR as frameworks have it; default true");
  return make_policy<DteParameters>(
      {.name = "online/dte",
       .summary = "Decides while it runs: evicts the tensor that is cheapest to make again for its "
                  "staleness and its bytes with the free memory beside it.",
       .paper = "the variant of DTR in MegEngine, as implemented beside Zhang et al. 2023, \"Coop: "
                "Memory is not a Commodity\", NeurIPS, arXiv:2311.00591",
       .assumes = "any workload of one processor, one microbatch; one pool of the budget's size, "
                  "with best fit. Forwards, and operators of compute graphs, may run again, but "
                  "for those whose outputs are changed in place",
       .guarantees = kOnlineGuarantee,
       .complexity = "O(pieces of the pool) for an eviction",
       .is_online = true},
      record, plan_dte);
}

}  // namespace plimsoll
