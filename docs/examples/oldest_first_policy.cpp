/// A policy of one's own that decides while the program runs: what has been there longest goes
/// first, several tensors at once where one is not enough.
#include "oldest_first_policy.hpp"

#include "policy/online/run/online_plan.hpp"

namespace plimsoll::example {

namespace {

/// Candidates come in the order in which they were made or last read.
class OldestFirst final : public OnlinePolicy {
 public:
  std::vector<OnlineStep> on_pressure(const OnlineView& view) override {
    std::vector<OnlineStep> steps;
    Bytes freed = view.pool().free_bytes();
    for (std::uint32_t s = view.first_candidate(); s != OnlineView::kNone && freed < view.need();
         s = view.next_candidate(s)) {
      steps.push_back({.release = s});
      freed += view.graph().storages[s].bytes;
    }
    return steps;
  }
};

Planned plan_oldest_first(const Problem& problem, const OnlineParameters& parameters) {
  return plan_online(problem, parameters, {}, Bytes{},
                     [](const StorageGraph&) { return std::make_unique<OldestFirst>(); });
}

}  // namespace

PolicyInfo oldest_first_policy() {
  auto record = single_processor_record<OnlineParameters>("example/oldest-first");
  add_online(record);
  return make_policy<OnlineParameters>({.name = "example/oldest-first",
                                        .summary = "Evicts what was read longest ago.",
                                        .paper = "none: an example",
                                        .assumes = "any workload of one processor",
                                        .guarantees = kOnlineGuarantee,
                                        .complexity = "O(evictions)",
                                        .is_online = true},
                                       record, plan_oldest_first);
}

}  // namespace plimsoll::example
