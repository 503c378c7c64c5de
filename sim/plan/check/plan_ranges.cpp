#include "plan/check/plan_ranges.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace plimsoll {

namespace {

bool within(auto id, std::size_t size) {
  return static_cast<std::size_t>(id) < size;
}

bool fits(Slice slice, std::size_t size) {
  return slice.begin <= slice.end && slice.end <= size;
}

bool lane_holds(const Lane& lane, const Platform& platform) {
  if (lane.kind == Lane::Kind::stream) return within(lane.processor, platform.processors.size());
  return within(lane.from, platform.memories.size()) && within(lane.to, platform.memories.size()) &&
         (!lane.image || (within(lane.image->from, platform.memories.size()) &&
                          within(lane.image->to, platform.memories.size())));
}

bool buffer_holds(const Buffer& buffer, const Plan& plan, const Workload& workload,
                  const Platform& platform) {
  return within(buffer.tensor, workload.tensors.size()) &&
         within(buffer.memory, platform.memories.size()) &&
         within(buffer.microbatch, plan.microbatches);
}

bool step_holds(const Step& step, const Plan& plan, const Workload& workload) {
  const bool lists =
      within(step.lane, plan.lanes.size()) && fits(step.reads, plan.buffer_lists.size()) &&
      fits(step.writes, plan.buffer_lists.size()) && fits(step.after, plan.dependencies.size());
  if (!lists || !within(step.microbatch, plan.microbatches)) return false;
  if (step.kind == StepKind::reduce) return within(step.reduction, plan.reductions.size());
  if (step.kind == StepKind::copy) return true;
  const std::size_t operators = workload.operators.size();
  return within(step.op, operators) &&
         (step.kind == StepKind::compute ||
          (within(step.second, operators) && within(step.second_microbatch, plan.microbatches)));
}

/// Parts are few enough to be looked at one by one.
constexpr std::uint32_t kMostParts = 65'536;

bool reduction_holds(const Reduction& it, std::size_t operators) {
  return it.of <= kMostParts && it.count >= 1 && it.count <= it.of &&
         it.first <= it.of - it.count && it.brings.value_or(0) <= it.of - it.count &&
         it.opens <= 2 * it.of && it.rounds >= 1 &&
         (it.op == kNoOperator || within(it.op, operators));
}

bool mirror_holds(const Mirror& mirror, const Platform& platform) {
  return within(mirror.processor, platform.processors.size()) &&
         within(mirror.like, platform.processors.size());
}

bool mirror_holds(const MemoryMirror& mirror, const Platform& platform) {
  return within(mirror.memory, platform.memories.size()) &&
         within(mirror.like, platform.memories.size());
}

bool mirror_holds(const LinkMirror& mirror, const Platform& platform) {
  return within(mirror.link, platform.links.size()) && within(mirror.like, platform.links.size()) &&
         mirror.direction < 2 && mirror.like_direction < 2;
}

bool release_holds(const Release& release, const Plan& plan) {
  return within(release.buffer, plan.buffers.size()) &&
         fits(release.after, plan.release_steps.size());
}

/// What makes the counts of microbatches impossible, or "".
std::string count_problem(const Plan& plan, const Workload& workload) {
  if (plan.microbatches == 0) return "the plan has no microbatches";
  if (plan.mini_batch == 0u) return "the plan's mini-batch has no microbatches";
  // Every operator but the optimizer's runs for every microbatch; a pair runs two.
  const std::size_t runs = workload.optimizer_begin * std::size_t{plan.microbatches};
  if (runs > 2 * plan.steps.size())
    return fmt::format("{} steps are too few for {} operators of {} microbatches",
                       plan.steps.size(), workload.optimizer_begin, plan.microbatches);
  if (plan.steady_from_microbatch && *plan.steady_from_microbatch + 2 > plan.microbatches)
    return fmt::format("the plan is steady from microbatch {}, which leaves no interval among {}",
                       *plan.steady_from_microbatch, plan.microbatches);
  if (plan.steady_until_microbatch &&
      (!plan.steady_from_microbatch ||
       *plan.steady_until_microbatch <= *plan.steady_from_microbatch ||
       *plan.steady_until_microbatch >= plan.microbatches))
    return fmt::format(
        "the plan is steady until microbatch {} of {}; expected a microbatch after "
        "the one that it is steady from",
        *plan.steady_until_microbatch, plan.microbatches);
  return {};
}

}  // namespace

std::vector<std::string> check_ranges(const Plan& plan, const Workload& workload,
                                      const Platform& platform) {
  std::vector<std::string> problems;
  const auto require = [&](bool holds, std::string problem) {
    if (!holds) problems.push_back(std::move(problem));
  };
  const auto all_within = [](const auto& ids, std::size_t size) {
    return std::ranges::all_of(ids, [&](auto id) { return within(id, size); });
  };
  const std::string counts = count_problem(plan, workload);
  require(counts.empty(), counts);
  require(std::ranges::all_of(plan.lanes, [&](const Lane& l) { return lane_holds(l, platform); }),
          "a lane names a processor or memory that the platform does not have");
  require(
      std::ranges::all_of(
          plan.buffers, [&](const Buffer& b) { return buffer_holds(b, plan, workload, platform); }),
      "a buffer names a tensor, memory or microbatch that does not exist");
  require(all_within(plan.buffer_lists, plan.buffers.size()),
          "a step names a buffer that does not exist");
  require(all_within(plan.initial, plan.buffers.size()), "an initial buffer does not exist");
  require(
      std::ranges::all_of(plan.steps, [&](const Step& s) { return step_holds(s, plan, workload); }),
      "a step names a lane, operator, microbatch or list that does not exist");
  require(std::ranges::all_of(
              plan.reductions,
              [&](const Reduction& r) { return reduction_holds(r, workload.operators.size()); }),
          fmt::format("a reduction moves parts that there are not, expected 1 to {} parts of as "
                      "many; or is of an operator that does not exist",
                      kMostParts));
  require(
      std::ranges::all_of(plan.mirrors, [&](const Mirror& m) { return mirror_holds(m, platform); }),
      "a mirror names a processor that the platform does not have");
  require(std::ranges::all_of(plan.memory_mirrors,
                              [&](const MemoryMirror& m) { return mirror_holds(m, platform); }),
          "a memory mirror names a memory that the platform does not have");
  require(std::ranges::all_of(plan.link_mirrors,
                              [&](const LinkMirror& m) { return mirror_holds(m, platform); }),
          "a link mirror names a link that the platform does not have, or a third direction");
  require(std::ranges::all_of(plan.dependencies,
                              [&](const Dependency& d) { return within(d.on, plan.steps.size()); }),
          "a step depends on a step that does not exist");
  require(
      std::ranges::all_of(plan.releases, [&](const Release& r) { return release_holds(r, plan); }),
      "a release names a buffer or list that does not exist");
  require(all_within(plan.release_steps, plan.steps.size()),
          "a release waits for a step that does not exist");
  require(all_within(plan.ordered_grants, platform.memories.size()),
          "a memory with ordered grants does not exist");
  require(std::ranges::all_of(plan.limits,
                              [&](const auto& limit) {
                                return within(limit.first, platform.memories.size()) &&
                                       limit.second >= Bytes{};
                              }),
          "a limit is negative or of a memory that does not exist");
  require(std::ranges::all_of(plan.arenas,
                              [&](const PlanArena& arena) {
                                return within(arena.memory, platform.memories.size()) &&
                                       arena.alignment > Bytes{};
                              }),
          "an arena has units of no bytes or is of a memory that does not exist");
  return problems;
}

}  // namespace plimsoll
