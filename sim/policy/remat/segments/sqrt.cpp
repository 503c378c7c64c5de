#include "policy/interface/registry.hpp"
#include "policy/remat/chain/snapshots.hpp"
#include "policy/remat/segments/segments.hpp"

#include <fmt/format.h>

namespace plimsoll {

namespace {

struct SqrtParameters : SingleProcessorParameters {
  std::optional<Located<std::int64_t>> segments;
};

Planned plan_sqrt(const Problem& problem, const SqrtParameters& parameters) {
  const std::size_t stages = problem.chain.stages.size();
  std::size_t segments = nearest_square_root(stages);
  if (parameters.segments) {
    segments = static_cast<std::size_t>(parameters.segments->value);
    if (segments > stages)
      refuse(parameters.segments->where,
             fmt::format("segments is {}, the chain has {} stages; expected 1 to {}", segments,
                         stages, stages));
  }
  return equal_segments(problem, processor_for(problem, parameters), segments, parameters.name);
}

}  // namespace

PolicyInfo remat_sqrt_policy() {
  auto record = single_processor_record<SqrtParameters>("remat/sqrt");
  record.optional("segments", &SqrtParameters::segments, located(integer(1, 100'000'000)),
                  "number of segments, at most the number of stages; default: nearest to sqrt(L)");
  return make_policy<SqrtParameters>(
      {.name = "remat/sqrt",
       .summary = "Equal segments: keeps the input of each, runs all but the last once more.",
       .paper =
           "Chen, Xu, Zhang, Guestrin 2016, \"Training Deep Nets with Sublinear Memory Cost\", "
           "arXiv:1604.06174; segments as in PyTorch's checkpoint_sequential",
       .assumes = "a chain (networks are cut at articulation points); best for equal stages",
       .guarantees =
           "one recomputation of all but the last segment; O(sqrt L) memory on equal stages",
       .complexity = "O(operators)",
       .is_for_chains = true},
      record, plan_sqrt);
}

}  // namespace plimsoll
