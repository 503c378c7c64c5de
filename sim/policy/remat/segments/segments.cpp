#include "policy/remat/segments/segments.hpp"

namespace plimsoll {

ChainSequence segment_sequence(std::span<const std::uint32_t> begins, std::uint32_t stages) {
  using Kind = ChainAction::Kind;
  ChainSequence sequence;
  for (std::uint32_t s = 0; s < begins.back(); ++s) sequence.push_back({Kind::bare, s});
  std::uint32_t end = stages;
  for (std::size_t i = begins.size(); i-- > 0; end = begins[i]) {
    for (std::uint32_t s = begins[i]; s < end; ++s) sequence.push_back({Kind::keep, s});
    for (std::uint32_t s = end; s-- > begins[i];) sequence.push_back({Kind::backward, s});
  }
  return sequence;
}

std::vector<std::uint32_t> equal_begins(std::uint32_t stages, std::size_t segments) {
  const auto length = stages / static_cast<std::uint32_t>(segments);
  std::vector<std::uint32_t> begins;
  for (std::uint32_t i = 0; i < segments; ++i) begins.push_back(i * length);
  return begins;
}

Plan equal_segments(const Problem& problem, ProcessorId processor, std::size_t segments,
                    const std::string& policy) {
  const auto stages = static_cast<std::uint32_t>(problem.chain.stages.size());
  return plan_of(problem, processor, segment_sequence(equal_begins(stages, segments), stages),
                 policy);
}

}  // namespace plimsoll
