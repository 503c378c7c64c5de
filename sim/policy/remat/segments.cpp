#include "policy/remat/segments.hpp"

#include "policy/remat/chain_sequence.hpp"

namespace plimsoll {

Plan checkpoint_segments(const Problem& problem, ProcessorId processor,
                         std::span<const std::uint32_t> begins, const std::string& policy) {
  using Kind = ChainAction::Kind;
  auto end = static_cast<std::uint32_t>(problem.chain.stages.size());
  ChainSequence sequence;
  for (std::uint32_t s = 0; s < begins.back(); ++s) sequence.push_back({Kind::bare, s});
  for (std::size_t segment = begins.size(); segment-- > 0;) {
    const std::uint32_t begin = begins[segment];
    for (std::uint32_t s = begin; s < end; ++s) sequence.push_back({Kind::keep, s});
    for (std::uint32_t s = end; s-- > begin;) sequence.push_back({Kind::backward, s});
    end = begin;
  }
  return plan_of(problem, processor, sequence, policy);
}

Plan equal_segments(const Problem& problem, ProcessorId processor, std::size_t segments,
                    const std::string& policy) {
  const std::size_t length = problem.chain.stages.size() / segments;
  std::vector<std::uint32_t> begins;
  for (std::size_t s = 0; s < segments; ++s)
    begins.push_back(static_cast<std::uint32_t>(s * length));
  return checkpoint_segments(problem, processor, begins, policy);
}

}  // namespace plimsoll
