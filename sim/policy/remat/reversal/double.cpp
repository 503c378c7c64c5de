#include "policy/interface/registry.hpp"
#include "policy/offload/copies/storage.hpp"
#include "policy/remat/chain/chain_sequence.hpp"
#include "policy/remat/chain/snapshots.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

using Kind = ChainAction::Kind;

struct DoubleParameters : SingleProcessorParameters {
  std::optional<std::int64_t> outer;
  std::optional<Located<std::int64_t>> inner;
  std::optional<Located<std::string>> storage;
};

/// Stages [begin, end) from the input of `begin`, which is there: inputs of `inner` stages are
/// stored, segment by segment is kept and run backward, the last at once.
void append_chunk(ChainSequence& sequence, std::uint32_t begin, std::uint32_t end,
                  std::uint32_t inner) {
  std::uint32_t segment = begin + (end - begin - 1) / inner * inner;
  for (std::uint32_t s = begin; s < segment; ++s) sequence.push_back({Kind::bare, s});
  for (;; end = segment, segment -= inner) {
    for (std::uint32_t s = segment; s < end; ++s) sequence.push_back({Kind::keep, s});
    for (std::uint32_t s = end; s-- > segment;) sequence.push_back({Kind::backward, s});
    if (segment == begin) return;
  }
}

/// The first sweep writes the input of every chunk but the first (a_0 is there anyway) and the last
/// (which follows at once); a chunk's backward reads it.
ChainSequence double_sequence(std::uint32_t stages, std::uint32_t outer, std::uint32_t inner) {
  const std::uint32_t last = (stages - 1) / outer * outer;
  ChainSequence sequence;
  for (std::uint32_t s = 0; s < last; ++s) {
    if (s > 0 && s % outer == 0) sequence.push_back({Kind::write, s});
    sequence.push_back({Kind::bare, s});
  }
  for (std::uint32_t begin = last, end = stages;; end = begin, begin -= outer) {
    if (begin > 0 && begin < last) sequence.push_back({Kind::read, begin});
    append_chunk(sequence, begin, end, inner);
    if (begin == 0) return sequence;
  }
}

Planned plan_double(const Problem& problem, const DoubleParameters& parameters) {
  const OffloadMemories memories = offload_memories(problem, parameters, parameters.storage);
  const std::size_t stages = problem.chain.stages.size();
  const auto root = [](std::size_t n) { return static_cast<std::int64_t>(nearest_square_root(n)); };
  const std::int64_t outer =
      std::min(parameters.outer.value_or(root(stages)), static_cast<std::int64_t>(stages));
  const std::int64_t inner =
      parameters.inner ? parameters.inner->value : root(static_cast<std::size_t>(outer));
  if (inner > outer)
    refuse(
        parameters.inner->where,
        fmt::format("inner is {}, a chunk has {} stages; expected 1 to {}", inner, outer, outer));
  const ChainSequence sequence =
      double_sequence(static_cast<std::uint32_t>(stages), static_cast<std::uint32_t>(outer),
                      static_cast<std::uint32_t>(inner));
  return plan_of(problem, memories.processor, sequence, parameters.name,
                 ChainStorage{memories.storage});
}

}  // namespace

PolicyInfo remat_double_policy() {
  auto record = single_processor_record<DoubleParameters>("remat/double");
  record
      .optional("outer", &DoubleParameters::outer, integer(1, 100'000'000),
                "stages of a chunk, whose input goes off chip; default: nearest to sqrt(L)")
      .optional("inner", &DoubleParameters::inner, located(integer(1, 100'000'000)),
                "stages of a segment inside a chunk, at most `outer`; default: nearest to "
                "sqrt(outer)")
      .optional("storage", &DoubleParameters::storage, located(plimsoll::name()),
                "the memory off chip; default: the one with the fastest way out and back");
  return make_policy<DoubleParameters>(
      {.name = "remat/double",
       .summary = "Two levels of segments: inputs of chunks go off chip, inputs of the segments of "
                  "one chunk stay on chip.",
       .paper = "Bencheikh, Finkbeiner, Neftci 2024, arXiv:2412.11810, Double strategy, as "
                "reconstructed: copies block, a_0 and the input of the last chunk are not copied, "
                "and what follows at once is not run again",
       .assumes = "a chain (networks are cut at articulation points); best for equal stages",
       .guarantees =
           "at most two recomputations of a stage; on equal stages about outer / inner outputs and "
           "`inner` stages kept on chip, L / outer outputs off chip: 2 L^(1/4) and sqrt(L) by "
           "default",
       .complexity = "O(operators)",
       .is_for_chains = true},
      record, plan_double);
}

}  // namespace plimsoll
