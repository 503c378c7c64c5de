/// Any bytes give a plan or one InputError; a plan can be checked, and written and read again.
#include "base/diagnostic.hpp"
#include "plan/check/plan_checker.hpp"
#include "plan/file/plan_file.hpp"
#include "workload/given/chain_workload.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace plimsoll;

namespace {

/// Two stages on a gpu with hbm, and dram behind a link.
struct World {
  Workload workload;
  Platform platform;
  Topology topology;
};

Workload small_chain() {
  ChainSpec chain;
  chain.name = "small";
  for (const char* name : {"s1", "s2"}) {
    StageSpec stage;
    stage.name = name;
    stage.backward = Time{1};
    stage.saved = Bytes{1};
    chain.stages.push_back(stage);
  }
  return build(chain, WorkloadOptions{});
}

Platform small_machine() {
  Platform platform;
  platform.memories.resize(2);
  platform.memories[0].name = "hbm";
  platform.memories[1].name = "dram";
  platform.processors.resize(1);
  platform.processors[0].name = "gpu";
  platform.links.resize(1);
  platform.links[0].name = "pcie";
  platform.links[0].between = {MemoryId{0}, MemoryId{1}};
  return platform;
}

const World& world() {
  static const World kWorld{small_chain(), small_machine(), Topology(small_machine())};
  return kWorld;
}

void check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const World& w = world();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const PlanForm form = bytes.starts_with('{') ? PlanForm::json : PlanForm::binary;
  try {
    const Plan plan = parse_plan(bytes, form, "fuzz", w.workload, w.platform);
    check(check_plan(plan, w.workload, w.platform, w.topology).size() <= 20);
    for (const PlanForm again : {PlanForm::binary, PlanForm::json}) {
      const std::string written = to_bytes(plan, again, w.workload, w.platform);
      const Plan back = parse_plan(written, again, "again", w.workload, w.platform);
      check(to_bytes(back, again, w.workload, w.platform) == written);
    }
  } catch (const InputError& e) {
    check(!e.diagnostics().empty());
  }
  return 0;
}
