#include "policy/interface/registry.hpp"
#include "policy/offload/copies/storage.hpp"
#include "policy/remat/chain/snapshots.hpp"
#include "policy/remat/reversal/two_level_table.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace plimsoll {

namespace {

/// Beyond it further slots save little, and the table would grow too large for long chains.
constexpr std::int64_t kDefaultStorageSlots = 32;

struct TwoLevelParameters : SingleProcessorParameters {
  std::optional<std::int64_t> ram_slots, storage_slots;
  std::optional<Located<std::string>> storage;
  bool overlap = false;
};

Time mean(const std::vector<Time>& times) {
  const Time sum = std::accumulate(times.begin(), times.end(), Time{});
  return Time{sum.count() / static_cast<std::int64_t>(times.size())};
}

/// The chain as one of equal stages; on unequal ones their means stand for the times.
TwoLevelProblem equal_steps(const Problem& problem, const TwoLevelParameters& parameters,
                            const OffloadMemories& memories) {
  const auto stages = problem.chain.stages.size();
  const auto slots = static_cast<std::int64_t>(nearest_square_root(stages));
  std::vector<Time> forwards;
  for (const StageCosts& stage : chain_costs(problem, memories.processor).stages)
    forwards.push_back(stage.forward);
  const ChainCopies copies = chain_copies(problem, memories.processor, memories.storage);
  return {.steps = static_cast<std::int64_t>(stages),
          .ram_slots = parameters.ram_slots.value_or(slots),
          .storage_slots = parameters.storage_slots.value_or(std::min(slots, kDefaultStorageSlots)),
          .forward = mean(forwards),
          .write = mean(copies.write),
          .read = mean(copies.read)};
}

void check(const TwoLevelProblem& steps, const Location& where) {
  if (steps.ram_slots == 0 && steps.storage_slots == 0)
    refuse(where, "ram_slots and storage_slots are 0; expected at least one slot");
  if (TwoLevelTable::work(steps) > TwoLevelTable::kMostWork)
    refuse(where, fmt::format("the table of {} stages squared x {} storage_slots is too "
                              "large; expected at most {}",
                              steps.steps, steps.storage_slots, TwoLevelTable::kMostWork));
  if (!TwoLevelTable::in_range(steps))
    refuse(where,
           "the chain's times are too long to be added up as often as stages "
           "would run again");
}

Planned plan_two_level(const Problem& problem, const TwoLevelParameters& parameters) {
  const OffloadMemories memories = offload_memories(problem, parameters, parameters.storage);
  const TwoLevelProblem steps = equal_steps(problem, parameters, memories);
  check(steps, parameters.where);
  problem.work.add(TwoLevelTable::work(steps));
  const auto sequence = TwoLevelTable(steps).sequence();
  if (!sequence)
    refuse_length(parameters.where,
                  fmt::format("{} stages with {} ram_slots and {} storage_slots", steps.steps,
                              steps.ram_slots, steps.storage_slots),
                  fmt::format("more than {}", kMostActions), "give more slots");
  return plan_of(problem, memories.processor, *sequence, parameters.name,
                 ChainStorage{memories.storage, parameters.overlap});
}

}  // namespace

PolicyInfo remat_two_level_policy() {
  auto record = single_processor_record<TwoLevelParameters>("remat/two-level");
  record
      .optional("ram_slots", &TwoLevelParameters::ram_slots, integer(0, 100'000'000),
                "states in the processor's memory, a_0 like any other; default: nearest to sqrt(L)")
      .optional("storage_slots", &TwoLevelParameters::storage_slots, integer(0, 100'000'000),
                "states in the storage; default: nearest to sqrt(L), at most 32")
      .optional("storage", &TwoLevelParameters::storage, located(plimsoll::name()),
                "the memory of the storage slots; default: the one with the fastest way out and "
                "back")
      .optional("overlap", &TwoLevelParameters::overlap, boolean(),
                "whether copies run beside the computation instead of blocking it; default false");
  return make_policy<TwoLevelParameters>(
      {.name = "remat/two-level",
       .summary = "Stores states in memory and in a storage whose writes and reads take time, and "
                  "runs the rest again.",
       .paper = "Herrmann, Pallez 2020, \"H-Revolve\", ACM TOMS 46(2), for two levels; the "
                "recursion as reconstructed, kept forwards counted",
       .assumes = "a chain (networks are cut at articulation points) of stages of equal forward "
                  "time and output; unequal stages get the schedule for their means. Access to a "
                  "state in the processor's memory is free",
       .guarantees = "exact on equal stages if copies block; with overlap the same schedule, for "
                     "which the recursion is only an upper bound of the time",
       .complexity = "O(L^2 x storage_slots), at most 4,000,000,000, and O(forwards of the "
                     "schedule), at most "
                     "4,000,000 actions",
       .is_for_chains = true},
      record, plan_two_level);
}

}  // namespace plimsoll
