#include "policy/pipeline/search/building_blocks.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace plimsoll {

namespace {

constexpr std::int32_t kPeriod = 6;

/// In the order in which a microbatch passes; then the weight halves of the backwards.
enum BlockPart : std::uint32_t { F0, F1, B1, B0, W1, W0, kBlockParts };

using Residues = std::array<std::int32_t, kBlockParts>;
/// By device: the slots of microbatch 0.
using Block = std::vector<std::array<std::int32_t, kBlockParts>>;

struct Shifts {
  std::int32_t first = 1, later = 1;
  std::uint32_t devices_of_first = 1;
};

std::int32_t modulo(std::int32_t slot) {
  return (slot % kPeriod + kPeriod) % kPeriod;
}

/// The first slot after `slot` with that residue.
std::int32_t next_slot(std::int32_t slot, std::int32_t residue) {
  return slot + 1 + modulo(residue - slot - 1);
}

/// The slots modulo six on one device; false where two are the same.
bool fill(Residues& it) {
  std::array<bool, kPeriod> taken{};
  const auto take = [&](std::int32_t slot) {
    return !std::exchange(taken[static_cast<std::size_t>(slot)], true);
  };
  for (const BlockPart part : {F0, F1, B1, B0})
    if (!take(it[part])) return false;
  for (const auto& [weight, backward] : {std::pair(W1, B1), std::pair(W0, B0)}) {
    it[weight] = it[backward];
    while (!take(it[weight])) it[weight] = modulo(it[weight] + 1);
  }
  return true;
}

/// The tasks of microbatch 0, each as early as its residue and the one before it allow. Empty where
/// two would share a slot.
Block block_of(std::uint32_t devices, Residues residues, const Shifts& shifts) {
  std::vector<Residues> all;
  for (std::uint32_t i = 0; i < devices; ++i) {
    if (i > 0) {
      const std::int32_t by = i <= shifts.devices_of_first ? shifts.first : shifts.later;
      for (const BlockPart part : {F0, B1}) residues[part] = modulo(residues[part] + by);
      for (const BlockPart part : {F1, B0}) residues[part] = modulo(residues[part] - 1);
    }
    if (!fill(residues)) return {};
    all.push_back(residues);
  }
  Block block(devices);
  std::int32_t last = kPeriod - 1;
  const auto place = [&](std::uint32_t i, BlockPart part) {
    last = block[i][part] = next_slot(last, all[i][part]);
  };
  for (std::uint32_t i = 0; i < devices; ++i) place(i, F0);
  for (std::uint32_t i = devices; i-- > 0;) place(i, F1);
  for (std::uint32_t i = 0; i < devices; ++i) place(i, B1);
  for (std::uint32_t i = devices; i-- > 0;) place(i, B0);
  for (std::uint32_t i = 0; i < devices; ++i)
    for (const auto& [weight, backward] : {std::pair(W1, B1), std::pair(W0, B0)})
      block[i][weight] = next_slot(block[i][backward], all[i][weight]);
  return block;
}

/// The classes of a device, by part; slot i is its first chunk.
std::array<std::uint32_t, kBlockParts> classes_of(std::uint32_t devices, std::uint32_t i) {
  const std::uint32_t first = 3 * i, second = 3 * (2 * devices - 1 - i);
  return {first, second, second + 1, first + 1, second + 2, first + 2};
}

TaskOrders repeated(const TaskNetwork& network, const Block& block) {
  TaskOrders orders;
  std::vector<std::pair<std::int64_t, std::uint32_t>> placed;
  for (std::uint32_t i = 0; i < network.devices; ++i) {
    const auto classes = classes_of(network.devices, i);
    placed.clear();
    for (std::uint32_t part = 0; part < (network.splits ? kBlockParts : W1); ++part)
      for (std::uint32_t k = 0; k < network.microbatches; ++k)
        placed.emplace_back(block[i][part] + std::int64_t{kPeriod} * k,
                            classes[part] * network.microbatches + k);
    std::ranges::sort(placed);
    auto& order = orders.emplace_back();
    for (const auto& [slot, task] : placed) order.push_back(task);
  }
  return orders;
}

std::set<Block> all_blocks(std::uint32_t devices) {
  std::set<Block> blocks;
  const auto add = [&](const Residues& residues) {
    for (std::int32_t first = 1; first < kPeriod; ++first)
      for (std::int32_t later = 1; later <= first; ++later)
        for (std::uint32_t n = 1; n < std::max(devices, 2U); ++n)
          if (Block block = block_of(devices, residues, {first, later, n}); !block.empty())
            blocks.insert(std::move(block));
  };
  for (std::int32_t f1 = 1; f1 < kPeriod; ++f1)
    for (std::int32_t b1 = 1; b1 < kPeriod; ++b1)
      for (std::int32_t b0 = 1; b0 < kPeriod; ++b0)
        if (f1 != b1 && f1 != b0 && b1 != b0) add({0, f1, b1, b0, 0, 0});
  return blocks;
}

constexpr std::uint32_t kMostDevices = 64;
/// Tasks that are evaluated to compare blocks, at most.
constexpr std::size_t kMostCompared = 20'000'000;

struct Compared {
  OrderValue value;
  const Block* block = nullptr;
};

/// The best first; among equals the first of all blocks.
std::vector<Compared> compared(const TaskNetwork& network, const std::set<Block>& blocks,
                               const std::vector<std::int64_t>& limits) {
  TaskNetwork shorter = network;
  shorter.microbatches = std::min(network.microbatches, 3 * network.devices);
  OrderEvaluator evaluator(shorter);
  const std::size_t stride = 1 + blocks.size() * shorter.tasks() / kMostCompared;
  std::vector<Compared> all;
  std::size_t n = 0;
  for (const Block& block : blocks) {
    if (n++ % stride != 0) continue;
    const TaskOrders orders = repeated(shorter, block);
    if (!keeps_to(shorter, orders, limits)) continue;
    if (const auto value = evaluator.evaluate(orders)) all.push_back({*value, &block});
  }
  std::ranges::stable_sort(all, {}, &Compared::value);
  return all;
}

}  // namespace

std::vector<TaskOrders> building_blocks(const TaskNetwork& network,
                                        const std::vector<std::int64_t>& limits, std::size_t most) {
  if (network.devices > kMostDevices) return {};
  const std::set<Block> blocks = all_blocks(network.devices);
  std::vector<TaskOrders> best;
  for (const Compared& it : compared(network, blocks, limits)) {
    TaskOrders orders = repeated(network, *it.block);
    if (keeps_to(network, orders, limits)) best.push_back(std::move(orders));
    if (best.size() == most) break;
  }
  return best;
}

}  // namespace plimsoll
