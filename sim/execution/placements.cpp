#include "execution/placements.hpp"

#include "base/diagnostic.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace plimsoll {

namespace {

bool is_placed(const Program& program, std::uint32_t m) {
  return program.platform->memories[m].allocator == AllocatorKind::placed &&
         arena_in(*program.plan, MemoryId{m}) == nullptr;
}

void refuse_more_than_can_be_placed(const Memory& memory, const std::vector<TimedBuffer>& blocks) {
  const auto refuse = [&](const std::string& what) {
    throw InputError(
        {{Severity::error,
          {fmt::format("memories.{}.allocator", memory.key())},
          fmt::format("the run puts {} into `{}`, more than `static` places", what, memory.name),
          ""}});
  };
  if (blocks.size() > kMostPlacedBlocks)
    refuse(fmt::format("{} buffers and workspaces, above {},", blocks.size(), kMostPlacedBlocks));
  Bytes left = kMostPlacedBytes;
  for (const TimedBuffer& it : blocks) {
    if (it.size > left) refuse(fmt::format("buffers of more than {}", to_text(kMostPlacedBytes)));
    left -= it.size;
  }
}

PlacementTask task_of(std::optional<PlacementRule> rule) {
  return {.rule = rule, .capacity = std::nullopt, .limit = kRunPlacementSteps};
}

Bytes end_in(const Memory& memory, const PlacementAnswer& answer) {
  return answer.found.end.count() * memory.alignment;
}

OutOfMemory misfit_of(const Memory& memory, const PlacementAnswer& answer, Bytes usable,
                      std::size_t blocks, const MemoryRecord& counted) {
  const Bytes unit = memory.alignment;
  const PlacementAtRefusal placement{answer.method, blocks, answer.load.count() * unit,
                                     end_in(memory, answer),
                                     answer.found.lower_bound.count() * unit};
  return {.step = fmt::format("placing {} buffers and workspaces ahead of time", blocks),
          .memory = memory.name,
          .asked = placement.end,
          .free = usable,
          .largest_free_block = usable,
          .capacity = usable,
          .largest = {},
          .by_class = counted.at_peak,
          .residents = 0,
          .cache = std::nullopt,
          .layout = std::nullopt,
          .placement = placement};
}

}  // namespace

bool places_ahead(const Program& program) {
  for (std::uint32_t m = 0; m < program.platform->memories.size(); ++m)
    if (is_placed(program, m)) return true;
  return false;
}

BlockLifetimes::BlockLifetimes(const Program& program)
    : program_(program),
      blocks_(program.platform->memories.size()),
      buffers_(program.plan->buffers.size(), kNotPlaced),
      workspaces_(program.lanes.size(), kNotPlaced) {
  for (std::uint32_t m = 0; m < blocks_.size(); ++m)
    unit_.push_back(is_placed(program, m) ? program.platform->memories[m].alignment : Bytes{});
}

void BlockLifetimes::buffer_allocated(BufferId buffer, StepId /*by*/, Time /*now*/) {
  buffers_[index(buffer)] = begin(program_.memory(buffer), program_.bytes(buffer));
}

void BlockLifetimes::buffer_freed(BufferId buffer, Time /*now*/) {
  end(program_.memory(buffer), buffers_[index(buffer)]);
}

void BlockLifetimes::workspace_allocated(StepId of, Bytes bytes, Time /*now*/) {
  workspaces_[program_.steps[index(of)].lane] = begin(program_.memory(index(of)), bytes);
}

void BlockLifetimes::workspace_freed(StepId of, Time /*now*/) {
  end(program_.memory(index(of)), workspaces_[program_.steps[index(of)].lane]);
}

std::uint32_t BlockLifetimes::begin(std::uint32_t memory, Bytes bytes) {
  const Bytes unit = unit_[memory];
  if (unit == Bytes{} || bytes == Bytes{}) return kNotPlaced;
  Blocks& blocks = blocks_[memory];
  const Bytes units{(bytes.count() - 1) / unit.count() + 1};
  blocks.lifetimes.push_back({.lower = now_++, .upper = INT64_MAX, .size = units});
  blocks.requested.push_back(bytes);
  return static_cast<std::uint32_t>(blocks.requested.size() - 1);
}

void BlockLifetimes::end(std::uint32_t memory, std::uint32_t& block) {
  if (block == kNotPlaced) return;
  blocks_[memory].lifetimes[block].upper = now_++;
  block = kNotPlaced;
}

std::vector<BlockLifetimes::Blocks> BlockLifetimes::finish() {
  for (Blocks& blocks : blocks_)
    for (TimedBuffer& it : blocks.lifetimes) it.upper = std::min(it.upper, now_);
  return std::move(blocks_);
}

bool placements_fit(const Program& program, const std::vector<BlockLifetimes::Blocks>& all) {
  for (std::uint32_t m = 0; m < all.size(); ++m) {
    if (!is_placed(program, m)) continue;
    const Memory& memory = program.platform->memories[m];
    const auto& lifetimes = all[m].lifetimes;
    refuse_more_than_can_be_placed(memory, lifetimes);
    const Bytes most = usable(*program.plan, *program.platform, MemoryId{m});
    const auto fits = [&](std::optional<PlacementRule> rule) {
      return end_in(memory, place(lifetimes, task_of(rule))) <= most;
    };
    // The exact search begins with the best rule.
    if (!fits(memory.placed.rule.value_or(PlacementRule::best)) &&
        (memory.placed.rule || !fits(std::nullopt)))
      return false;
  }
  return true;
}

Placements placements_of(const Program& program, std::vector<BlockLifetimes::Blocks> all,
                         const Execution& counted) {
  Placements placements;
  placements.blocks.resize(all.size());
  for (std::uint32_t m = 0; m < all.size(); ++m) {
    if (!is_placed(program, m)) continue;
    const Memory& memory = program.platform->memories[m];
    const auto& [lifetimes, requested] = all[m];
    refuse_more_than_can_be_placed(memory, lifetimes);
    const PlacementAnswer answer = place(lifetimes, task_of(memory.placed.rule));
    const Bytes most = usable(*program.plan, *program.platform, MemoryId{m});
    if (end_in(memory, answer) > most && !placements.misfit)
      placements.misfit = misfit_of(memory, answer, most, requested.size(), counted.memories[m]);
    auto& blocks = placements.blocks[m].emplace();
    for (std::size_t b = 0; b < requested.size(); ++b)
      blocks.push_back({requested[b], answer.found.offsets[b].count() * memory.alignment});
  }
  return placements;
}

}  // namespace plimsoll
