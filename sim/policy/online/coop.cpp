#include "policy/interface/registry.hpp"
#include "policy/online/pool_policy.hpp"
#include "policy/online/run/online_plan.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

struct CoopParameters : OnlineParameters {
  WindowScan window = WindowScan::corrected;
  bool in_place = true;
  Located<std::int64_t> groups = {1, {}};
  bool small_strip = false;
};

/// What a pool of a framework rounds sizes up to.
constexpr Bytes kCoopAlignment{512};

class CoopPolicy final : public PoolPolicy {
 public:
  CoopPolicy(const StorageGraph& graph, const CoopParameters& parameters, const Work& work)
      : PoolPolicy(graph, parameters.in_place, work), scan_(parameters.window) {}

  std::vector<OnlineStep> on_pressure(const OnlineView& view) override {
    const std::vector<ScoredPiece>& pieces = scored(view);
    const auto window = least_window(pieces, view.pool().rounded(view.need()).count(), scan_);
    std::vector<OnlineStep> steps;
    if (!window) return steps;
    for (std::size_t i = window->begin; i < window->end; ++i)
      if (pieces[i].kind == ScoredPiece::Kind::evictable) steps.push_back(release_of(i));
    return steps;
  }

 private:
  const WindowScan scan_;
};

PoolLayout layout_of(const CoopParameters& parameters) {
  const std::int64_t groups = parameters.groups.value;
  if (groups > 1 && group_order(groups).empty())
    refuse(parameters.groups.where,
           fmt::format("found {} groups, expected 1, 2, 4 or 6: two share a range of the "
                       "pool, and for more no order in which they are tried has been published",
                       groups));
  return {.groups = groups, .has_strip = parameters.small_strip};
}

Planned plan_coop(const Problem& problem, const CoopParameters& parameters) {
  const OnlineOptions options{.drops_intermediates = true, .layout = layout_of(parameters)};
  const auto make = [&](const StorageGraph& graph) {
    return std::make_unique<CoopPolicy>(graph, parameters, problem.work);
  };
  return plan_online(problem, parameters, options, kCoopAlignment, make);
}

}  // namespace

PolicyInfo online_coop_policy() {
  auto record = single_processor_record<CoopParameters>("online/coop");
  add_online(record);
  record
      .optional("window", &CoopParameters::window,
                one_of<WindowScan>(
                    {{"corrected", WindowScan::corrected}, {"as-shipped", WindowScan::as_shipped}}),
                "`corrected`: all runs of neighbouring tensors are looked at; `as-shipped`: those "
                "with the last piece of the pool are missed, as in the published code; default "
                "corrected")
      .optional(
          "in_place", &CoopParameters::in_place, boolean(),
          "whether tensors that operators change in place may be evicted, and made again with "
          "all that changes them; default true")
      .optional("groups", &CoopParameters::groups, located(integer(1, 6)),
                "into which tensors are parted by how costly their operators are, each with an end "
                "of a range of the pool: 2, 4 or 6, or 1: not parted; default 1")
      .optional("small_strip", &CoopParameters::small_strip, boolean(),
                "whether tensors of at most 10 KiB get a strip of 1,024 slots at the end of the "
                "pool, from which nothing is evicted; default false");
  return make_policy<CoopParameters>(
      {.name = "online/coop",
       .summary = "Decides while it runs: evicts neighbouring tensors together, those that are "
                  "cheapest to make again of all that make enough room in one piece.",
       .paper =
           "Zhang et al. 2023, \"Coop: Memory is not a Commodity\", NeurIPS, arXiv:2311.00591, "
           "by the rules of its implementation in OneFlow",
       .assumes =
           "any workload of one processor, one microbatch; one pool of the budget's size, "
           "with best fit or in groups. Forwards, and operators of compute graphs, may run again",
       .guarantees = kOnlineGuarantee,
       .complexity = "O(pieces of the pool) for a search",
       .is_online = true},
      record, plan_coop);
}

}  // namespace plimsoll
