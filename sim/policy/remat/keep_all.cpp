#include "policy/remat/keep_all.hpp"

#include "policy/remat/segments.hpp"

#include <array>

namespace plimsoll {

KeepAll keep_all(const Problem& problem, ProcessorId processor, const std::string& policy) {
  constexpr std::array<std::uint32_t, 1> kOneSegment{0};
  const auto stages = static_cast<std::uint32_t>(problem.chain.stages.size());
  KeepAll all{plan_of(problem, processor, segment_sequence(kOneSegment, stages), policy), {}};
  all.needs = needs_of(all.plan, problem, processor);
  return all;
}

}  // namespace plimsoll
