// Every policy of one processor on every network of the library, on a server's GPU, on one card of
// a workstation and on a board: what is claimed is measured, without exception. Those with a budget
// get three fifths of what keeping everything needs, or the least that they say they can.
#include "support/library.hpp"
#include "support/policies.hpp"

#include <fmt/format.h>

namespace plimsoll {
namespace {

using test::Played;

struct Machine {
  std::string platform, processor;
};

const std::vector<Machine> kMachines{
    {"v100-sxm2-host", "gpu"}, {"pcie-4gpu-workstation", "gpu0"}, {"raspberry-pi-4b", "cpu"}};

/// What a policy must be told, or is told so that its search ends soon.
std::string needed_by(const std::string& policy) {
  if (policy == "remat/revolve" || policy == "remat/mixed") return ", snapshots: 3";
  if (policy == "remat/two-level") return ", ram_slots: 2, storage_slots: 3";
  if (policy == "remat/exact" || policy == "offload/exact") return ", nodes: 500";
  if (policy == "remat/rotor" || policy == "remat/nonpersistent") return ", slots: 60";
  return "";
}

bool takes(const PolicyInfo& policy, const std::string& parameter) {
  return std::ranges::any_of(policy.parameters.fields,
                             [&](const auto& field) { return field.key == parameter; });
}

class EveryPolicy {
 public:
  EveryPolicy(const Machine& machine, const std::string& network)
      : machine_(machine),
        platform_(test::library_platform(machine.platform)),
        home_(platform_[*platform_.find_processor(machine.processor)].memory),
        workload_(build(test::library_network(network),
                        {.batch = 2, .optimizer = Optimizer::sgd_momentum})) {
    // What does not fit has nothing to claim: the board's memory is as large as it needs to be.
    platform_.memories[index(home_)].capacity = Bytes::unlimited();
    all_ = std::get<Played>(played("none", "")).peak(home_);
  }

  void run(const PolicyInfo& policy) {
    if (!takes(policy, "budget")) {
      (void)std::get<Played>(played(policy.name, needed_by(policy.name)));
      return;
    }
    const auto within = [&](std::int64_t bytes) {
      return played(policy.name, fmt::format("{}, budget: {} B", needed_by(policy.name), bytes));
    };
    std::int64_t budget = all_ * 3 / 5;
    auto answer = within(budget);
    if (const auto* least = std::get_if<Bytes>(&answer)) {
      REQUIRE(least->count() > budget);
      budget = least->count();
      answer = within(budget);
    }
    CHECK(std::get<Played>(answer).peak(home_) <= budget);
  }

 private:
  /// What was played, or the smallest budget.
  std::variant<Played, Bytes> played(const std::string& name, const std::string& more) const {
    const Topology topology(platform_);
    const ChainView view = chain_view(workload_);
    Planned planned =
        test::bound_policy(fmt::format("{{name: {}, on: {}{}}}", name, machine_.processor, more))
            .plan(Problem{workload_, view, platform_, topology});
    if (const auto* no = std::get_if<Infeasible>(&planned)) return no->smallest_budget;
    Played it = test::play(std::get<Plan>(std::move(planned)), workload_, platform_);
    REQUIRE(it.execution.status == RunStatus::ok);
    REQUIRE(it.plan.claims.makespan);
    REQUIRE_FALSE(it.plan.claims.peak.empty());
    test::require_claims_hold(it);
    if (it.plan.bounds.makespan) CHECK(*it.plan.bounds.makespan <= it.execution.makespan);
    return it;
  }

  const Machine machine_;
  Platform platform_;
  const MemoryId home_;
  const Workload workload_;
  std::int64_t all_ = 0;
};

}  // namespace

TEST_CASE("every policy on every network on three machines: the claims are the measurement") {
  for (const Machine& machine : kMachines)
    for (const std::string& network : test::library()) {
      EveryPolicy every(machine, network);
      for (const PolicyInfo& policy : policies()) {
        if (policy.name.starts_with("pipeline/")) continue;
        CAPTURE(machine.platform, network, policy.name);
        every.run(policy);
      }
    }
}

}  // namespace plimsoll
