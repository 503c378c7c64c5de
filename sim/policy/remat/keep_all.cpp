#include "policy/remat/keep_all.hpp"

#include "base/dense_id.hpp"
#include "policy/claims.hpp"
#include "policy/remat/chain_sequence.hpp"

#include <algorithm>

namespace plimsoll {

KeepAll keep_all(const Problem& problem, ProcessorId processor, const std::string& policy) {
  using Kind = ChainAction::Kind;
  const auto stages = static_cast<std::uint32_t>(problem.chain.stages.size());
  ChainSequence sequence;
  for (std::uint32_t s = 0; s < stages; ++s) sequence.push_back({Kind::keep, s});
  for (std::uint32_t s = stages; s-- > 0;) sequence.push_back({Kind::backward, s});

  const MemoryId home = problem.platform[processor].memory;
  Platform roomy = problem.platform;
  roomy.memories[index(home)].capacity = Bytes::unlimited();
  const Topology topology(roomy);
  KeepAll all{plan_of(problem, processor, sequence, policy), {}};
  const Claims claims =
      claims_of(all.plan, Problem{problem.workload, problem.chain, roomy, topology});
  const auto found = std::ranges::find(claims.peak, home, &std::pair<MemoryId, Bytes>::first);
  all.needs = found != claims.peak.end() ? found->second
                                         : cost_of(sequence, chain_costs(problem, processor)).peak;
  return all;
}

}  // namespace plimsoll
