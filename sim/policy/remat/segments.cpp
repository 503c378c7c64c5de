#include "policy/remat/segments.hpp"

#include "policy/remat/chain_sequence.hpp"

namespace plimsoll {

Plan checkpoint_segments(const Problem& problem, ProcessorId processor, std::size_t segments,
                         const std::string& policy) {
  using Kind = ChainAction::Kind;
  const auto stages = static_cast<std::uint32_t>(problem.chain.stages.size());
  const auto length = stages / static_cast<std::uint32_t>(segments);
  const auto last_begin = static_cast<std::uint32_t>(segments - 1) * length;

  ChainSequence sequence;
  for (std::uint32_t s = 0; s < last_begin; ++s) sequence.push_back({Kind::bare, s});
  for (std::uint32_t begin = last_begin, end = stages;; end = begin, begin -= length) {
    for (std::uint32_t s = begin; s < end; ++s) sequence.push_back({Kind::keep, s});
    for (std::uint32_t s = end; s-- > begin;) sequence.push_back({Kind::backward, s});
    if (begin == 0) break;
  }
  return plan_of(problem, processor, sequence, policy);
}

}  // namespace plimsoll
